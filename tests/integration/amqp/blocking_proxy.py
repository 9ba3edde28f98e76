"""A double of a broker under an alarm: the real one, behind a proxy that says `connection.blocked`.

As RabbitMQ does, it then reads nothing from the client, goes on sending, and takes what was sent
meanwhile once it says `connection.unblocked`.
"""

import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import trio
from pamqp import commands, frame

_HEADER = struct.Struct(">BHI")
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class BlockingProxy:
    """Connections are known by the order in which they came."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._reading: list[trio.Event] = []
        self._clients: list[trio.SocketStream] = []
        self._turns: list[trio.Lock] = []
        self.port = 0

    @property
    def accepted(self) -> int:
        return len(self._clients)

    def hold(self, number: int) -> None:
        """From now on nothing is read from it, and not yet said why."""
        if self._reading[number].is_set():
            self._reading[number] = trio.Event()

    async def block(self, number: int) -> None:
        self.hold(number)
        await self._say(number, commands.Connection.Blocked("low on memory"))

    async def unblock(self, number: int) -> None:
        await self._say(number, commands.Connection.Unblocked())
        self._reading[number].set()

    async def _say(self, number: int, said: frame.FrameTypes) -> None:
        async with self._turns[number]:
            await self._clients[number].send_all(frame.marshal(said, 0))

    async def handle(self, client: trio.SocketStream) -> None:
        number = len(self._clients)
        flowing = trio.Event()
        flowing.set()
        self._reading.append(flowing)
        self._clients.append(client)
        self._turns.append(trio.Lock())
        async with (
            client,
            await trio.open_tcp_stream(*self._upstream) as server,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._read, number, server, nursery)
            nursery.start_soon(self._answer, number, server, nursery)

    async def _read(self, number: int, server: trio.SocketStream, nursery: trio.Nursery) -> None:
        with suppress(*_GONE):
            async for data in self._clients[number]:
                await self._reading[number].wait()
                await server.send_all(data)
        nursery.cancel_scope.cancel()

    async def _answer(self, number: int, server: trio.SocketStream, nursery: trio.Nursery) -> None:
        """Whole frames, so that one of ours can come between two of them."""
        waiting = b""
        with suppress(*_GONE):
            async for data in server:
                waiting += data
                while len(waiting) >= _HEADER.size:
                    _, _, payload_bytes = _HEADER.unpack_from(waiting)
                    end = _HEADER.size + payload_bytes + 1
                    if len(waiting) < end:
                        break
                    async with self._turns[number]:
                        await self._clients[number].send_all(waiting[:end])
                    waiting = waiting[end:]
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def blocking_proxy(host: str, port: int) -> AsyncGenerator[BlockingProxy, None]:
    proxy = BlockingProxy(host, port)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    proxy.port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.handle, listeners)
        yield proxy
        nursery.cancel_scope.cancel()
