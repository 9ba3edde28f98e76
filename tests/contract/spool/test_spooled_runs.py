"""A run of the Engine whose later source is done before its first one begins."""

from collections.abc import Callable, Iterable

import pytest
import trio

from fetcher.concurrency import TrioConcurrency
from fetcher_engine import (
    Batch,
    ConnectionDescriptor,
    Engine,
    EngineError,
    ExtractionRequest,
    RowBatch,
    Spool,
    SpoolFile,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

TENANT = TenantContext.new("acme")
ROWS = [{"id": number, "text": "x" * 10_000} for number in range(1200)]
"""12 MiB: three times what may wait in memory."""


class CountingFile:
    def __init__(self, file: SpoolFile, on_refusal: Callable[[], None]) -> None:
        self._file = file
        self._on_refusal = on_refusal
        self.appended_bytes = 0
        self.read_bytes = 0
        self.is_closed = False

    async def append(self, data: bytes) -> None:
        try:
            await self._file.append(data)
        except Exception:
            self._on_refusal()
            raise
        self.appended_bytes += len(data)

    async def read(self, max_bytes: int) -> bytes:
        data = await self._file.read(max_bytes)
        self.read_bytes += len(data)
        return data

    async def aclose(self) -> None:
        await self._file.aclose()
        self.is_closed = True


class CountingSpool:
    def __init__(
        self,
        spool: Spool,
        *,
        max_bytes: int | None = None,
        on_refusal: Callable[[], None] = pytest.fail,
    ) -> None:
        self._spool = spool
        self._max_bytes = max_bytes
        self._on_refusal = on_refusal
        self.files: list[CountingFile] = []

    async def open(self, tenant: TenantContext, max_bytes: int) -> SpoolFile:
        opened = await self._spool.open(tenant, self._max_bytes or max_bytes)
        file = CountingFile(opened, self._on_refusal)
        self.files.append(file)
        return file


class TwoSources:
    """``early`` is first in the document, and says nothing until it is let go."""

    def __init__(self, *, let_go_at_the_end_of_late: bool) -> None:
        self.let_go = trio.Event()
        self.early = MemorySource.of_rows({"t": [{"id": 0}]})
        self.early.before_batch = self.let_go.wait
        self._late = MemorySource.of_rows({"t": ROWS})
        if let_go_at_the_end_of_late:
            self._late.batches = self._late_batches
        self._late.rows_per_batch = 1

    def _late_batches(self, request: StreamRequest) -> Iterable[Batch]:
        yield from (RowBatch("t", [row]) for row in ROWS)
        self.let_go.set()

    async def document(self, spool: Spool | None) -> bytes:
        store = MemoryConnectionStore()
        for name in ("early", "late"):
            store.put(TENANT, ConnectionDescriptor(config_name=name, type=name.upper()))
        factories = {
            "EARLY": MemoryConnectorFactory(self.early),
            "LATE": MemoryConnectorFactory(self._late),
        }
        engine = Engine(
            MemoryRegistry(dict(factories)),
            connection_store=store,
            concurrency=TrioConcurrency(),
            spool=spool,
        )
        fields = {"early": {"t": ["id"]}, "late": {"t": ["id", "text"]}}
        plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=fields))
        with trio.fail_after(20):
            return (await engine.execute_extraction(plan)).document


@pytest.fixture
async def plain_document() -> bytes:
    sources = TwoSources(let_go_at_the_end_of_late=False)
    sources.let_go.set()
    return await sources.document(None)


async def test_a_source_far_ahead_of_its_turn_goes_through_the_spool_and_changes_no_byte(
    spool: Spool, plain_document: bytes
) -> None:
    counting = CountingSpool(spool)
    sources = TwoSources(let_go_at_the_end_of_late=True)
    assert await sources.document(counting) == plain_document
    [file] = counting.files
    assert 7_000_000 < file.appended_bytes < len(plain_document) - 4_000_000
    assert file.read_bytes == file.appended_bytes
    assert file.is_closed


@pytest.mark.parametrize("spool_kind", ["folder"])  # the other one is never full
async def test_a_spool_that_is_full_holds_its_source_back_and_changes_no_byte(
    spool: Spool, plain_document: bytes
) -> None:
    sources = TwoSources(let_go_at_the_end_of_late=False)
    counting = CountingSpool(spool, max_bytes=2_000_000, on_refusal=sources.let_go.set)
    assert await sources.document(counting) == plain_document
    [file] = counting.files
    assert 1_900_000 < file.appended_bytes <= 2_000_000
    assert file.read_bytes == file.appended_bytes
    assert file.is_closed


async def test_a_run_that_fails_closes_its_spool(spool: Spool) -> None:
    counting = CountingSpool(spool)
    sources = TwoSources(let_go_at_the_end_of_late=True)
    sources.early.stream_error = RuntimeError("broken")
    with pytest.raises(EngineError):
        await sources.document(counting)
    [file] = counting.files
    assert file.appended_bytes > 7_000_000
    assert file.is_closed
