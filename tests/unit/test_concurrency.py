"""What trio alone shows of the Engine's concurrency port; the rest is in the contract tests."""

import pytest
import trio
from trio.testing import MockClock

from fetcher.concurrency import TrioConcurrency, TrioHandoff


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
