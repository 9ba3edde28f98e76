"""The concurrency port's contract, over the README's asyncio and the suite's trio."""

from collections.abc import Awaitable, Callable

import pytest

from fetcher_engine import (
    Concurrency,
    DeadlineExceeded,
    Handoff,
    HandoffClosed,
    SequentialConcurrency,
)
from fetcher_engine.memory import ManualClock, run_trampoline

from .loops import AsyncioLoop, TrioLoop

RealLoop = AsyncioLoop | TrioLoop
Job = Callable[[], Awaitable[None]]


def port(loop: RealLoop) -> Concurrency:
    assert loop.concurrency is not None
    return loop.concurrency


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

    loop.run(lambda: port(loop).run_ordered([job(i) for i in range(6)], limit))
    assert started == list(range(6))
    assert (peak, ended) == (min(max(limit, 1), 6), 6)


def test_no_job_is_no_work(loop: RealLoop) -> None:
    loop.run(lambda: port(loop).run_ordered([], 4))


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
        loop.run(lambda: port(loop).run_ordered([hangs, fails, never], 2))
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
        await port(loop).run_ordered([job(i) for i in range(5)], 3)

    ended = loop.run(lambda: loop.run_and_cancel(main, lambda: len(started) == 3))
    assert ended == "cancelled"
    assert sorted(cleaned) == started == [0, 1, 2]


def test_result_within_the_deadline(loop: RealLoop) -> None:
    async def job() -> int:
        await loop.pause()
        return 7

    assert loop.run(lambda: port(loop).run_with_deadline(60, job)) == 7
    assert loop.run(lambda: port(loop).run_with_deadline(None, job)) == 7


def test_deadline_cancels_the_job_and_says_so(loop: RealLoop) -> None:
    cleaned: list[str] = []

    async def job() -> None:
        try:
            await loop.hang()
        finally:
            cleaned.append("job")

    with pytest.raises(DeadlineExceeded) as caught:
        loop.run(lambda: port(loop).run_with_deadline(0.02, job))
    assert cleaned == ["job"]
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("kind", [ValueError, TimeoutError])
def test_exception_of_the_job_passes_the_deadline(loop: RealLoop, kind: type[Exception]) -> None:
    error = kind("own")

    async def job() -> None:
        raise error

    with pytest.raises(kind) as caught:
        loop.run(lambda: port(loop).run_with_deadline(60, job))
    assert caught.value is error


def test_outer_deadline_keeps_its_meaning(loop: RealLoop) -> None:
    seen: list[str] = []

    async def inner() -> None:
        try:
            await port(loop).run_with_deadline(60, loop.hang)
        except DeadlineExceeded:
            seen.append("inner")

    with pytest.raises(DeadlineExceeded):
        loop.run(lambda: port(loop).run_with_deadline(0.02, inner))
    assert seen == []


def test_cancellation_passes_a_deadline(loop: RealLoop) -> None:
    waiting: list[bool] = []

    async def job() -> None:
        waiting.append(True)
        await loop.hang()

    async def main() -> None:
        await port(loop).run_with_deadline(60, job)

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
            await port(loop).run_shielded(60, clean_up)
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
        await port(loop).run_shielded(60, clean_up)
        await port(loop).checkpoint()
        done.append("went on")

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(cleaning))) == "cancelled"
    assert done == ["clean"]


def test_clean_up_that_fails_or_hangs_is_swallowed(loop: RealLoop) -> None:
    async def fails() -> None:
        raise ValueError

    async def main() -> str:
        await port(loop).run_shielded(60, fails)
        await port(loop).run_shielded(0.02, loop.hang)
        return "went on"

    assert loop.run(main) == "went on"


def test_pending_cancellation_shows_at_a_checkpoint(loop: RealLoop) -> None:
    spinning: list[bool] = []

    async def main() -> None:
        spinning.append(True)
        while True:
            await port(loop).checkpoint()

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: bool(spinning))) == "cancelled"


# --- hand-off ----------------------------------------------------------------------------------


def handoff(loop: RealLoop, max_cost: int) -> Handoff[str]:
    made: Handoff[str] | None = port(loop).handoff(max_cost)
    assert made is not None
    return made


async def drained(queue: Handoff[str]) -> list[str]:
    items = []
    while True:
        try:
            items.append(await queue.receive())
        except HandoffClosed:
            return items


def test_items_arrive_in_order_and_the_end_is_told_again_and_again(loop: RealLoop) -> None:
    async def main() -> None:
        queue = handoff(loop, 10)
        for item in "abc":
            await queue.send(item, 1)
        queue.close()
        queue.close()
        assert await drained(queue) == ["a", "b", "c"]
        assert await drained(queue) == []

    loop.run(main)


def test_producer_waits_where_the_costs_pass_the_bound(loop: RealLoop) -> None:
    log: list[str] = []

    async def main() -> None:
        queue = handoff(loop, 10)

        async def produce() -> None:
            for item, cost in (("a", 4), ("b", 6), ("c", 1), ("d", 99), ("e", 99)):
                await queue.send(item, cost)
                log.append(f"+{item}")
            queue.close()

        async def consume() -> None:
            for _ in range(20):
                await loop.pause()
            assert log == ["+a", "+b"]
            for expected in "abcde":
                assert await queue.receive() == expected
                log.append(f"-{expected}")
                for _ in range(20):
                    await loop.pause()
            assert await drained(queue) == []

        await port(loop).run_ordered([produce, consume], 2)

    loop.run(main)
    # c fits once a is taken; d, larger than the bound, once the queue is empty; e after d
    assert log == ["+a", "+b", "-a", "+c", "-b", "-c", "+d", "-d", "+e", "-e"]


def test_consumer_waits_for_an_item_and_for_the_end(loop: RealLoop) -> None:
    received: list[str] = []

    async def main() -> None:
        queue = handoff(loop, 1)

        async def consume() -> None:
            received.extend(await drained(queue))

        async def produce() -> None:
            for item in "ab":
                for _ in range(5):
                    await loop.pause()
                await queue.send(item, 1)
            for _ in range(5):
                await loop.pause()
            queue.close()

        await port(loop).run_ordered([consume, produce], 2)

    loop.run(main)
    assert received == ["a", "b"]


def test_cancelled_send_appends_nothing(loop: RealLoop) -> None:
    async def main() -> list[str]:
        queue = handoff(loop, 1)
        await queue.send("a", 1)

        async def send() -> None:
            await queue.send("b", 1)

        with pytest.raises(DeadlineExceeded):
            await port(loop).run_with_deadline(0.02, send)
        queue.close()
        return await drained(queue)

    assert loop.run(main) == ["a"]


# --- the fallback ------------------------------------------------------------------------------


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
