"""What runs at once, and what waits for whom (spec 21.9, 10.3)."""

from collections.abc import Awaitable, Callable, Iterable

import pytest

from fetcher_engine import Batch, EncodedBatch, ErrorCategory, Limits, StreamRequest
from fetcher_engine.memory import MemoryResultSink, MemorySource

from .hosts import Host, direct_of, host_of
from .loops import RealLoop, real_loops, run
from .plans import FAILED, ROWS, RUNNING, TWO, TWO_DOCUMENT, planned
from .refusals import SENTINEL, leaky, refuses

pytestmark = real_loops


def test_four_sources_are_in_flight_together(loop: RealLoop) -> None:
    arrived = 0

    async def rendezvous() -> None:
        nonlocal arrived
        arrived += 1
        while arrived < 4:
            await loop.pause()

    host = host_of(dict.fromkeys("abcd", ROWS))
    plan = planned(host)
    for source in host.sources.values():
        source.before_query = rendezvous
    assert direct_of(run(host.engine.execute_extraction(plan))).row_count == 8


@pytest.mark.parametrize("limit", [1, 3])
def test_never_more_than_the_limit_are_in_flight(loop: RealLoop, limit: int) -> None:
    started: list[str] = []
    busy = peak = 0

    def enter(name: str) -> Callable[[], Awaitable[None]]:
        async def hook() -> None:
            nonlocal busy, peak
            started.append(name)
            busy += 1
            peak = max(peak, busy)
            await loop.pause()

        return hook

    async def leave() -> None:
        nonlocal busy
        await loop.pause()
        busy -= 1

    host = host_of(dict.fromkeys("abcdefg", ROWS), limits=Limits(max_concurrency=limit))
    plan = planned(host)
    for name, source in host.sources.items():
        source.before_test = enter(name)
        source.before_close = leave
    run(host.engine.execute_extraction(plan))
    assert peak == limit
    assert set(started[:limit]) == set("abcdefg"[:limit])
    assert sorted(started) == list("abcdefg")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_large_sources_do_not_block_each_other(loop: RealLoop, concurrency: int) -> None:
    """Each is larger than what may be read ahead of its turn."""
    big = {"t": [{"x": "y" * 60_000}] * 120}
    host = host_of(dict.fromkeys("abc", big), limits=Limits(max_concurrency=concurrency))
    for source in host.sources.values():
        source.rows_per_batch = 7
    plan = planned(host)
    summary = []

    async def write(piece: bytes | memoryview) -> None:
        await loop.pause()

    async def main() -> None:
        summary.append(await host.engine.stream_extraction(plan, write))

    run(main)
    assert summary[0].row_count == 360
    assert host.close_counts() == [1, 1, 1]


def test_source_ahead_of_its_turn_reads_four_mebibytes_and_waits(loop: RealLoop) -> None:
    row = {"x": "y" * (256 * 1024)}
    ahead = {"t": [row] * 40}
    reads = {"a": 0, "b": 0}
    released = False

    async def first_waits() -> None:
        reads["a"] += 1
        for _ in range(500):
            if reads["a"] == 1:
                await loop.pause()
        nonlocal released
        released = True

    async def second_reads() -> None:
        if not released:
            reads["b"] += 1

    host = host_of({"a": ROWS, "b": ahead})
    plan = planned(host)
    host.sources["b"].rows_per_batch = 1
    host.sources["a"].before_batch = first_waits
    host.sources["b"].before_batch = second_reads
    run(host.engine.execute_extraction(plan))
    # 15 fit below 4 MiB with their names and commas, one is in the step's hands
    assert reads["b"] in (16, 17)


@pytest.mark.parametrize("stores", [False, True])
def test_result_that_is_too_large_stops_the_sources_that_still_read(
    loop: RealLoop, stores: bool
) -> None:
    """Spec 21.10: the error is the limit's, not that of the cancelled ones."""
    sink = MemoryResultSink() if stores else None
    big = {"t": [{"x": "y" * 1000}] * 600}
    host = host_of({"a": big, "b": ROWS}, limits=Limits(max_result_bytes=500_000), result_sink=sink)
    plan = planned(host)
    host.sources["b"].before_batch = loop.hang
    with refuses(
        ErrorCategory.LIMIT_EXCEEDED, "extraction result exceeds the configured size limit"
    ):
        run(host.engine.execute_extraction(plan))
    assert host.close_counts() == [1, 1]
    assert host.executions.statuses == [RUNNING, FAILED]
    assert sink is None or sink.stored_count == 0


def test_source_that_hangs_while_another_fails_is_stopped(loop: RealLoop) -> None:
    sources = {
        "a": MemorySource.of_rows(ROWS),
        "b": MemorySource.of_rows(ROWS),
    }
    host = Host(sources)
    plan = planned(host)
    sources["a"].before_batch = loop.hang
    sources["b"].stream_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE) as caught:
        run(host.engine.execute_extraction(plan))
    assert caught.value.source == "b"
    assert host.close_counts() == [1, 1]
    assert host.executions.statuses == [RUNNING, FAILED]


def test_crash_is_contained_and_stops_the_others(loop: RealLoop) -> None:
    def crash(request: StreamRequest) -> Iterable[Batch]:
        return iter([EncodedBatch("nobody asked for this", SENTINEL.encode(), 1)])

    host = host_of(TWO)
    plan = planned(host)
    host.sources["a"].before_batch = loop.hang
    host.sources["b"].batches = crash
    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly") as caught:
        run(host.engine.execute_extraction(plan))
    assert caught.value.source == "b"
    assert host.close_counts() == [1, 1]


def test_foreign_exception_of_one_step_stops_the_others(loop: RealLoop) -> None:
    host = host_of(TWO)

    def crash(request: StreamRequest) -> Iterable[Batch]:
        raise MemoryError(SENTINEL)

    async def main() -> None:
        plan = await host.plan_all()
        host.sources["a"].before_batch = loop.hang
        host.sources["b"].batches = crash
        await host.engine.execute_extraction(plan)

    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource"):
        run(main)
    assert set(host.close_counts()) == {1}


def test_engine_serves_concurrent_calls_without_a_port(loop: RealLoop) -> None:
    """Each call of the fallback has its own deadlines."""
    host = host_of(TWO, None)
    for source in host.sources.values():
        source.before_batch = loop.pause
    assert loop.concurrency is not None
    documents: list[bytes] = []

    async def one() -> None:
        result = await host.engine.execute_extraction(await host.plan_all())
        documents.append(direct_of(result).data)

    async def main() -> None:
        await loop.concurrency.run_ordered([one] * 5, 5)

    run(main)
    assert documents == [TWO_DOCUMENT] * 5
