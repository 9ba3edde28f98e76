"""Spans by OpenTelemetry's SDK, without a text that came from outside."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation import set_span_in_context
from opentelemetry.trace.status import Status, StatusCode

from fetcher.domain.cancellation import is_cancellation, sole_failure
from fetcher.domain.crash_report import crash_types
from fetcher.domain.errors import FetcherError, PortError
from fetcher.domain.trace_context import TraceContext, current_trace, enter_trace, leave_trace
from fetcher.ports import SPAN_CANCELLED, Span, SpanKind, SpanValue
from fetcher_engine import EngineError, SourceFailure

MAX_TEXT: Final = 4096
"""Bytes of an attribute (spec configuration 10.3); all of ours are ASCII."""

_WORDS: Final = re.compile(r"[a-z][a-z0-9_]{0,39}(?: [a-z0-9_]{1,39})?", re.ASCII)
"""What the Engine takes for a reason."""

_KINDS: Final = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
}
_BOUND: Final = {"request_id": "app.request.request_id", "job_id": "fetcher.job.id"}
"""Of what log records are bound to, what every span has too."""


class OtelSpan:
    def __init__(self, span: trace.Span, context: TraceContext) -> None:
        self._span = span
        self.context = context

    def rename(self, name: str) -> None:
        self._span.update_name(name[:MAX_TEXT])

    def note(self, name: str, value: SpanValue) -> None:
        self._span.set_attribute(name, _short(value))

    def fail(self, code: str) -> None:
        self._span.set_attribute("error.type", code[:MAX_TEXT])
        self._span.set_status(Status(StatusCode.ERROR))

    def ended_by(self, ending: BaseException) -> None:
        if is_cancellation(ending):
            self.note(SPAN_CANCELLED, True)
        else:
            self.fail(_code_of(ending))


class OtelTracer:
    """Implements :class:`fetcher.ports.Tracer`."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def span(
        self,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: TraceContext | None = None,
        attributes: Mapping[str, SpanValue] | None = None,
    ) -> Iterator[Span]:
        above = parent or current_trace()
        bound = structlog.contextvars.get_contextvars()
        known = {told: str(bound[name]) for name, told in _BOUND.items() if name in bound}
        span = self._tracer.start_span(
            name,
            context=_below(above, is_remote=parent is not None),
            kind=_KINDS[kind],
            attributes={n: _short(v) for n, v in {**known, **(attributes or {})}.items()},
            record_exception=False,
            set_status_on_exception=False,
        )
        told = OtelSpan(span, _context_of(span))
        token = enter_trace(told.context)
        try:
            yield told
        except BaseException as ending:
            told.ended_by(ending)
            raise
        finally:
            leave_trace(token)
            span.end()


def _short(value: SpanValue) -> SpanValue:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _code_of(ending: BaseException) -> str:
    """A code of ours, else the type: a text may hold anything."""
    ending = sole_failure(ending)
    if isinstance(ending, FetcherError | PortError):
        return ending.code
    if isinstance(ending, EngineError):
        return ending.category.value
    if isinstance(ending, SourceFailure):
        # a connector that is not ours may have put anything there
        return ending.reason if _WORDS.fullmatch(ending.reason) else "unknown"
    return crash_types(ending)


def _below(above: TraceContext | None, *, is_remote: bool) -> Context:
    """An empty context makes a new trace; the library's own current span is never asked."""
    if above is None:
        return Context()
    known = trace.SpanContext(
        trace_id=int(above.trace_id, 16),
        span_id=int(above.span_id, 16),
        is_remote=is_remote,
        trace_flags=trace.TraceFlags(int(above.parent[53:], 16)),
        trace_state=trace.TraceState.from_header([above.state]) if above.state else None,
    )
    return set_span_in_context(trace.NonRecordingSpan(known), Context())


def _context_of(span: trace.Span) -> TraceContext:
    known = span.get_span_context()
    return TraceContext(
        f"00-{known.trace_id:032x}-{known.span_id:016x}-{int(known.trace_flags):02x}",
        known.trace_state.to_header() if known.trace_state else "",
    )
