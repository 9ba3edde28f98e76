"""What asyncio alone does: a task can end as cancelled though nobody cancelled it."""

import asyncio
import sys

import pytest

from fetcher_engine import ErrorCategory, ExtractionRequest

from .hosts import TENANT, host_of
from .loops import AsyncioLoop, RealLoop, run
from .plans import FAILED, ROWS, RUNNING, planned
from .refusals import refuses

pytestmark = pytest.mark.loops.with_args(AsyncioLoop)


async def awaits_what_others_cancelled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@pytest.mark.parametrize("limit", [1, 2])
def test_cancellation_from_within_a_job_is_a_failure_and_stops_the_others(
    loop: RealLoop, limit: int
) -> None:
    ended: list[str] = []

    async def hangs() -> None:
        try:
            await loop.hang()
        finally:
            ended.append("hangs")

    async def never() -> None:
        ended.append("never")

    jobs = [hangs, awaits_what_others_cancelled, never][2 - limit :]
    with pytest.raises(RuntimeError, match=r"^a job was cancelled from within$") as caught:
        loop.run(lambda: loop.concurrency.run_ordered(jobs, limit))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert ended == ["hangs"] * (limit - 1)


@pytest.mark.parametrize("hook", ["before_test", "before_query", "before_batch"])
def test_source_that_cancels_itself_is_named(loop: RealLoop, hook: str) -> None:
    host = host_of({"a": ROWS, "b": ROWS, "c": ROWS})
    plan = planned(host)
    host.sources["a"].before_batch = host.sources["c"].before_test = loop.hang
    setattr(host.sources["b"], hook, awaits_what_others_cancelled)
    with refuses(ErrorCategory.INTERNAL, "unexpected engine failure") as caught:
        run(host.engine.execute_extraction(plan))
    assert caught.value.source == "b"
    assert set(host.close_counts()) == {1}
    assert host.executions.statuses == [RUNNING, FAILED]


def test_source_that_cancels_itself_in_discovery_is_named(loop: RealLoop) -> None:
    host = host_of({"a": ROWS, "b": ROWS})
    host.sources["a"].before_discovery = loop.hang
    host.sources["b"].before_discovery = awaits_what_others_cancelled
    request = ExtractionRequest(mapped_fields={"a": {"t": ["x"]}, "b": {"t": ["x"]}})
    with refuses(ErrorCategory.INTERNAL, "unexpected engine failure") as caught:
        run(host.engine.plan_extraction(TENANT, request))
    assert caught.value.source == "b"


def test_host_whose_write_cancels_itself_blames_no_source(loop: RealLoop) -> None:
    host = host_of({"a": ROWS, "b": ROWS})
    plan = planned(host)
    host.sources["b"].before_batch = loop.hang

    async def write(piece: bytes | memoryview) -> None:
        await awaits_what_others_cancelled()

    with refuses(ErrorCategory.INTERNAL, "unexpected engine failure") as caught:
        run(host.engine.stream_extraction(plan, write))
    assert caught.value.source is None
    assert set(host.close_counts()) == {1}


def test_first_exception_wins_over_those_cancelled_for_it(loop: RealLoop) -> None:
    first = ValueError("first")

    async def fails() -> None:
        await loop.pause()
        raise first

    with pytest.raises(ValueError, match="first") as caught:
        loop.run(lambda: loop.concurrency.run_ordered([loop.hang, fails, loop.hang], 3))
    assert caught.value is first


def test_job_that_cleans_up_is_cancelled_once(loop: RealLoop) -> None:
    """Each that ended by its cancellation would else cancel those that still clean up."""
    ended: list[str] = []

    async def cleans_up() -> None:
        try:
            await loop.hang()
        finally:
            for _ in range(10):
                await loop.pause()
            ended.append("cleaned up")

    async def fails() -> None:
        await loop.pause()
        raise KeyError

    with pytest.raises(KeyError):
        loop.run(lambda: loop.concurrency.run_ordered([cleans_up, loop.hang, fails], 3))
    assert ended == ["cleaned up"]


def test_clean_up_cancelled_from_within_is_swallowed(loop: RealLoop) -> None:
    async def main() -> str:
        await loop.concurrency.run_shielded(60, awaits_what_others_cancelled)
        return "went on"

    assert loop.run(main) == "went on"


def test_clean_up_outlasts_any_number_of_cancellations_and_they_go_on(loop: RealLoop) -> None:
    ended: list[str] = []

    async def clean_up() -> None:
        for _ in range(10):
            await loop.pause()
        ended.append("cleaned up")

    async def main() -> str:
        task = asyncio.create_task(loop.concurrency.run_shielded(60, clean_up))
        while not task.done():
            await loop.pause()
            task.cancel("from outside")
        with pytest.raises(asyncio.CancelledError, match=r"^from outside$"):
            await task
        return "cancelled"

    assert loop.run(main) == "cancelled"
    assert ended == ["cleaned up"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks start eagerly since Python 3.12")
def test_jobs_that_start_eagerly_stop_at_the_first_failure_too(loop: RealLoop) -> None:
    started: list[str] = []

    async def hangs() -> None:
        started.append("hangs")
        await loop.hang()

    async def fails() -> None:
        started.append("fails")
        raise KeyError

    async def never() -> None:
        started.append("never")

    async def main() -> None:
        factory = vars(asyncio)["eager_task_factory"]
        asyncio.get_running_loop().set_task_factory(factory)
        await loop.concurrency.run_ordered([hangs, fails, never], 3)

    with pytest.raises(KeyError):
        loop.run(main)
    assert started == ["hangs", "fails"]
