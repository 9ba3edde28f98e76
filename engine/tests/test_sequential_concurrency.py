"""The concurrency that an Engine has without a port, by itself (spec 19.3)."""

from collections.abc import Awaitable, Callable

import pytest

from fetcher_engine import DeadlineExceeded, SequentialConcurrency
from fetcher_engine.memory import ManualClock, run_trampoline

Job = Callable[[], Awaitable[None]]


def test_fallback_runs_jobs_one_by_one_and_stops_at_the_first_exception() -> None:
    ran: list[int] = []

    def job(index: int) -> Job:
        async def run() -> None:
            ran.append(index)
            if index == 1:
                raise ValueError("one")

        return run

    with pytest.raises(ValueError, match="one"):
        run_trampoline(SequentialConcurrency().run_ordered([job(i) for i in range(3)], 4))
    assert ran == [0, 1]


def test_fallback_has_no_handoff() -> None:
    assert SequentialConcurrency().handoff(1) is None


def test_fallback_raises_at_the_first_checkpoint_after_the_earliest_deadline() -> None:
    clock = ManualClock()
    port_ = SequentialConcurrency(monotonic=clock.monotonic)
    reached: list[str] = []

    async def clean_up() -> None:
        await port_.checkpoint()
        reached.append("clean")

    async def inner() -> None:
        await port_.checkpoint()
        clock.advance(5)
        await port_.run_shielded(1, clean_up)
        reached.append("before")
        await port_.checkpoint()
        reached.append("after")

    async def outer() -> None:
        await port_.run_with_deadline(60, inner)

    with pytest.raises(DeadlineExceeded):
        run_trampoline(port_.run_with_deadline(5, outer))
    assert reached == ["clean", "before"]
    run_trampoline(port_.checkpoint())


def test_fallback_swallows_failed_clean_up() -> None:
    async def fails() -> None:
        raise ValueError

    run_trampoline(SequentialConcurrency().run_shielded(1, fails))
