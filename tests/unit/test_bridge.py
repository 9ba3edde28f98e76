import asyncio
import gc
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
import trio_asyncio

from fetcher.bridge import (
    READY_CALLBACKS_A_PASS,
    CancelledInside,
    asyncio_context,
    fast_pass_is_possible,
    open_asyncio,
    run_asyncio,
)


def unexpected(kind: str) -> None:
    pytest.fail(f"a stray asyncio task ended with {kind}")


class DriverError(Exception):
    pass


async def test_a_coroutine_function_runs_on_asyncio_and_gives_its_result() -> None:
    async def add(a: int, *, b: int) -> int:
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is not None
        return a + b

    async with open_asyncio(unexpected):
        assert await run_asyncio(add, 2, b=3) == 5


async def test_an_exception_comes_back_as_it_is() -> None:
    raised = DriverError("text")

    async def fail() -> None:
        raise raised

    async with open_asyncio(unexpected):
        with pytest.raises(DriverError) as caught:
            await run_asyncio(fail)
        assert caught.value is raised


async def test_without_an_open_loop_a_crossing_says_so() -> None:
    async def nothing() -> None: ...

    with pytest.raises(RuntimeError, match="loop is not open"):
        await run_asyncio(nothing)


async def test_cancellation_crosses_once_and_clean_up_that_awaits_runs_to_its_end(
    autojump_clock: trio.abc.Clock,
) -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            await asyncio.sleep(1)
            seen.append("cleaned up")

    async with open_asyncio(unexpected):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def caller() -> None:
                    try:
                        await run_asyncio(work)
                    except trio.Cancelled:
                        seen.append("trio.Cancelled")
                        raise

                nursery.start_soon(caller)
                await trio.sleep(1)
                scope.cancel()

    assert seen == ["cancelled", "cleaned up", "trio.Cancelled"]
    assert scope.cancelled_caught


async def test_a_deadline_of_trio_ends_a_bridged_call(autojump_clock: trio.abc.Clock) -> None:
    async with open_asyncio(unexpected):
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError), trio.fail_after(5):
            await run_asyncio(asyncio.sleep, 3600)
        assert trio.current_time() - began == pytest.approx(5)


async def test_a_library_that_cancels_its_own_call_raises_an_ordinary_exception() -> None:
    async def cancel_myself() -> None:
        raise asyncio.CancelledError("text with a secret")

    async with open_asyncio(unexpected):
        with pytest.raises(CancelledInside) as caught:
            await run_asyncio(cancel_myself)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_a_call_that_finishes_in_spite_of_its_cancellation_gives_its_result(
    autojump_clock: trio.abc.Clock,
) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "done"
        return "slept"

    async with open_asyncio(unexpected):
        with trio.move_on_after(1) as scope:
            result = await run_asyncio(stubborn)
        assert result == "done"
        assert scope.cancel_called
        assert not scope.cancelled_caught


async def test_a_stray_task_is_reported_by_type_only_and_the_loop_goes_on() -> None:
    told: list[str] = []

    async def stray() -> None:
        raise DriverError("amqp://user:secret@host")

    async def start_stray() -> None:
        task = asyncio.create_task(stray())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task

    async with open_asyncio(told.append):
        await run_asyncio(start_stray)
        gc.collect()
        assert told == ["DriverError"]
        assert await run_asyncio(asyncio.sleep, 0, "alive") == "alive"


async def test_a_report_that_fails_does_not_end_the_loop() -> None:
    async def call_handler() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "something"})

    def broken(kind: str) -> None:
        assert kind == "no exception"
        raise ValueError

    async with open_asyncio(broken):
        await run_asyncio(call_handler)
        assert await run_asyncio(asyncio.sleep, 0, "alive") == "alive"


async def test_a_task_left_over_is_cancelled_and_awaited_when_the_loop_closes() -> None:
    ended: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    async def start() -> None:
        tasks.add(asyncio.create_task(forever()))
        await asyncio.sleep(0)

    async with open_asyncio(unexpected):
        await run_asyncio(start)

    assert ended == ["ended"]
    assert all(task.done() for task in tasks)


async def test_a_closed_connection_whose_peer_hangs_does_not_outlive_the_loop() -> None:
    ours, peers = socket.socketpair()

    async def write_more_than_the_peer_takes() -> asyncio.Transport:
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=ours
        )
        transport.write(b"x" * 10_000_000)
        transport.close()
        return transport

    with peers:
        async with open_asyncio(unexpected):
            transport = await run_asyncio(write_more_than_the_peer_takes)
            assert transport.get_write_buffer_size() > 0
        assert ours.fileno() == -1


class Client:
    def __init__(self) -> None:
        self.calls: list[str] = []


@asynccontextmanager
async def client_context(client: Client) -> AsyncGenerator[Client, None]:
    await asyncio.sleep(0)
    client.calls.append("open")
    try:
        yield client
    finally:
        await asyncio.sleep(1)
        client.calls.append("close")


