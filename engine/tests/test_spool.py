"""What is read ahead of its turn beyond 4 MiB waits in the host's spool (design section 5)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    Batch,
    EncodedBatch,
    ErrorCategory,
    Limits,
    SourceFailure,
    Stage,
    StreamRequest,
)
from fetcher_engine.memory import MemorySource, MemorySpool

from .hosts import TENANT, Host, host_of
from .loops import RealLoop, every_loop, run
from .plans import TWO, TWO_DOCUMENT, execute
from .refusals import leaky, refuses

MIB = 1024 * 1024
ROW = b'{"x":"' + b"y" * (MIB // 4) + b'"}'
AHEAD_ROWS = 40
"""10 MiB: more than twice what memory holds."""


class Reading:
    """Two sources: ``a`` gives its row once ``b`` has been read as far as it goes on its own."""

    def __init__(self, loop: RealLoop, spool: MemorySpool | None, **limits: Any) -> None:
        self.delivered = 0
        self._loop = loop
        ahead = MemorySource.of_rows({"t": [{"x": ""}]})
        ahead.batches = self._rows_ahead
        first = MemorySource.of_rows({"t": [{"x": ""}]})
        first.before_batch = self._until_b_is_stuck
        options = {"spool": spool, "limits": Limits(**limits)}
        self.host = Host({"a": first, "b": ahead}, options=options)
        self.ahead = ahead
        self.received = bytearray()
        self.delivered_at_first_write: int | None = None
        self.before_first_write: Callable[[], None] = lambda: None

    def _rows_ahead(self, request: StreamRequest) -> Iterator[Batch]:
        for _ in range(AHEAD_ROWS):
            self.delivered += 1
            yield EncodedBatch("t", ROW, 1)

    async def _until_b_is_stuck(self) -> None:
        before = -1
        while self.delivered != before:
            before = self.delivered
            for _ in range(50):
                await self._loop.pause()

    async def stream(self) -> None:
        async def write(piece: bytes | memoryview) -> None:
            if self.delivered_at_first_write is None:
                self.delivered_at_first_write = self.delivered
                self.before_first_write()
            self.received.extend(piece)

        plan = replace(await self.host.plan_all(), request_id="j1")
        await self.host.engine.stream_extraction(plan, write)

    @property
    def expected(self) -> bytes:
        return b'{"a":{"t":[{"x":""}]},"b":{"t":[' + b",".join([ROW] * AHEAD_ROWS) + b"]}}"


def test_without_a_spool_a_step_waits_at_4_mebibytes(loop: RealLoop) -> None:
    reading = Reading(loop, None)
    run(reading.stream())
    assert reading.received == reading.expected
    # 15 rows of 256 KiB and some bytes fit into 4 MiB; one waits to be sent
    assert reading.delivered_at_first_write == 16


def test_with_a_spool_a_step_reads_on_and_the_bytes_are_the_same(loop: RealLoop) -> None:
    spool = MemorySpool()
    reading = Reading(loop, spool)
    run(reading.stream())
    assert reading.received == reading.expected
    assert reading.delivered_at_first_write == AHEAD_ROWS
    (file,) = spool.files
    assert (file.tenant.tenant_id, file.max_bytes) == (TENANT.tenant_id, 256 * MIB)
    assert 5 * MIB < file.appended_bytes < 7 * MIB
    assert file.unread_bytes == 0
    assert file.close_count >= 1


def test_a_step_whose_turn_has_come_does_not_spool_however_slow_the_host_writes(
    loop: RealLoop,
) -> None:
    spool = MemorySpool()
    source = MemorySource.of_rows({"t": [{"x": ""}]})
    source.batches = lambda _: iter([EncodedBatch("t", ROW, 1)] * AHEAD_ROWS)
    host = Host({"a": source}, options={"spool": spool})

    async def write(piece: bytes | memoryview) -> None:
        for _ in range(20):
            await loop.pause()

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write)

    run(main())
    assert spool.files == []


def test_small_results_need_no_spool_file(loop: RealLoop) -> None:
    spool = MemorySpool()
    assert execute(host_of(TWO, spool=spool)).document == TWO_DOCUMENT
    assert spool.files == []


@pytest.mark.parametrize("fault", ["open_error", "append_error"])
def test_spool_that_takes_nothing_costs_time_but_not_the_run(loop: RealLoop, fault: str) -> None:
    spool = MemorySpool()
    setattr(spool, fault, leaky(OSError))
    reading = Reading(loop, spool)
    run(reading.stream())
    assert reading.received == reading.expected
    assert reading.delivered_at_first_write == 16
    opened = 0 if fault == "open_error" else 1
    assert [file.close_count >= 1 for file in spool.files] == [True] * opened


def test_spool_that_fills_up_is_used_as_far_as_it_goes(loop: RealLoop) -> None:
    class SmallSpool(MemorySpool):
        @property
        def append_error(self) -> Exception | None:
            full = bool(self.files) and self.files[0].appended_bytes > 2 * MIB
            return leaky(OSError) if full else None

        @append_error.setter
        def append_error(self, value: Exception | None) -> None: ...

    spool = SmallSpool()
    reading = Reading(loop, spool)
    run(reading.stream())
    assert reading.received == reading.expected
    assert 2 * MIB < spool.files[0].appended_bytes < 3 * MIB


def test_spool_that_loses_its_bytes_fails_the_run(loop: RealLoop) -> None:
    spool = MemorySpool()
    reading = Reading(loop, spool)

    def break_it() -> None:
        spool.read_error = leaky(OSError)

    reading.before_first_write = break_it
    with refuses(ErrorCategory.UNAVAILABLE, "failed to spool extraction result"):
        run(reading.stream())
    assert spool.files[0].close_count >= 1
    assert set(reading.host.close_counts()) == {1}


@pytest.mark.parametrize("answer", [b"", b"z" * (MIB + 1)], ids=["nothing", "too much"])
def test_spool_that_gives_what_was_not_asked_for_fails_the_run(
    loop: RealLoop, answer: bytes
) -> None:
    class WrongSpool(MemorySpool):
        async def open(self, tenant: Any, max_bytes: int) -> Any:
            file = await super().open(tenant, max_bytes)

            async def read(max_bytes: int) -> bytes:
                return answer

            file.read = read  # type: ignore[method-assign]
            return file

    reading = Reading(loop, WrongSpool())
    with refuses(ErrorCategory.UNAVAILABLE, "failed to spool extraction result"):
        run(reading.stream())


def test_spool_is_freed_when_a_source_fails(loop: RealLoop) -> None:
    spool = MemorySpool()
    reading = Reading(loop, spool)
    reading.ahead.stream_error = SourceFailure(Stage.ROWS, "reset")
    reading.ahead.stream_fail_after = AHEAD_ROWS
    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource"):
        run(reading.stream())
    assert [file.close_count for file in spool.files] == [1]


def test_spool_is_freed_when_the_run_is_cancelled(loop: RealLoop) -> None:
    spool = MemorySpool()
    reading = Reading(loop, spool)
    assert (
        run(lambda: loop.run_and_cancel(reading.stream, lambda: bool(spool.files))) == "cancelled"
    )
    assert [file.close_count for file in spool.files] == [1]


def test_the_whole_result_is_bounded_however_much_is_spooled(loop: RealLoop) -> None:
    spool = MemorySpool()
    reading = Reading(loop, spool, max_result_bytes=7 * MIB)
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        run(reading.stream())
    assert spool.files[0].max_bytes == 7 * MIB
    assert spool.files[0].appended_bytes < 7 * MIB
    assert reading.delivered == 28


@every_loop
def test_a_spool_makes_no_difference_to_a_small_failure() -> None:
    spool = MemorySpool()
    host = host_of(TWO, spool=spool)
    host.sources["b"].query_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource"):
        execute(host)
    assert set(host.close_counts()) == {1}
    assert spool.files == []
