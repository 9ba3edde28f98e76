"""One step of a run: from a source's batches to its part of the document (spec 10.2)."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from fetcher_engine.batches import Batch, EncodedBatch, RowBatch, StreamRequest
from fetcher_engine.concurrency import DeadlineExceeded
from fetcher_engine.context import TenantContext
from fetcher_engine.document import ByteBudget, OutOfOrder, PieceJoiner, StepFrame
from fetcher_engine.encoding import RowEncoder
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.failures import Checkpoint, Phase, from_source, unknown_datasource
from fetcher_engine.ports import BatchStream, Connector
from fetcher_engine.sources import Sources

T = TypeVar("T")

Progress = Callable[[str, str, int, int], None]
"""Called with config name, table, and that table's rows and bytes so far; must not block."""


class StepReader:
    """Reads one source once and emits its part of the document, byte for byte."""

    def __init__(
        self,
        *,
        step: PlanStep,
        frame: StepFrame,
        budget: ByteBudget,
        sources: Sources,
        checkpoint: Checkpoint,
        emit: Callable[[bytes], Awaitable[None]],
        on_end: Callable[[], None],
        progress: Progress | None,
    ) -> None:
        self._step = step
        self._frame = frame
        self._budget = budget
        self._sources = sources
        self._checkpoint = checkpoint
        self._output = PieceJoiner(emit)
        self._on_end = on_end
        self._progress = progress
        self._table = ""
        self._encoder: RowEncoder | None = None
        self._table_rows = 0
        self._table_bytes = 0
        self.row_count = 0

    async def run(self, tenant: TenantContext) -> None:
        """Read to the end. Whatever goes wrong leaves as EngineError, without its origin's text."""
        try:
            await self._run(tenant)
        except (EngineError, DeadlineExceeded):
            raise
        except Exception:  # noqa: BLE001 - a crash in one step is contained (spec 10.3)
            failure = self._crash()
        else:
            return
        await self._checkpoint()
        raise failure

    async def _run(self, tenant: TenantContext) -> None:
        await self._checkpoint()
        descriptor = await self._sources.find(tenant, self._step.config_name)
        if descriptor is None:
            raise unknown_datasource()
        await self._sources.with_connector(descriptor, self._read)

    async def _read(self, connector: Connector) -> None:
        await self._ask(Phase.CONNECT, connector.test_connection)
        await self._checkpoint()
        request = StreamRequest(
            config_name=self._step.config_name,
            tables=self._step.fields,
            filters=self._step.filters,
        )
        stream = await self._ask(Phase.QUERY, lambda: connector.open_stream(request))
        try:
            await self._copy(stream)
        finally:
            await self._sources.shielded(stream.aclose)

    async def _copy(self, stream: BatchStream) -> None:
        while (batch := await self._ask(Phase.QUERY, stream.next_batch)) is not None:
            await self._take(batch)
            await self._checkpoint()
        # a stream that swallowed a cancellation must not pass for one that ended
        await self._checkpoint()
        await self._output.put(self._frame.finish())
        await self._output.flush()
        # told before the connector closes, so that the next step's bytes need not wait for that
        self._on_end()

    async def _take(self, batch: Batch) -> None:
        for data, rows in self._pieces(batch):
            try:
                lead = self._frame.before_rows(batch.table)
            except OutOfOrder:
                lead = b""
            if not lead:
                raise self._crash("table_out_of_order", batch.table)
            # the first bytes of a table are part of the skeleton, which is counted already
            self._budget.spend(len(data) + (len(lead) if lead == b"," else 0))
            self._count(batch.table, rows, len(data))
            await self._output.put(lead)
            await self._output.put(data)
            if self._progress is not None:
                name = self._step.config_name
                self._progress(name, batch.table, self._table_rows, self._table_bytes)

    def _pieces(self, batch: Batch) -> Iterable[tuple[bytes, int]]:
        if isinstance(batch, EncodedBatch) and bool(batch.data) == (batch.row_count > 0):
            return [(batch.data, batch.row_count)] if batch.data else []
        if isinstance(batch, RowBatch):
            return self._encoder_for(batch.table).encode(batch.rows)
        raise self._crash("malformed_batch")

    def _encoder_for(self, table: str) -> RowEncoder:
        if self._encoder is None or self._encoder.table != table:
            self._encoder = RowEncoder(source=self._step.config_name, table=table)
        return self._encoder

    def _count(self, table: str, rows: int, size: int) -> None:
        if table != self._table:
            self._table, self._table_rows, self._table_bytes = table, 0, 0
        self._table_rows += rows
        self._table_bytes += size
        self.row_count += rows

    def _crash(self, reason: str | None = None, table: str | None = None) -> EngineError:
        text = "extraction step failed unexpectedly"
        source = self._step.config_name
        return EngineError(ErrorCategory.INTERNAL, text, source=source, reason=reason, table=table)

    async def _ask(self, phase: Phase, call: Callable[[], Awaitable[T]]) -> T:
        return await from_source(
            call, phase=phase, source=self._step.config_name, checkpoint=self._checkpoint
        )
