"""A TCP proxy whose connections can be made to hang, or be cut, from the test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import trio


class StallingProxy:
    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._flowing = trio.Event()
        self._flowing.set()
        self._streams: set[trio.SocketStream] = set()
        self.port = 0
        self.accepted = 0

    def stall(self) -> None:
        """From now on bytes go nowhere, in either direction, until the proxy ends."""
        self._flowing = trio.Event()

    async def cut(self) -> None:
        """Close what is open now; new connections pass."""
        for stream in list(self._streams):
            await trio.aclose_forcefully(stream)

    async def handle(self, client: trio.SocketStream) -> None:
        self.accepted += 1
        async with client, await trio.open_tcp_stream(*self._upstream) as server:
            self._streams |= {client, server}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, client, server, nursery)
                nursery.start_soon(self._pump, server, client, nursery)
            self._streams -= {client, server}

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, nursery: trio.Nursery
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in source:
                await self._flowing.wait()
                await sink.send_all(data)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def stalling_proxy(host: str, port: int) -> AsyncGenerator[StallingProxy, None]:
    proxy = StallingProxy(host, port)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.handle, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
