"""What a request may cost before any operation sees it (spec rest-api 2.2).

Its head is judged first; then the body is read, whole, before the application runs: within a
deadline, at most 4 MiB, and within what all requests together may hold. So no operation ever waits
for a client, and a refused client finds its answer although it is still sending. Nothing is read
for a caller who is not let in.
"""

from collections.abc import Awaitable, Callable
from enum import Enum, auto

import trio
from hypercorn.typing import HTTPScope, Scope

from fetcher.api.asgi import AsgiApp, Receive, Send, header, tenant_id_of
from fetcher.api.fair_room import FairRoom
from fetcher.api.incoming import Incoming, Replay, incoming_of, refuse, refuse_and_close
from fetcher.api.payloads import MAX_BODY_BYTES
from fetcher.api.problems import BAD_FRAMING, Problem, framework_problem

MAX_HEADER_BYTES = 4096
MAX_HELD_BYTES = 256 * 1024 * 1024


class _Refusal(Enum):
    TOO_LARGE = auto()
    TOO_SLOW = auto()
    NO_ROOM = auto()
    GONE = auto()


_PROBLEMS = {
    _Refusal.TOO_LARGE: framework_problem(413, "Request Entity Too Large"),
    _Refusal.TOO_SLOW: framework_problem(408, "Request Timeout"),
    _Refusal.NO_ROOM: framework_problem(503, "Service Unavailable"),
}


Admission = Callable[[HTTPScope], Awaitable[Problem | None]]
"""Judges a request by its head: the problem that it is refused with, None where it may go on."""


class RequestHeads:
    """Hands on requests whose head is in order and whose caller is let in."""

    def __init__(self, app: AsgiApp, *, admit: Admission) -> None:
        self._app = app
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": None})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = _raw_path(scope)
        incoming = incoming_of(scope, receive)
        problem = _problem_of_head(scope)
        if problem is not None:
            await refuse_and_close(problem, incoming, send)
            return
        problem = await self._admit(scope)
        if problem is not None:
            await refuse(problem, incoming, send)
            return
        await self._app(scope, incoming, send)


class RequestBodies:
    """Refuses what is too large or too slow; hands on a body that is complete.

    With tenants none of them takes more of the room than it leaves free.
    """

    def __init__(self, app: AsgiApp, *, body_seconds: float) -> None:
        self._app = app
        self._body_seconds = body_seconds
        self._room = FairRoom(MAX_HELD_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        incoming, tenant_id = incoming_of(scope, receive), tenant_id_of(scope)
        body = bytearray()
        try:
            refusal = await self._read(scope, incoming, body, tenant_id)
            if refusal is None:
                await self._app(scope, Replay(bytes(body), receive), send)
            elif refusal is not _Refusal.GONE:
                await refuse_and_close(_PROBLEMS[refusal], incoming, send)
        finally:
            self._room.give_back(len(body), tenant_id)

    async def _read(
        self, scope: HTTPScope, incoming: Incoming, body: bytearray, tenant_id: str
    ) -> _Refusal | None:
        """Fill ``body``, whose length is counted as held meanwhile."""
        declared = header(scope, b"content-length") or ""
        if declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES:
            return _Refusal.TOO_LARGE
        with trio.move_on_after(self._body_seconds):
            while True:
                chunk = await incoming.next()
                if chunk is None:
                    return _Refusal.GONE
                if len(body) + len(chunk) > MAX_BODY_BYTES:
                    return _Refusal.TOO_LARGE
                if not self._room.take(len(chunk), tenant_id):
                    return _Refusal.NO_ROOM
                body += chunk
                if incoming.is_complete:
                    return None
        return _Refusal.TOO_SLOW


def _problem_of_head(scope: HTTPScope) -> Problem | None:
    if _header_bytes(scope) > MAX_HEADER_BYTES:
        return framework_problem(431, "Request Header Fields Too Large")
    if _has_two_lengths(scope):
        return framework_problem(400, "Bad Request", error_code=BAD_FRAMING)
    return None


def _has_two_lengths(scope: HTTPScope) -> bool:
    """Whether somebody on the way may see the request's end elsewhere (RFC 9112, 6.1): whoever
    smuggles a request past a proxy writes both, and the connection must not be used again."""
    has_coding = header(scope, b"transfer-encoding") is not None
    return has_coding and header(scope, b"content-length") is not None


def _raw_path(scope: HTTPScope) -> str:
    """The path as it was sent: nothing in it is percent-decoded (spec 2.2)."""
    path = scope["raw_path"].decode("ascii", "replace")
    if path.startswith("/"):
        return path
    # The absolute form (RFC 9112, 3.2.2), taken apart by hand: urlsplit raises on odd authorities.
    _, _, after_scheme = path.partition("://")
    return "/" + after_scheme.partition("/")[2]


def _header_bytes(scope: HTTPScope) -> int:
    """Request line and header lines as they were on the wire, nearly."""
    line = len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"]) + 12
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])
