"""Blocking drivers under trio."""

import threading

import pytest
import trio

from fetcher.datasources.driver_thread import DriverThread


def make(interrupt: threading.Event) -> DriverThread:
    return DriverThread(trio.CapacityLimiter(2), interrupt.set)


async def test_answer_comes_back_and_nothing_is_interrupted() -> None:
    interrupted = threading.Event()
    assert await make(interrupted).run(lambda: 7) == 7
    assert not interrupted.is_set()


async def test_failure_comes_back_as_it_was_raised() -> None:
    interrupted = threading.Event()
    error = OSError("gone")

    def fail() -> None:
        raise error

    with pytest.raises(OSError, match="gone") as caught:
        await make(interrupted).run(fail)
    assert caught.value is error
    assert not interrupted.is_set()


async def test_cancelled_call_is_interrupted_and_waited_for() -> None:
    interrupted, started, ended = threading.Event(), trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def block() -> None:
        trio.from_thread.run_sync(started.set, trio_token=token)
        interrupted.wait()
        ended.set()

    async with trio.open_nursery() as nursery:

        async def call() -> None:
            await make(interrupted).run(block)

        nursery.start_soon(call)
        await started.wait()
        nursery.cancel_scope.cancel()
    assert ended.is_set()


async def test_cancelled_call_that_fails_when_interrupted_is_cancelled() -> None:
    interrupted, started = threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def block() -> None:
        trio.from_thread.run_sync(started.set, trio_token=token)
        interrupted.wait()
        raise OSError("socket is shut")

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await started.wait()
                scope.cancel()

            nursery.start_soon(cancel)
            await make(interrupted).run(block)
    assert scope.cancelled_caught
