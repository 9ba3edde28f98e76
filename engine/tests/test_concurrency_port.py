"""The concurrency port's contract, over the README's asyncio and the suite's trio."""

from collections.abc import Awaitable, Callable

import pytest

from fetcher_engine import DeadlineExceeded

from .loops import RealLoop

Job = Callable[[], Awaitable[None]]


@pytest.mark.parametrize("limit", [0, 1, 2, 10])
def test_jobs_start_in_order_and_all_run(loop: RealLoop, limit: int) -> None:
    started: list[int] = []
    busy = peak = ended = 0

    def job(index: int) -> Job:
        async def run() -> None:
            nonlocal busy, peak, ended
            started.append(index)
            busy += 1
            peak = max(peak, busy)
            for _ in range(7 - index):
                await loop.pause()
            busy -= 1
            ended += 1

        return run

    loop.run(lambda: loop.concurrency.run_ordered([job(i) for i in range(6)], limit))
    assert started == list(range(6))
    assert (peak, ended) == (min(max(limit, 1), 6), 6)


def test_no_job_is_no_work(loop: RealLoop) -> None:
    loop.run(lambda: loop.concurrency.run_ordered([], 4))


def test_first_exception_stops_the_others_and_is_raised_itself(loop: RealLoop) -> None:
    first = ValueError("first")
    cleaned: list[str] = []

    async def hangs() -> None:
        try:
            await loop.hang()
        finally:
            cleaned.append("hangs")
            raise KeyError("while cancelled")

    async def fails() -> None:
        await loop.pause()
        raise first

    async def never() -> None:
        cleaned.append("never")

    with pytest.raises(ValueError, match="first") as caught:
        loop.run(lambda: loop.concurrency.run_ordered([hangs, fails, never], 2))
    assert caught.value is first
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert cleaned == ["hangs"]


def test_cancellation_from_outside_ends_all_jobs_and_goes_on(loop: RealLoop) -> None:
    cleaned: list[int] = []
    started: list[int] = []

    def job(index: int) -> Job:
        async def run() -> None:
            started.append(index)
            try:
                await loop.hang()
            finally:
                cleaned.append(index)

        return run

    async def main() -> None:
        await loop.concurrency.run_ordered([job(i) for i in range(5)], 3)

    ended = loop.run(lambda: loop.run_and_cancel(main, lambda: len(started) == 3))
    assert ended == "cancelled"
    assert sorted(cleaned) == started == [0, 1, 2]


def test_result_within_the_deadline(loop: RealLoop) -> None:
    async def job() -> int:
        await loop.pause()
        return 7

    assert loop.run(lambda: loop.concurrency.run_with_deadline(60, job)) == 7
    assert loop.run(lambda: loop.concurrency.run_with_deadline(None, job)) == 7


def test_deadline_cancels_the_job_and_says_so(loop: RealLoop) -> None:
    cleaned: list[str] = []

    async def job() -> None:
        try:
            await loop.hang()
        finally:
            cleaned.append("job")

    with pytest.raises(DeadlineExceeded) as caught:
        loop.run(lambda: loop.concurrency.run_with_deadline(0.02, job))
    assert cleaned == ["job"]
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("kind", [ValueError, TimeoutError])
def test_exception_of_the_job_passes_the_deadline(loop: RealLoop, kind: type[Exception]) -> None:
    error = kind("own")

    async def job() -> None:
        raise error

    with pytest.raises(kind) as caught:
        loop.run(lambda: loop.concurrency.run_with_deadline(60, job))
    assert caught.value is error


def test_outer_deadline_keeps_its_meaning(loop: RealLoop) -> None:
    seen: list[str] = []

    async def inner() -> None:
        try:
            await loop.concurrency.run_with_deadline(60, loop.hang)
        except DeadlineExceeded:
            seen.append("inner")

    with pytest.raises(DeadlineExceeded):
        loop.run(lambda: loop.concurrency.run_with_deadline(0.02, inner))
    assert seen == []


def test_cancellation_passes_a_deadline(loop: RealLoop) -> None:
    waiting: list[bool] = []

    async def job() -> None:
        waiting.append(True)
        await loop.hang()

    async def main() -> None:
        await loop.concurrency.run_with_deadline(60, job)

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(waiting))) == "cancelled"


def test_shielded_clean_up_runs_to_its_end_although_cancelled(loop: RealLoop) -> None:
    done: list[str] = []
    waiting: list[bool] = []

    async def clean_up() -> None:
        for _ in range(10):
            await loop.pause()
        done.append("clean")

    async def main() -> None:
        try:
            waiting.append(True)
            await loop.hang()
        finally:
            await loop.concurrency.run_shielded(60, clean_up)
        done.append("went on")

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(waiting))) == "cancelled"
    assert done == ["clean"]


def test_cancellation_during_clean_up_is_not_lost(loop: RealLoop) -> None:
    done: list[str] = []
    cleaning: list[bool] = []

    async def clean_up() -> None:
        cleaning.append(True)
        for _ in range(10):
            await loop.pause()
        done.append("clean")

    async def main() -> None:
        await loop.concurrency.run_shielded(60, clean_up)
        await loop.concurrency.checkpoint()
        done.append("went on")

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(cleaning))) == "cancelled"
    assert done == ["clean"]


def test_clean_up_that_fails_or_hangs_is_swallowed(loop: RealLoop) -> None:
    async def fails() -> None:
        raise ValueError

    async def main() -> str:
        await loop.concurrency.run_shielded(60, fails)
        await loop.concurrency.run_shielded(0.02, loop.hang)
        return "went on"

    assert loop.run(main) == "went on"


def test_pending_cancellation_shows_at_a_checkpoint(loop: RealLoop) -> None:
    spinning: list[bool] = []

    async def main() -> None:
        spinning.append(True)
        while True:
            await loop.concurrency.checkpoint()

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(spinning))) == "cancelled"
