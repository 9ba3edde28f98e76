"""What a request may cost before any operation sees it (spec rest-api 2.2).

The body is read here, whole, before the application runs: within a deadline, at most 4 MiB, and
within what all requests together may hold. So no operation ever waits for a client, and a refused
client finds its answer although it is still sending. Nothing is read for a caller who is not let
in.
"""

from collections.abc import Awaitable, Callable
from enum import Enum, auto

import trio
from hypercorn.typing import ASGIReceiveEvent, HTTPScope, Scope

from fetcher.api.asgi import AsgiApp, Receive, Send, header, send_end, send_problem
from fetcher.api.payloads import MAX_BODY_BYTES
from fetcher.api.problems import BAD_FRAMING, Problem, framework_problem

MAX_HEADER_BYTES = 4096
MAX_HELD_BYTES = 256 * 1024 * 1024
LINGER_SECONDS = 2.0
"""How long a refused client may go on sending. Closing at once would reset the connection, and
the client would lose the answer that lies before it."""


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


class RequestLimits:
    """Refuses what is too large or too slow; hands on a body that is complete."""

    def __init__(self, app: AsgiApp, *, admit: Admission, body_seconds: float) -> None:
        self._app = app
        self._admit = admit
        self._body_seconds = body_seconds
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": None})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = _raw_path(scope)
        incoming = _Incoming(receive)
        if _header_bytes(scope) > MAX_HEADER_BYTES:
            problem = framework_problem(431, "Request Header Fields Too Large")
            await _refuse(problem, incoming, send)
            return
        if _has_two_lengths(scope):
            problem = framework_problem(400, "Bad Request", error_code=BAD_FRAMING)
            await _refuse(problem, incoming, send)
            return
        refused = await self._admit(scope)
        if refused is not None and not _has_body(scope):
            await send_problem(send, refused)
            await send_end(send)
            return
        if refused is not None:
            await _refuse(refused, incoming, send)
            return
        body = bytearray()
        try:
            refusal = await self._read(scope, incoming, body)
            if refusal is None:
                await self._app(scope, _Replay(bytes(body), receive), send)
            elif refusal is not _Refusal.GONE:
                await _refuse(_PROBLEMS[refusal], incoming, send)
        finally:
            self._held_bytes -= len(body)

    async def _read(
        self, scope: HTTPScope, incoming: "_Incoming", body: bytearray
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
                if self._held_bytes + len(chunk) > MAX_HELD_BYTES:
                    return _Refusal.NO_ROOM
                body += chunk
                self._held_bytes += len(chunk)
                if incoming.is_complete:
                    return None
        return _Refusal.TOO_SLOW


class _Incoming:
    """The body as it comes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_complete = False
        """Nothing more will come: the body has ended, or the client is gone."""

    async def next(self) -> bytes | None:
        """The next piece, None where the client went away."""
        event = await self._receive()
        if event["type"] != "http.request":
            self.is_complete = True
            return None
        self.is_complete = not event["more_body"]
        return event["body"]

    async def discard(self, discarded: trio.Event) -> None:
        while not self.is_complete:
            await self.next()
        discarded.set()


class _Replay:
    """The body in one piece, then whatever the connection says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> ASGIReceiveEvent:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _refuse(problem: Problem, incoming: _Incoming, send: Send) -> None:
    """Answer, take what still comes for a moment, close.

    The server's reader blocks when nobody takes what it read, so somebody takes it until the
    connection is closed.
    """
    await send_problem(send, problem, more_headers={"connection": "close"})
    async with trio.open_nursery() as nursery:
        discarded = trio.Event()
        nursery.start_soon(incoming.discard, discarded)
        with trio.move_on_after(LINGER_SECONDS):
            await discarded.wait()
        await send_end(send)
        nursery.cancel_scope.cancel()


def _has_body(scope: HTTPScope) -> bool:
    """Whether more of the request may come than its head."""
    declared = header(scope, b"content-length") or "0"
    return declared.strip("0") != "" or header(scope, b"transfer-encoding") is not None


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
