"""One source's part of a job as spans: connect, look up its schema, read."""

from contextlib import AbstractContextManager, ExitStack
from typing import cast

from fetcher.datasources.records import record_of
from fetcher.ports import SPAN_CANCELLED, Span, SpanKind, Tracer
from fetcher_engine import (
    Batch,
    BatchStream,
    ConnectionDescriptor,
    Connector,
    ConnectorFactory,
    NotedStream,
    SchemaSnapshot,
    SourceNotes,
    StreamRequest,
)


class TracedFactory:
    """Another factory's connectors, each told of by its config name and its type."""

    def __init__(self, inner: ConnectorFactory, tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self.requires_fields = inner.requires_fields

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        return TracedConnector(
            self._inner.build(descriptor), self._tracer, record.type.value, record.config_name
        )


class TracedConnector:
    def __init__(self, inner: Connector, tracer: Tracer, kind: str, config_name: str) -> None:
        self._inner = inner
        self._tracer = tracer
        self._prefix = f"{kind.lower()}.data_source"
        self._attributes = {"db.system": kind.lower(), "fetcher.source": config_name}
        self._reading = ExitStack()

    async def test_connection(self) -> None:
        with self._span("connect"):
            await self._inner.test_connection()

    async def discover_schema(self) -> SchemaSnapshot:
        with self._span("get_database_schema"):
            return await self._inner.discover_schema()

    async def open_stream(self, request: StreamRequest) -> BatchStream:
        """The span ends with the connector, which one task owns."""
        span = self._reading.enter_context(self._span("query"))
        try:
            stream = await self._inner.open_stream(request)
        except BaseException as ending:
            span.ended_by(ending)
            raise
        kind = NotedTracedStream if hasattr(stream, "notes") else TracedStream
        return kind(stream, span)

    async def close(self) -> None:
        with self._reading:
            await self._inner.close()

    def _span(self, what: str) -> AbstractContextManager[Span]:
        return self._tracer.span(
            f"{self._prefix}.{what}", kind=SpanKind.CLIENT, attributes=self._attributes
        )


class TracedStream:
    """Another's batches; what they end by is what the query's span ends by.

    One that is closed before its end was given up: cancelled, or nobody took its rows.
    """

    def __init__(self, inner: BatchStream, span: Span) -> None:
        self._inner = inner
        self._span = span
        self._is_over = False

    async def next_batch(self) -> Batch | None:
        try:
            batch = await self._inner.next_batch()
        except BaseException as ending:
            self._is_over = True
            self._span.ended_by(ending)
            raise
        self._is_over = batch is None
        return batch

    async def aclose(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._span.note(SPAN_CANCELLED, True)
        await self._inner.aclose()


class NotedTracedStream(TracedStream):
    """The same for one that tells how it read."""

    def notes(self) -> SourceNotes:
        return cast("NotedStream", self._inner).notes()


class EngineSpans:
    """Implements the Engine's ``Observability``: its operations are spans under their own names."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start_span(self, operation: str) -> AbstractContextManager[object]:
        return self._tracer.span(operation)
