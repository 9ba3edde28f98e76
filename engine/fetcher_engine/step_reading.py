"""One step of a run: from a source's batches to its part of the document (spec 10.2)."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, TypeVar

from fetcher_engine.batches import Batch, EncodedBatch, RowBatch, SourceNotes, StreamRequest
from fetcher_engine.concurrency import DeadlineExceeded
from fetcher_engine.context import TenantContext
from fetcher_engine.encoding import RowEncoder
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import PlanStep
from fetcher_engine.failures import (
    Checkpoint,
    Phase,
    asked_names,
    from_source,
    unknown_datasource,
)
from fetcher_engine.port_check import check_extension, check_port
from fetcher_engine.ports import BatchStream, Connector, NotedStream, RowEncoding
from fetcher_engine.result_format import StepOutput, TableOutOfOrder
from fetcher_engine.row_pieces import JoinedRows, MalformedBatch, RowPiece
from fetcher_engine.sources import Sources

T = TypeVar("T")

ENCODING_REASONS = frozenset({"not_encodable", "invalid_text"})


class Progress(Protocol):
    """What a host is told of each piece of rows; it must not block. An exception ends the run."""

    def __call__(self, config_name: str, table: str, rows: int, size_bytes: int, /) -> None:
        """Rows and bytes of this table so far; they begin anew with each table."""


class StepReader:
    """Reads one source once and gives its rows to its part of the result."""

    def __init__(
        self,
        *,
        step: PlanStep,
        output: StepOutput,
        sources: Sources,
        checkpoint: Checkpoint,
        on_end: Callable[[], None],
        progress: Progress | None,
        row_encoding: RowEncoding | None,
    ) -> None:
        self._step = step
        self._output = output
        self._sources = sources
        self._checkpoint = checkpoint
        self._on_end = on_end
        self._progress = progress
        self._row_encoding = row_encoding
        self._asked = {
            # without a list of fields everything is asked for
            table: {*(fields or ["*"]), *step.filters.get(table, ())}
            for table, fields in step.fields.items()
        }
        self._table = ""
        self._encoder: RowEncoder | None = None
        self._table_rows = 0
        self._table_bytes = 0
        self.row_count = 0
        self.notes = SourceNotes()

    async def run(self, tenant: TenantContext) -> None:
        """Read to the end. Whatever goes wrong leaves as EngineError, without its origin's text."""
        try:
            return await self._run(tenant)
        except DeadlineExceeded:
            raise
        except EngineError as error:
            failure = error
        except Exception:  # noqa: BLE001 - a crash in one step is contained (spec 10.3)
            failure = self._crash()
        if failure.category is ErrorCategory.INTERNAL:
            # an ended deadline or a cancellation is what went wrong (spec 10.7)
            await self._checkpoint()
        raise failure

    async def _run(self, tenant: TenantContext) -> None:
        await self._checkpoint()
        descriptor = await self._sources.find(tenant, self._step.config_name)
        if descriptor is None:
            raise unknown_datasource(self._step.config_name)
        await self._sources.with_connector(descriptor, self._read)

    async def _read(self, connector: Connector) -> None:
        await self._ask(Phase.CONNECT, connector.test_connection)
        await self._checkpoint()
        request = StreamRequest(
            config_name=self._step.config_name,
            tables=self._step.fields,
            filters=self._step.filters,
        )

        async def opened() -> tuple[BatchStream, NotedStream | None]:
            stream = check_port(await connector.open_stream(request), BatchStream, "batch stream")
            if stream is None:
                raise TypeError
            return stream, check_extension(stream, NotedStream, BatchStream, "batch stream")

        stream, noted = await self._ask(Phase.QUERY, opened)
        await self._sources.cleaned_up_after(lambda: self._copy(stream, noted), stream.aclose)

    async def _copy(self, stream: BatchStream, noted: NotedStream | None) -> None:
        while (batch := await self._ask(Phase.QUERY, stream.next_batch)) is not None:
            await self._take(batch)
            await self._checkpoint()
        # a stream that swallowed a cancellation must not pass for one that ended
        await self._checkpoint()
        if noted is not None:
            self._take_notes(noted)
        await self._output.finish()
        # told before the connector closes, so that the next step's bytes need not wait for that
        self._on_end()

    def _take_notes(self, stream: NotedStream) -> None:
        reason: str | None = None
        with suppress(Exception):
            told: object = stream.notes()
            if isinstance(told, SourceNotes):
                self.notes = told
                return
            reason = "malformed_notes"
        raise self._crash(reason)

    async def _take(self, batch: Batch) -> None:
        for piece in self._pieces(batch):
            await self._put(batch.table, piece)
            self._count(batch.table, piece.row_count, piece.size_bytes)
            self._tell(batch.table)
            await self._checkpoint()

    def _tell(self, table: str) -> None:
        if self._progress is None:
            return
        try:
            name = self._step.config_name
            self._progress(name, table, self._table_rows, self._table_bytes)
        except Exception:  # noqa: BLE001 - the boundary to the host's function
            failure = self._crash()
        else:
            return
        raise failure

    async def _put(self, table: str, piece: RowPiece) -> None:
        try:
            return await self._output.put(table, piece)
        except TableOutOfOrder:
            failure = self._crash("table_out_of_order", table)
        except MalformedBatch:
            failure = self._crash("malformed_batch", table)
        raise failure

    def _pieces(self, batch: Batch) -> Iterable[RowPiece]:
        if isinstance(batch, EncodedBatch) and _is_sound(batch):
            return [JoinedRows(batch.data, batch.row_count)] if batch.data else []
        if isinstance(batch, RowBatch):
            return self._encoded(batch)
        raise self._crash("malformed_batch", getattr(batch, "table", None))

    def _encoded(self, batch: RowBatch) -> Iterator[RowPiece]:
        if batch.table not in self._step.fields:
            raise self._crash("table_out_of_order")
        try:
            yield from self._encoder_for(batch.table).pieces(batch.rows)
        except EngineError as error:
            failure = error
        else:
            return
        # the rows may be of any kind, and hold columns that nobody asked for
        reason = failure.reason if failure.reason in ENCODING_REASONS else "not_encodable"
        table, column = asked_names(batch.table, failure.column, self._asked)
        raise EngineError(
            ErrorCategory.INTERNAL,
            "failed to serialize extraction result",
            source=self._step.config_name,
            reason=reason,
            table=table,
            column=column,
        )

    def _encoder_for(self, table: str) -> RowEncoder:
        if self._encoder is None or self._encoder.table != table:
            self._encoder = RowEncoder(
                source=self._step.config_name, table=table, encoding=self._row_encoding
            )
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
        table = table if isinstance(table, str) and table in self._step.fields else None
        return EngineError(ErrorCategory.INTERNAL, text, source=source, reason=reason, table=table)

    async def _ask(self, phase: Phase, call: Callable[[], Awaitable[T]]) -> T:
        return await from_source(
            call,
            phase=phase,
            source=self._step.config_name,
            checkpoint=self._checkpoint,
            asked=self._asked,
        )


def _is_sound(batch: EncodedBatch) -> bool:
    """Whether it looks like so many objects; a buffer that its owner writes to again does not."""
    data, rows = batch.data, batch.row_count
    if type(data) is not bytes or type(rows) is not int:
        return False
    return (data[:1], data[-1:]) == (b"{", b"}") if rows > 0 else not (data or rows)
