"""The Engine's concurrency port on trio."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.concurrency import TrioConcurrency, TrioHandoff
from fetcher_engine import DeadlineExceeded, HandoffClosed

Job = Callable[[], Awaitable[None]]


async def test_jobs_start_in_order_and_no_more_than_the_limit_at_once() -> None:
    started: list[int] = []
    running = 0
    most = 0

    def job(index: int) -> Job:
        async def run() -> None:
            nonlocal running, most
            started.append(index)
            running += 1
            most = max(most, running)
            await trio.lowlevel.checkpoint()
            running -= 1

        return run

    await TrioConcurrency().run_ordered([job(i) for i in range(20)], 3)

    assert started == list(range(20))
    assert most == 3


async def test_no_jobs_are_no_error() -> None:
    await TrioConcurrency().run_ordered([], 4)


async def test_first_failure_is_raised_itself_and_the_rest_is_cancelled_or_never_called() -> None:
    failure = ValueError("first")
    seen: list[str] = []

    async def hangs() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    async def fails() -> None:
        await wait_all_tasks_blocked()
        raise failure

    async def never() -> None:
        seen.append("called")

    with pytest.raises(ValueError, match="first") as caught:
        await TrioConcurrency().run_ordered([hangs, fails, never], 2)

    assert caught.value is failure
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert seen == ["cancelled"]


async def test_what_others_raise_while_they_are_cancelled_is_dropped() -> None:
    async def breaks_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("late")

    async def fails() -> None:
        await wait_all_tasks_blocked()
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await TrioConcurrency().run_ordered([breaks_when_cancelled, fails], 2)


async def test_cancellation_from_outside_goes_through() -> None:
    ended: list[int] = []

    def job(index: int) -> Job:
        async def run() -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append(index)

        return run

    with trio.move_on_after(0.01) as scope:
        await TrioConcurrency().run_ordered([job(0), job(1)], 2)

    assert scope.cancelled_caught
    assert sorted(ended) == [0, 1]


async def test_deadline_becomes_the_engines_own_exception(autojump_clock: MockClock) -> None:
    with pytest.raises(DeadlineExceeded) as caught:
        await TrioConcurrency().run_with_deadline(5, trio.sleep_forever)

    assert trio.current_time() == 5
    assert caught.value.__context__ is None


async def test_result_in_time_is_returned_and_none_is_no_deadline(
    autojump_clock: MockClock,
) -> None:
    async def answers() -> int:
        await trio.sleep(1000)
        return 7

    assert await TrioConcurrency().run_with_deadline(None, answers) == 7
    assert await TrioConcurrency().run_with_deadline(1001, answers) == 7


async def test_deadline_from_outside_keeps_its_meaning(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1) as scope:
        await TrioConcurrency().run_with_deadline(5, trio.sleep_forever)

    assert scope.cancelled_caught


async def test_exception_of_the_job_passes_although_the_time_was_up(
    autojump_clock: MockClock,
) -> None:
    async def fails_late() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(9)
        raise KeyError("late")

    with pytest.raises(KeyError, match="late"):
        await TrioConcurrency().run_with_deadline(5, fails_late)


async def test_shielded_clean_up_runs_although_cancelled_and_the_cancellation_is_not_lost(
    autojump_clock: MockClock,
) -> None:
    done: list[str] = []

    async def clean_up() -> None:
        await trio.sleep(1)
        done.append("clean")
        raise ValueError("swallowed")

    with trio.CancelScope() as scope:
        scope.cancel()
        await TrioConcurrency().run_shielded(5, clean_up)
        done.append("after")
        await TrioConcurrency().checkpoint()
        done.append("never")

    assert scope.cancelled_caught
    assert done == ["clean", "after"]


async def test_shielded_clean_up_is_bounded(autojump_clock: MockClock) -> None:
    async def breaks_when_cut_off() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise OSError

    await TrioConcurrency().run_shielded(5, breaks_when_cut_off)

    assert trio.current_time() == 5


async def test_handoff_pushes_back_at_its_bound_and_keeps_the_order() -> None:
    handoff = TrioHandoff[str](10)
    sent: list[str] = []

    async def produce() -> None:
        for item in "abcd":
            await handoff.send(item, 4)
            sent.append(item)
        handoff.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        await wait_all_tasks_blocked()
        assert sent == ["a", "b"]
        assert [await handoff.receive() for _ in range(4)] == ["a", "b", "c", "d"]
        for _ in range(2):
            with pytest.raises(HandoffClosed):
                await handoff.receive()


async def test_item_larger_than_the_bound_is_taken_once_the_queue_is_empty() -> None:
    handoff = TrioHandoff[str](10)
    await handoff.send("small", 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(handoff.send, "large", 100)
        await wait_all_tasks_blocked()
        assert await handoff.receive() == "small"
        assert await handoff.receive() == "large"


async def test_cancelled_send_appends_nothing_and_cancelled_receive_loses_nothing(
    autojump_clock: MockClock,
) -> None:
    handoff = TrioHandoff[str](1)
    await handoff.send("first", 1)
    with trio.move_on_after(1):
        await handoff.send("second", 1)
    assert await handoff.receive() == "first"
    with trio.move_on_after(1):
        await handoff.receive()
    await handoff.send("third", 1)

    assert await handoff.receive() == "third"
