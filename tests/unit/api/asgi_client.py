"""One ASGI request by hand: for answers without end, and for requests that no client would send.

Quart's own test client waits for the end of every answer.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from hypercorn.typing import HTTPScope, Scope

from fetcher.api.asgi import AsgiApp

Headers = Iterable[tuple[bytes, bytes]]


def a_scope(
    method: str = "GET", path: bytes = b"/", *, query: bytes = b"", headers: Headers = ()
) -> HTTPScope:
    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path.decode("latin-1"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"test"), *headers],
        "client": ("192.0.2.1", 1),
        "server": ("test", 80),
        "state": {},
        "extensions": {},
    }
    return cast("HTTPScope", scope)


class Exchange:
    """What goes to and comes from the application."""

    def __init__(self, app: AsgiApp, scope: Scope) -> None:
        self._app = app
        self._scope = scope
        self._to_app, self._app_receives = trio.open_memory_channel[Any](100)
        self._app_sends, self._from_app = trio.open_memory_channel[Any](0)
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.ended = trio.Event()

    async def run(self) -> None:
        await self._app(self._scope, self._app_receives.receive, self._send)
        self.ended.set()

    async def body(self, chunk: bytes, *, more: bool = False) -> None:
        await self._to_app.send({"type": "http.request", "body": chunk, "more_body": more})

    async def disconnect(self) -> None:
        await self._to_app.send({"type": "http.disconnect"})

    async def next(self) -> bytes:
        """The next piece of the answer's body."""
        with trio.fail_after(120):
            chunk: bytes = await self._from_app.receive()
            return chunk

    async def rest(self) -> bytes:
        """The pieces until the application has ended."""
        received = bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._collect, received)
            await self.ended.wait()
            nursery.cancel_scope.cancel()
        return bytes(received)

    async def _collect(self, received: bytearray) -> None:
        async for chunk in self._from_app:
            received += chunk

    def header(self, name: str) -> list[str]:
        wanted = name.lower().encode()
        return [value.decode() for key, value in self.headers if key.lower() == wanted]

    async def _send(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = list(event["headers"])
        elif event["type"] == "http.response.body" and event["body"]:
            await self._app_sends.send(event["body"])

    @property
    def waiting_events(self) -> int:
        """Events that the application has not taken."""
        return self._to_app.statistics().current_buffer_used


@asynccontextmanager
async def exchange(app: AsgiApp, scope: Scope) -> AsyncIterator[Exchange]:
    """An open exchange; leaving it is the client's going away."""
    talk = Exchange(app, scope)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.run)
        try:
            yield talk
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await talk.disconnect()
                await talk.rest()
            nursery.cancel_scope.cancel()


async def answer_of(
    app: AsgiApp, scope: Scope, chunks: Sequence[bytes] = (b"",)
) -> tuple[Exchange, bytes]:
    """The whole answer to a request whose body comes in these pieces."""
    async with exchange(app, scope) as talk:
        for number, chunk in enumerate(chunks, start=1):
            await talk.body(chunk, more=number < len(chunks))
        return talk, await talk.rest()
