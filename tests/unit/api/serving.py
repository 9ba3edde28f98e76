"""The real server on a loopback socket, and a client that speaks HTTP/1.1 by hand."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

from fetcher.api.server import BoundAddress, ServerLimits, serve_http
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId
from tests.unit.api.harness import CONNECTIONS

LOOPBACK = "127.0.0.1:0"
QUICK = ServerLimits(idle_seconds=1, send_seconds=1, half_closed_seconds=0.1, graceful_seconds=2)


class Serving:
    """A running server; ``stop`` asks it to end, ``ended`` tells that it has."""

    def __init__(self) -> None:
        self.stop = trio.Event()
        self.ended = trio.Event()
        self.addresses: Sequence[BoundAddress] = ()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Client"]:
        address = self.addresses[0]
        stream = await trio.open_tcp_stream(address.host, address.port)
        async with stream:
            yield Client(stream)


class Client:
    """Speaks HTTP/1.1 by hand."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def request(self, method: str, path: str, body: bytes = b"", *lines: str) -> None:
        head = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *lines]
        await self.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, body by its length."""
        head = await self.until(b"\r\n\r\n")
        status_line, *lines = head.decode().removesuffix("\r\n\r\n").split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            self._buffer += await self._more()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return int(status_line.split()[1]), headers, body

    async def is_closed(self) -> bool:
        """Wait for the server to close the connection."""
        with trio.fail_after(10), suppress(trio.BrokenResourceError):
            while await self.stream.receive_some(65536):
                pass
        return True

    async def until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._buffer += await self._more()
        head, _, self._buffer = self._buffer.partition(mark)
        return head + mark

    async def _more(self) -> bytes:
        with trio.fail_after(10):
            received = bytes(await self.stream.receive_some(65536))
        assert received, "the server closed the connection"
        return received


@asynccontextmanager
async def serving(app: Any, limits: ServerLimits = QUICK) -> AsyncIterator[Serving]:
    server = Serving()

    def note(addresses: Sequence[BoundAddress]) -> None:
        server.addresses = addresses

    async def run(*, task_status: "trio.TaskStatus[None]") -> None:
        await serve_http(
            app,
            address=LOOPBACK,
            stop=server.stop,
            limits=limits,
            on_listening=note,
            task_status=task_status,
        )
        server.ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        yield server
        server.stop.set()
        with trio.fail_after(10):
            await server.ended.wait()


class SlowConnections:
    """A connection store whose answers wait for the test."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.go_on = trio.Event()

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        self.asked.set()
        await self.go_on.wait()
        return None


SOME_CONNECTION = f"{CONNECTIONS}/{'0' * 32}"