async def test_an_asyncio_context_opens_and_closes_its_client() -> None:
    client = Client()
    async with (
        open_asyncio(unexpected),
        asyncio_context(lambda: client_context(client)) as opened,
    ):
        assert opened is client
        assert client.calls == ["open"]
    assert client.calls == ["open", "close"]


async def test_an_asyncio_context_closes_its_client_when_it_was_cancelled(
    autojump_clock: trio.abc.Clock,
) -> None:
    client = Client()
    async with open_asyncio(unexpected):
        with trio.move_on_after(1) as scope:
            async with asyncio_context(lambda: client_context(client)):
                await trio.sleep_forever()
    assert scope.cancelled_caught
    assert client.calls == ["open", "close"]


async def test_the_private_parts_of_the_fast_pass_are_there() -> None:
    async with open_asyncio(unexpected):
        loop = trio_asyncio.current_loop.get()
        assert fast_pass_is_possible(loop)
        assert loop._main_loop_one.__name__ == "fast_pass"
    assert not fast_pass_is_possible(object())


async def test_another_release_of_trio_asyncio_gets_its_own_plain_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trio_asyncio, "__version__", "0.17.0")
    async with open_asyncio(unexpected):
        assert trio_asyncio.current_loop.get()._main_loop_one.__name__ == "_main_loop_one"
        assert await run_asyncio(asyncio.sleep, 0, "alive") == "alive"


async def order_of_events(callbacks_a_pass: int) -> Sequence[str]:
    """What one busy program does, in order: callbacks, timers, a trio call, tasks, a failure."""
    events: list[str] = []

    async def from_trio(name: str) -> str:
        await trio.lowlevel.checkpoint()
        return name

    async def worker(name: str) -> None:
        for step in range(3):
            events.append(f"{name} {step}")
            await asyncio.sleep(0)
        events.append(await trio_asyncio.trio_as_aio(from_trio)(f"{name} back from trio"))

    async def program() -> None:
        loop = asyncio.get_running_loop()
        for number in range(100):
            loop.call_soon(events.append, f"callback {number}")
        loop.call_soon(events.append, "never").cancel()
        loop.call_later(2, events.append, "timer 2")
        loop.call_later(1, events.append, "timer 1")
        await asyncio.gather(worker("a"), worker("b"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(10)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(worker("c"))
                group.create_task(fail())
        except* DriverError:
            events.append("group failed")

    async def fail() -> None:
        raise DriverError

    async with open_asyncio(unexpected, callbacks_a_pass=callbacks_a_pass):
        await run_asyncio(program)
    return events


async def test_the_fast_loop_does_the_same_things_as_the_plain_one(
    autojump_clock: trio.abc.Clock,
) -> None:
    plain = await order_of_events(1)
    fast = await order_of_events(READY_CALLBACKS_A_PASS)
    # 100 callbacks, 2 timers, 2 x 4 of the workers, 2 of "c" before its group fails, the failure
    assert len(plain) == 113
    assert sorted(fast) == sorted(plain)
    ordered = [event for event in fast if event.startswith(("callback", "timer"))]
    assert ordered == [f"callback {number}" for number in range(100)] + ["timer 1", "timer 2"]


async def test_the_fast_loop_lets_trio_tasks_run_between_its_passes() -> None:
    turns = 0
    finished = False

    async def trio_side() -> None:
        nonlocal turns
        while not finished:
            turns += 1
            await trio.lowlevel.checkpoint()

    async def chatty() -> None:
        for _ in range(READY_CALLBACKS_A_PASS * 10):
            await asyncio.sleep(0)

    async with open_asyncio(unexpected), trio.open_nursery() as nursery:
        nursery.start_soon(trio_side)
        await run_asyncio(chatty)
        finished = True
    assert turns >= 10


async def test_a_transport_that_somebody_keeps_beyond_its_connection_breaks_no_end() -> None:
    """Closed with bytes to send, which were read then: a reference cycle may hold it for long."""
    kept: list[asyncio.Transport] = []
    sent = bytes(4 * 1024 * 1024)

    async def send_and_close(sock: socket.socket) -> None:
        lost = asyncio.Event()

        class Line(asyncio.Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                lost.set()

        transport, _ = await asyncio.get_running_loop().create_connection(Line, sock=sock)
        kept.append(transport)
        transport.write(sent)
        transport.close()
        await lost.wait()

    async def read_all(sock: trio.socket.SocketType) -> None:
        while await sock.recv(65_536):
            pass

    ours, theirs = socket.socketpair()
    with theirs:
        async with open_asyncio(unexpected), trio.open_nursery() as nursery:
            nursery.start_soon(read_all, trio.socket.from_stdlib_socket(theirs))
            await run_asyncio(send_and_close, ours)
    assert kept[0].is_closing()
