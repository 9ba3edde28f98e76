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

ROUTE = "fetcher.route"
"""Scope key: the route's template, set by the application once it knows it."""
ADMITTED = "fetcher.admitted"
"""Scope key: the operation that the caller was found to be allowed."""
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


def note(scope: WWWScope, key: str, value: str) -> None:
    """Leave a word for the outer middlewares."""
    scope[key] = value  # type: ignore[literal-required] # the scope is open for extensions


def noted(scope: WWWScope, key: str) -> str | None:
    value: str | None = scope.get(key)  # type: ignore[assignment] # the scope is open for extensions
    return value


def request_id_of(scope: WWWScope) -> str:
    """The id that the outermost layer gave the request."""
    return noted(scope, REQUEST_ID) or ""


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
