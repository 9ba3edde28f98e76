"""The size of a result stops at the byte (spec 21.9)."""

from fetcher_engine import ErrorCategory, Limits

from .hosts import direct_of, host_of
from .loops import every_loop, run
from .plans import FAILED, RUNNING, TWO, TWO_DOCUMENT, execute
from .refusals import refuses

pytestmark = every_loop


def test_document_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    limits = Limits(max_result_bytes=len(TWO_DOCUMENT))
    host = host_of(TWO, limits=limits)
    assert direct_of(execute(host)).data == TWO_DOCUMENT
    tight = host_of(TWO, limits=Limits(max_result_bytes=len(TWO_DOCUMENT) - 1))
    with refuses(
        ErrorCategory.LIMIT_EXCEEDED, "extraction result exceeds the configured size limit"
    ):
        execute(tight)
    assert set(tight.close_counts()) == {1}
    assert tight.executions.statuses == [RUNNING, FAILED]


def test_plan_cannot_raise_the_engines_limits() -> None:
    host = host_of(TWO, limits=Limits(max_result_bytes=10))
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits.defaults())


def test_nothing_is_connected_when_the_empty_document_is_too_large() -> None:
    host = host_of(TWO)
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits(max_result_bytes=8))
    assert host.close_counts() == []


def test_reading_stops_with_the_batch_that_passes_the_limit() -> None:
    host = host_of({"a": {"t": [{"x": 1}] * 100}})
    host.sources["a"].rows_per_batch = 10
    reads = 0

    async def count() -> None:
        nonlocal reads
        reads += 1

    host.sources["a"].before_batch = count
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host, limits=Limits(max_result_bytes=200))
    # 13 bytes around the rows, 79 a batch of ten, one comma between batches: the third is too much
    assert reads == 3


def test_no_byte_beyond_the_limit_is_written() -> None:
    host = host_of({"a": {"t": [{"x": "y" * 70_000}] * 5}}, limits=Limits(max_result_bytes=200_000))
    host.sources["a"].rows_per_batch = 1
    written = 0

    async def write(piece: bytes | memoryview) -> None:
        nonlocal written
        written += len(piece)

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        run(main())
    assert 0 < written <= 200_000
