"""A request's body as it comes, and how a request is refused that may still be on its way."""

import trio
from hypercorn.typing import ASGIReceiveEvent, HTTPScope

from fetcher.api.asgi import Receive, Send, header, send_end, send_problem
from fetcher.api.problems import Problem

LINGER_SECONDS = 2.0
"""How long a refused client may go on sending. Closing at once would reset the connection, and
the client would lose the answer that lies before it."""


class Incoming:
    """An ASGI ``receive`` that knows whether more of the body may come."""

    def __init__(self, receive: Receive, *, has_body: bool) -> None:
        self._receive = receive
        self.is_complete = not has_body
        """Nothing more will come: there is no body, it has ended, or the client is gone."""

    async def __call__(self) -> ASGIReceiveEvent:
        event = await self._receive()
        self.is_complete = event["type"] != "http.request" or not event["more_body"]
        return event

    async def next(self) -> bytes | None:
        """The next piece, None where the client went away."""
        event = await self()
        return event["body"] if event["type"] == "http.request" else None

    async def discard(self, discarded: trio.Event) -> None:
        while not self.is_complete:
            await self()
        discarded.set()


class Replay:
    """The body in one piece, then whatever the connection says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> ASGIReceiveEvent:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def incoming_of(scope: HTTPScope, receive: Receive) -> Incoming:
    """``receive`` itself where an outer layer has made it one already."""
    if isinstance(receive, Incoming):
        return receive
    return Incoming(receive, has_body=_has_body(scope))


async def refuse(problem: Problem, incoming: Incoming, send: Send) -> None:
    """Answer; the connection is closed only where more of the body may come."""
    if not incoming.is_complete:
        await refuse_and_close(problem, incoming, send)
        return
    await send_problem(send, problem)
    await send_end(send)


async def refuse_and_close(problem: Problem, incoming: Incoming, send: Send) -> None:
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
