"""Where spans go: a collector that takes OTLP over HTTP, asked from a thread of its own."""

import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import structlog
import trio
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from fetcher.adapters.telemetry.tracer import OtelTracer

log = structlog.get_logger(__name__)

TRACES_PATH: Final = "/v1/traces"
MAX_QUEUED: Final = 2048
"""Spans that wait for the collector; more are dropped."""
BATCH: Final = 512
PAUSE_MS: Final = 2000
EXPORT_SECONDS: Final = 5.0
FLUSH_SECONDS: Final = 5.0
"""For what is left at the end of the process."""
TOLD_EVERY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    base_url: str
    """``http://`` or ``https://`` with host and port; :data:`TRACES_PATH` is put behind it."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What every span says of the process it comes from."""

    service_name: str
    service_version: str
    environment: str
    library_name: str


@asynccontextmanager
async def open_traces(
    collector: Collector, origin: Origin, *, pause_ms: int = PAUSE_MS
) -> AsyncIterator[OtelTracer]:
    """Opens no connection. Leaving it sends what is left, for at most five seconds."""
    provider = TracerProvider(
        resource=Resource(_attributes(origin)),
        shutdown_on_exit=False,
    )
    exporter = _ToldExporter(
        OTLPSpanExporter(
            endpoint=collector.base_url + TRACES_PATH,
            headers=dict(collector.headers),
            timeout=EXPORT_SECONDS,
        )
    )
    processor = BatchSpanProcessor(
        cast("Any", exporter),
        max_queue_size=MAX_QUEUED,
        schedule_delay_millis=pause_ms,
        max_export_batch_size=BATCH,
        export_timeout_millis=EXPORT_SECONDS * 1000,
    )
    provider.add_span_processor(processor)
    try:
        yield OtelTracer(provider.get_tracer(origin.library_name))
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(FLUSH_SECONDS):
            await trio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)


def _attributes(origin: Origin) -> dict[str, str]:
    told = {
        "service.name": origin.service_name,
        "service.version": origin.service_version,
        "deployment.environment.name": origin.environment,
    }
    return {name: value for name, value in told.items() if value}


class _ToldExporter:
    """Tells once a minute that spans are lost: the library's own records have the address."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._told_at = -TOLD_EVERY_SECONDS

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result: SpanExportResult = self._inner.export(spans)
        except Exception:  # noqa: BLE001 - whatever the library or the network raises: spans are lost
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._tell(len(spans))
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._inner.force_flush(timeout_millis))

    def _tell(self, lost: int) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._told_at < TOLD_EVERY_SECONDS:
                return
            self._told_at = now
        log.warning("traces_not_exported", spans=lost)
