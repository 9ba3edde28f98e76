"""The outermost layer: request id, access log, metrics, and the last line against crashes."""

import re
import uuid

import structlog
import trio
from hypercorn.typing import ASGISendEvent, HTTPResponseStartEvent, HTTPScope, Scope

from fetcher.api.asgi import (
    OF_SOURCE,
    REQUEST_ID,
    ROUTE,
    TENANT,
    UNMATCHED,
    AsgiApp,
    Receive,
    Send,
    header,
    note,
    noted,
    send_end,
    send_problem,
    sent_trace,
)
from fetcher.api.metrics import KNOWN_METHODS, HttpMetrics
from fetcher.api.problems import Problem, problem_of
from fetcher.domain.crash_report import crash_places, crash_types
from fetcher.ports import SPAN_CANCELLED, UNTRACED, SpanKind, Tracer

log = structlog.get_logger(__name__)

MAX_REQUEST_ID_CHARACTERS = 128
CLIENT_GONE = 499
"""What is logged where no answer was sent because nobody waited for it any more."""

_REMOVED = re.compile(r"[\r\n\0]")
_QUIET = frozenset({"/health", "/readyz", "/readyz/tenant/{id}", "/metrics"})
"""Templates of routes that machines ask every few seconds: neither logged nor traced."""
_PARAMETER = re.compile(r"\{[^}]*\}")
_QUIET_PATH = re.compile("(?:" + "|".join(_PARAMETER.sub("[^/]+", each) for each in _QUIET) + ")/?")
"""Their paths as sent: the route is not known yet when a span begins."""


def effective_request_id(sent: str | None) -> str:
    """The caller's id without CR, LF and NUL, or a new one (spec configuration 10.2)."""
    cleaned = _REMOVED.sub("", sent or "").strip()
    unusable = cleaned in ("", "null", "nil") or len(cleaned) > MAX_REQUEST_ID_CHARACTERS
    if unusable or not (cleaned.isascii() and cleaned.isprintable()):
        return str(uuid.uuid4())
    return cleaned


def crash_facts(error: BaseException) -> dict[str, object]:
    """Type and place of an unexpected error; never its text, which may hold anything."""
    return {"error": crash_types(error), "where": crash_places(error)}


class Observed:
    """Gives each request its id, and tells what became of it."""

    def __init__(
        self,
        app: AsgiApp,
        *,
        metrics: HttpMetrics,
        tracer: Tracer = UNTRACED,
        trusts_sent_trace: bool = False,
    ) -> None:
        """With ``trusts_sent_trace`` a request goes on with the trace that its headers name."""
        self._app = app
        self._tracer = tracer
        self._trusts_sent_trace = trusts_sent_trace
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = effective_request_id(header(scope, b"x-request-id"))
        note(scope, REQUEST_ID, request_id)
        answer = _Answer(send, request_id)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            if _QUIET_PATH.fullmatch(scope["path"]):
                await self._answer(scope, receive, answer)
                return
            parent = sent_trace(scope) if self._trusts_sent_trace else None
            method = _method(scope)
            with self._tracer.span(method, kind=SpanKind.SERVER, parent=parent) as span:
                await self._answer(scope, receive, answer)
                route = noted(scope, ROUTE) or UNMATCHED
                span.rename(f"{method} {route}")
                span.note("http.request.method", method)
                span.note("http.route", route)
                for name, tenant_id in _tenant(scope, "tenant.id").items():
                    span.note(name, tenant_id)
                status = answer.status or CLIENT_GONE
                span.note("http.response.status_code", status)
                if status >= 500:
                    span.fail(str(status))
                elif answer.status is None:
                    span.note(SPAN_CANCELLED, True)

    async def _answer(self, scope: HTTPScope, receive: Receive, answer: "_Answer") -> None:
        started = trio.current_time()
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:  # noqa: BLE001 - one request's crash must not end others
            problem = problem_of(_only_one_of(error))
            if answer.has_begun or problem.status >= 500:
                log.error("request_crashed", **crash_facts(error), **_tenant(scope))
            await answer.fail(problem)
        finally:
            self._tell(scope, answer, trio.current_time() - started)

    def _tell(self, scope: HTTPScope, answer: "_Answer", seconds: float) -> None:
        route = noted(scope, ROUTE) or UNMATCHED
        method = _method(scope)
        status = answer.status or CLIENT_GONE
        self._metrics.observe(method=method, route=route, status=status, seconds=seconds)
        if route in _QUIET:
            return
        is_ours = status >= 500 and noted(scope, OF_SOURCE) is None
        tell = log.error if is_ours else log.warning if status >= 400 else log.info
        tell(
            f"{_client(scope)} {method} {route} HTTP/{scope['http_version']} "
            f"{status} {answer.body_bytes}",
            http_status_code=status,
            http_method=method,
            http_path=route,
            http_latency_ms=round(seconds * 1000),
            message_prefix=f"{answer.request_id} | ",
            **{"X-Request-Id": answer.request_id},
            **_tenant(scope),
        )


class _Answer:
    """The way back: adds the request id, remembers status and size.

    The head is held until the first piece of the body: what fails before it has sent anything, like
    a stream whose object is gone, still gets a status that says so.
    """

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._head: HTTPResponseStartEvent | None = None
        self.request_id = request_id
        self.status: int | None = None
        self.body_bytes = 0

    @property
    def has_begun(self) -> bool:
        return self.status is not None

    async def send(self, event: ASGISendEvent) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [
                *event["headers"],
                (b"x-request-id", self.request_id.encode("ascii")),
            ]
            self._head = event
            return
        if self._head is not None:
            head, self._head = self._head, None
            self.status = head["status"]
            await self._send(head)
        if event["type"] == "http.response.body":
            self.body_bytes += len(event["body"])
        await self._send(event)

    async def fail(self, problem: Problem) -> None:
        """The problem where nothing was sent yet; otherwise the server cuts the answer short."""
        if not self.has_begun:
            await send_problem(self.send, problem)
            await send_end(self.send)


def _only_one_of(error: Exception) -> Exception:
    """What a nursery has wrapped, where it is one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _tenant(scope: HTTPScope, name: str = "tenant_id") -> dict[str, str]:
    """Whose request it was, where there are tenants."""
    tenant_id = noted(scope, TENANT)
    return {} if tenant_id is None else {name: tenant_id}


def _method(scope: HTTPScope) -> str:
    return scope["method"] if scope["method"] in KNOWN_METHODS else "OTHER"


def _client(scope: HTTPScope) -> str:
    client = scope.get("client")
    return client[0] if client else "-"
