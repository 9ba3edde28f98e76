"""A source whose schema and rows are written down, and the connectors to it."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fetcher_engine.batches import Batch, RowBatch, SourceNotes, StreamRequest
from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.ports import BatchStream
from fetcher_engine.schema import SchemaSnapshot, TableSnapshot

Hook = Callable[[], Awaitable[None]]


async def _at_once() -> None:
    """The hook of a source that never makes anybody wait."""


@dataclass(kw_only=True)
class MemorySource:
    """What the connectors of one factory do. Change it between calls to inject faults.

    ``rows`` are cut into batches of ``rows_per_batch`` and to the fields asked for (an empty list
    of fields gives whole rows); ``batches`` wins over them. Hooks run before the step they name;
    one that never returns makes a source that hangs.
    """

    schema: SchemaSnapshot = field(default_factory=lambda: SchemaSnapshot(""))
    rows: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    rows_per_batch: int = 256
    batches: Callable[[StreamRequest], Iterable[Batch]] | None = None
    notes: SourceNotes = field(default_factory=SourceNotes)
    before_test: Hook = _at_once
    before_discovery: Hook = _at_once
    before_query: Hook = _at_once
    before_batch: Hook = _at_once
    before_close: Hook = _at_once
    test_error: Exception | None = None
    discovery_error: Exception | None = None
    query_error: Exception | None = None
    close_error: Exception | None = None
    stream_error: Exception | None = None
    stream_fail_after: int = 0
    """How many batches come before ``stream_error``."""

    @classmethod
    def of_rows(
        cls, rows: Mapping[str, Sequence[Mapping[str, object]]], *, rows_per_batch: int = 256
    ) -> "MemorySource":
        """A source whose schema is what its rows show."""
        tables = (
            TableSnapshot(name, tuple(dict.fromkeys(column for row in table for column in row)))
            for name, table in rows.items()
        )
        schema = SchemaSnapshot("", tuple(tables))
        return cls(schema=schema, rows=rows, rows_per_batch=rows_per_batch)


class MemoryStream:
    """One reading of a source."""

    def __init__(self, source: MemorySource, batches: Iterator[Batch]) -> None:
        self.close_count = 0
        self._source = source
        self._batches = batches
        self._delivered = 0

    async def next_batch(self) -> Batch | None:
        await self._source.before_batch()
        error = self._source.stream_error
        if error is not None and self._delivered >= self._source.stream_fail_after:
            raise error
        self._delivered += 1
        return next(self._batches, None)

    def notes(self) -> SourceNotes:
        return self._source.notes

    async def aclose(self) -> None:
        self.close_count += 1


class MemoryConnector:
    """One connector; it counts what is done with it."""

    def __init__(self, source: MemorySource, descriptor: ConnectionDescriptor) -> None:
        self.descriptor = descriptor
        self.calls: list[str] = []
        self.requests: list[StreamRequest] = []
        self.streams: list[MemoryStream] = []
        self._source = source

    @property
    def close_count(self) -> int:
        """How often it was closed: once, if all is well."""
        return self.calls.count("close")

    async def test_connection(self) -> None:
        self.calls.append("test_connection")
        await self._source.before_test()
        if self._source.test_error is not None:
            raise self._source.test_error

    async def discover_schema(self) -> SchemaSnapshot:
        self.calls.append("discover_schema")
        await self._source.before_discovery()
        if self._source.discovery_error is not None:
            raise self._source.discovery_error
        return self._source.schema

    async def open_stream(self, request: StreamRequest) -> BatchStream:
        self.calls.append("open_stream")
        self.requests.append(request)
        await self._source.before_query()
        if self._source.query_error is not None:
            raise self._source.query_error
        make = self._source.batches or self._row_batches
        stream = MemoryStream(self._source, iter(make(request)))
        self.streams.append(stream)
        return stream

    async def close(self) -> None:
        self.calls.append("close")
        await self._source.before_close()
        if self._source.close_error is not None:
            raise self._source.close_error

    def _row_batches(self, request: StreamRequest) -> Iterator[Batch]:
        size = self._source.rows_per_batch
        for table in sorted(request.tables):
            names = request.tables[table]
            rows = self._source.rows.get(table, ())
            for start in range(0, len(rows), size):
                yield RowBatch(table, [_cut(row, names) for row in rows[start : start + size]])


def _cut(row: Mapping[str, object], names: Sequence[str]) -> Mapping[str, object]:
    return {name: row[name] for name in names if name in row} if names else row


class MemoryConnectorFactory:
    """Builds a new connector each time, to the same source."""

    def __init__(self, source: MemorySource, *, requires_fields: bool = True) -> None:
        self.source = source
        self.requires_fields = requires_fields
        self.build_error: Exception | None = None
        self.builds_nothing = False
        self.built: list[MemoryConnector] = []

    def build(self, descriptor: ConnectionDescriptor) -> MemoryConnector:
        if self.build_error is not None:
            raise self.build_error
        connector = MemoryConnector(self.source, descriptor)
        if self.builds_nothing:
            return None  # type: ignore[return-value]  # a host's mistake, injected
        self.built.append(connector)
        return connector

    @property
    def last_built(self) -> MemoryConnector:
        """The connector of the latest operation."""
        return self.built[-1]

    @property
    def close_counts(self) -> list[int]:
        """How often each connector was closed: all ones when nothing leaks."""
        return [connector.close_count for connector in self.built]
