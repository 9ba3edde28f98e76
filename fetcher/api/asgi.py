"""ASGI as our middlewares see it."""

from collections.abc import Awaitable, Mapping
from typing import Protocol

from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPScope,
    Scope,
    WWWScope,
)

from fetcher.api.problems import Problem
from fetcher.commands.audit import Caller
from fetcher.domain.audit import ANONYMOUS
from fetcher.domain.trace_context import TraceContext, trace_context

ROUTE = "fetcher.route"
"""Scope key: the route's template, set by the application once it knows it."""
FOUND = "fetcher.found"
"""Scope key: the name of the route that the request will reach, empty where there is none."""
TENANT = "fetcher.tenant"
"""Scope key: the tenant on whose behalf the request runs, where there are tenants."""
ADMITTED = "fetcher.admitted"
"""Scope key: the operation that the caller was found to be allowed."""
SUBJECT = "fetcher.subject"
"""Scope key: who calls, where that was asked."""
REQUEST_ID = "fetcher.request_id"
"""Scope key: the effective request id."""
OF_SOURCE = "fetcher.of_source"
"""Scope key: the answer tells of the caller's own data source, whatever its status."""
UNMATCHED = "/{unmatched}"
CONTENT_SECURITY_POLICY = "Content-Security-Policy"

Receive = ASGIReceiveCallable
Send = ASGISendCallable


class AsgiApp(Protocol):
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]: ...


def header(scope: HTTPScope, name: bytes) -> str | None:
    """The first header of that name (lower case), as Latin-1."""
    for key, value in scope["headers"]:
        if key.lower() == name:
            return value.decode("latin-1")
    return None


def sent_trace(scope: HTTPScope) -> TraceContext | None:
    """The caller's own trace, where its headers name one."""
    return trace_context(header(scope, b"traceparent"), header(scope, b"tracestate"))


def note(scope: WWWScope, key: str, value: str) -> None:
    """Leave a word for the outer middlewares."""
    scope[key] = value  # type: ignore[literal-required] # the scope is open for extensions


def noted(scope: WWWScope, key: str) -> str | None:
    value: str | None = scope.get(key)  # type: ignore[assignment] # the scope is open for extensions
    return value


def request_id_of(scope: WWWScope) -> str:
    """The id that the outermost layer gave the request."""
    return noted(scope, REQUEST_ID) or ""


def tenant_id_of(scope: WWWScope) -> str:
    """Whose request it is, empty where there are no tenants or none is needed."""
    return noted(scope, TENANT) or ""


def caller_of(scope: WWWScope) -> Caller:
    """Who is behind the request, for the audit trail."""
    return Caller(actor=noted(scope, SUBJECT) or ANONYMOUS, request_id=request_id_of(scope))


async def send_problem(
    send: Send, problem: Problem, *, more_headers: Mapping[str, str] | None = None
) -> None:
    """The whole answer, but for its end: :func:`send_end` ends it, and may wait a little."""
    body = problem.content
    headers = {
        "content-type": problem.content_type,
        "content-length": str(len(body)),
        **problem.headers,
        **(more_headers or {}),
    }
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def send_end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})
