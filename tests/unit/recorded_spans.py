"""Spans as the library keeps them, in memory."""

from collections.abc import Mapping

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.status import StatusCode

from fetcher.adapters.telemetry.tracer import OtelTracer


class RecordedSpans:
    """A tracer, and what became of its spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OtelTracer(provider.get_tracer("test"))

    def all(self) -> Mapping[str, ReadableSpan]:
        """Ended ones by their names."""
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def endings(self) -> dict[str, str]:
        """How each ended: ``ok``, ``cancelled``, or the code of its failure."""
        return {name: _ending(span) for name, span in self.all().items()}

    def told(self) -> str:
        """Everything that a collector would hear."""
        return "".join(span.to_json() for span in self._exporter.get_finished_spans())


def _ending(span: ReadableSpan) -> str:
    attributes = span.attributes or {}
    assert not span.events, "no exception's text"
    assert span.status.description is None
    if span.status.status_code is StatusCode.ERROR:
        assert "fetcher.cancelled" not in attributes
        return str(attributes["error.type"])
    assert "error.type" not in attributes
    return "cancelled" if attributes.get("fetcher.cancelled") else "ok"
