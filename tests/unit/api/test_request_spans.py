"""Which requests have a span, and what it tells."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import ANY

import pytest
from prometheus_client import CollectorRegistry

from fetcher.api.metrics import HttpMetrics
from fetcher.api.observation import Observed
from fetcher.domain.trace_context import TraceContext
from fetcher.ports import Span, SpanKind, SpanValue
from tests.unit.api.asgi_client import a_scope
from tests.unit.api.harness import CONNECTIONS, an_api
from tests.unit.recorded_spans import RecordedSpans


@dataclass
class Noted:
    """One span, as it was told."""

    name: str
    notes: dict[str, SpanValue] = field(default_factory=dict)
    context: TraceContext | None = None
    failed: str | None = None

    def rename(self, name: str) -> None:
        self.name = name

    def note(self, name: str, value: SpanValue) -> None:
        self.notes[name] = value

    def fail(self, code: str) -> None:
        self.failed = code

    def ended_by(self, ending: BaseException) -> None:
        self.failed = type(ending).__name__


class Noting:
    """A tracer that keeps what it was told."""

    def __init__(self) -> None:
        self.spans: list[Noted] = []

    @contextmanager
    def span(
        self,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: TraceContext | None = None,
        attributes: Mapping[str, SpanValue] | None = None,
    ) -> Iterator[Span]:
        noted = Noted(name, dict(attributes or {}))
        self.spans.append(noted)
        yield noted


async def test_a_request_whose_caller_has_gone_was_given_up() -> None:
    spans = RecordedSpans()

    async def silent(scope: object, receive: object, send: object) -> None:
        """Nobody waits for its answer any more."""

    observed = Observed(silent, metrics=HttpMetrics(CollectorRegistry()), tracer=spans.tracer)
    await observed(a_scope("GET", b"/version"), ANY, ANY)
    assert list(spans.endings().values()) == ["cancelled"]


async def spans_of(path: str) -> list[Noted]:
    tracer = Noting()
    await an_api(tracer=tracer).get(path)
    return tracer.spans


async def test_request_has_a_span_by_its_route_s_template() -> None:
    (span,) = await spans_of(f"{CONNECTIONS}/{'0' * 32}")
    assert span.name == "GET /v1/management/connections/{id}"
    assert span.notes == {
        "http.request.method": "GET",
        "http.route": "/v1/management/connections/{id}",
        "http.response.status_code": 404,
    }
    assert span.failed is None


@pytest.mark.parametrize(
    "path", ["/health", "/health/", "/readyz", "/readyz/tenant/acme-9", "/metrics"]
)
async def test_what_machines_ask_every_few_seconds_has_no_span(path: str) -> None:
    assert await spans_of(path) == []


@pytest.mark.parametrize("path", ["/version", "/readyz/tenant", "/readyz/tenant/a/b", "/healthy"])
async def test_what_only_looks_like_it_has_one(path: str) -> None:
    assert len(await spans_of(path)) == 1
