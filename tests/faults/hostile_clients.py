"""Clients that wish an HTTP server ill, each for as long as it is let, and an honest one beside."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import trio

GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
HEAD: Final = b"GET /version HTTP/1.1\r\nHost: t\r\n\r\n"
CREATE: Final = b"POST /v1/fetcher HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
HONEST_PATHS: Final = ("/health", "/v1/management/connections")
HONEST_SECONDS: Final = 30.0
"""An honest client gives up after these."""


@dataclass(slots=True)
class Tally:
    """What became of an attack's requests: statuses, and closed without an answer."""

    port: int
    answers: dict[int, int] = field(default_factory=dict)
    closed: int = 0

    def answered(self, head: bytes) -> None:
        status = int(head.split(b" ", 2)[1])
        self.answers[status] = self.answers.get(status, 0) + 1

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)


Attack = Callable[[Tally], Awaitable[None]]
"""One client, which goes on until it is cancelled."""


def again(attack: Attack) -> Attack:
    """From the start whenever the server has ended it."""

    async def repeated(tally: Tally) -> None:
        while True:
            with suppress(*GONE):
                await attack(tally)
            tally.closed += 1
            await trio.sleep(0.05)

    return repeated


def dribbling(beginning: bytes, rest: bytes, *, pause_seconds: float) -> Attack:
    """Send the rest a byte at a time, and read nothing until the server is through."""

    async def attack(tally: Tally) -> None:
        async with await tally.connect() as stream:
            await stream.send_all(beginning)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_closed, tally, stream, nursery)
                # what a server has to say stands in what it sent before it hung up
                with suppress(*GONE):
                    for byte in rest:
                        await trio.sleep(pause_seconds)
                        await stream.send_all(bytes([byte]))

    return again(attack)


async def _until_closed(tally: Tally, stream: trio.SocketStream, nursery: trio.Nursery) -> None:
    is_first = True
    with suppress(*GONE):
        async for chunk in stream:
            if is_first:
                tally.answered(bytes(chunk))
            is_first = False
    nursery.cancel_scope.cancel()


async def idle(tally: Tally) -> None:
    async with await tally.connect() as stream:
        await stream.receive_some()


async def come_and_go(tally: Tally) -> None:
    """As fast as connections are taken."""
    while True:
        with suppress(*GONE):
            await (await tally.connect()).aclose()
        await trio.lowlevel.checkpoint()


def sending(request: bytes) -> Attack:
    """One request a connection, its answer read to the end."""

    async def attack(tally: Tally) -> None:
        async with await tally.connect() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(_until_closed, tally, stream, nursery)
            await stream.send_all(request)
            await trio.sleep(20)

    return again(attack)


async def ask_without_end(tally: Tally) -> None:
    """The next request on the same connection, as soon as the last is answered."""
    async with await tally.connect() as stream:
        while True:
            await stream.send_all(b"GET /v1/fetcher HTTP/1.1\r\nHost: t\r\n\r\n")
            received = b""
            while b"\r\n\r\n" not in received:
                received += await _some(stream)
            tally.answered(received)


async def pipeline(tally: Tally) -> None:
    """Hundreds of requests at once, no answer of which is read."""
    async with await tally.connect() as stream:
        await stream.send_all(HEAD * 500)
        await trio.sleep(20)


def not_reading(path: str) -> Attack:
    """Ask for something long, and read a byte a second of it."""

    async def attack(tally: Tally) -> None:
        async with await tally.connect() as stream:
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
            while True:
                if not await stream.receive_some(1):
                    return
                await trio.sleep(1)

    return again(attack)


async def _some(stream: trio.SocketStream) -> bytes:
    chunk = await stream.receive_some(65536)
    if not chunk:
        raise trio.BrokenResourceError
    return bytes(chunk)


SMUGGLED: Final[Mapping[str, bytes]] = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "lengths in a list": b"Content-Length: 4, 5\r\n\r\nabcde",
    "signed length": b"Content-Length: +4\r\n\r\nabcd",
    "length in hexadecimal": b"Content-Length: 0x4\r\n\r\nabcd",
    "other coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked within": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunk without a size": b"Transfer-Encoding: chunked\r\n\r\n\r\n\r\n",
    "chunk of no number": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n0\r\n\r\n",
    "chunk of a negative size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n",
    "chunk of a huge size": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
    "chunk that is longer": b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "blank before the colon": b"Content-Length : 4\r\n\r\nabcd",
    "folded line": b"X-A: b\r\n Content-Length: 4\r\n\r\nabcd",
    "NUL in a value": b"X-A: b\0c\r\nContent-Length: 0\r\n\r\n",
    "line feed in a name": b"X\nA: b\r\nContent-Length: 0\r\n\r\n",
}
"""Behind the head of a request: shapes of which a proxy and a server may see different ends."""


async def smuggled(port: int, ending: bytes) -> list[int]:
    """The statuses that were answered before the server closed."""
    received = b""
    with trio.fail_after(40):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            with suppress(*GONE):
                await stream.send_all(CREATE + ending + b"\r\n" + HEAD)
                async for chunk in stream:
                    received += chunk
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


@dataclass(slots=True)
class Honest:
    """What an honest client met: its waits in seconds, sorted when read, and its failures."""

    waits: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def share(self, part: float) -> float:
        return sorted(self.waits)[min(len(self.waits) - 1, int(len(self.waits) * part))]

    async def run(self, port: int, *, seconds: float) -> None:
        """One request after another, each over a connection of its own; the last to its end."""
        ends_at = trio.current_time() + seconds
        while trio.current_time() < ends_at:
            for path in HONEST_PATHS:
                began = trio.current_time()
                status = await self._asked(port, path)
                if status == 200:
                    self.waits.append(trio.current_time() - began)
                else:
                    self.failures.append(f"{path}: {status}")
            await trio.sleep(0.02)

    async def _asked(self, port: int, path: str) -> int:
        head = f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode()
        received = b""
        with suppress(*GONE), trio.move_on_after(HONEST_SECONDS):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(head)
                async for chunk in stream:
                    received += chunk
        return int(received.split(b" ", 2)[1]) if received else 0


async def under(attack: Attack, port: int, *, clients: int, seconds: float) -> tuple[Tally, Honest]:
    """Let so many attack for so long; what became of them, and of the honest client beside."""
    tally, honest = Tally(port), Honest()

    async def tolerated() -> None:
        with suppress(*GONE):
            await attack(tally)

    async with trio.open_nursery() as nursery:
        for _ in range(clients):
            nursery.start_soon(tolerated)
        # those that come at once have come
        await trio.sleep(0.5)
        await honest.run(port, seconds=seconds)
        nursery.cancel_scope.cancel()
    return tally, honest
