"""A TCP proxy in front of MongoDB that loses or holds the server's answers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import trio


@dataclass(slots=True)
class Pair:
    """A client's connection and ours to the server behind it."""

    client: trio.SocketStream
    server: trio.SocketStream
    doomed: bool = False


class LossyProxy:
    """``losing`` names commands that take effect but whose answer never arrives."""

    def __init__(self, upstream: str) -> None:
        place = urlsplit(upstream)
        self._upstream = (place.hostname or "127.0.0.1", place.port or 27017)
        self._passing = trio.Event()
        self._passing.set()
        self.losing: set[str] = set()
        self.lost = 0
        self.holding = trio.Event()
        """Set once an answer is being held."""

    def hold(self) -> None:
        """From now on no answer passes."""
        self._passing = trio.Event()
        self.holding = trio.Event()

    def let_go(self) -> None:
        self._passing.set()

    async def handle(self, client: trio.SocketStream) -> None:
        async with client, await trio.open_tcp_stream(*self._upstream) as server:
            pair = Pair(client, server)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._ask, pair, nursery.cancel_scope)
                nursery.start_soon(self._answer, pair, nursery.cancel_scope)

    async def _ask(self, pair: Pair, scope: trio.CancelScope) -> None:
        with suppress(trio.BrokenResourceError):
            async for chunk in pair.client:
                # OP_MSG (the MongoDB wire protocol): a command's name is the first key of its body.
                if any(b"\x02" + name.encode() + b"\0" in chunk for name in self.losing):
                    pair.doomed = True
                await pair.server.send_all(chunk)
        scope.cancel()

    async def _answer(self, pair: Pair, scope: trio.CancelScope) -> None:
        with suppress(trio.BrokenResourceError):
            async for chunk in pair.server:
                if pair.doomed:
                    self.lost += 1
                    break
                if not self._passing.is_set():
                    self.holding.set()
                await self._passing.wait()
                await pair.client.send_all(chunk)
        scope.cancel()


def address_of(port: int) -> str:
    """Direct: a member of a replica set would send its clients past the proxy."""
    return f"mongodb://127.0.0.1:{port}/?directConnection=true"


@asynccontextmanager
async def lossy_proxy(upstream: str, *, port: int = 0) -> AsyncGenerator[tuple[LossyProxy, str]]:
    """The proxy, and the address under which clients reach it."""
    proxy = LossyProxy(upstream)
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.handle, listeners)
        yield proxy, address_of(listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()
