"""A small MySQL server for what no real one here does: MySQL's own logins, lies and silences.

It speaks protocol 4.1 from the public description: greeting, TLS, the exchanges of the plugins,
results as text. What a statement answers is the test's business; every statement is kept.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import trio
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

SALT: Final = bytes(range(65, 85))
OK: Final = b"\x00\x00\x00\x02\x00\x00\x00"
EOF: Final = b"\xfe\x00\x00\x02\x00"

_SSL = 1 << 11
_CAPABILITIES: Final = (
    1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 19 | 1 << 20 | 1 << 21
)
"""Long passwords, a database, protocol 4.1, transactions, plugins with data, attributes."""


@dataclass(frozen=True, slots=True)
class Failure:
    code: int
    text: str = "the server's own words"


@dataclass(frozen=True, slots=True)
class Rows:
    """``after``: what comes in place of the end. None: nothing more, ever."""

    columns: int
    rows: Sequence[Sequence[str | bytes | None]] = ()
    after: Failure | bytes | None = EOF


Answer: TypeAlias = Failure | Rows | bytes | None
"""Bytes are one packet; None is silence."""


@dataclass(slots=True, kw_only=True)
class FakeMysql:
    """``exchange`` is what the login does after the client's answer; by default it is let in."""

    version: str = "8.0.36"
    plugin: str = "mysql_native_password"
    status: int = 2
    tls: ssl.SSLContext | None = None
    answer: Callable[[str], Answer] = lambda _: OK
    exchange: "Exchange | None" = None
    port: int = 0
    statements: list[str] = field(default_factory=list)
    peers: list[str] = field(default_factory=list)


class Wire:
    """Packets over one connection. ``heard`` is all that the client ever sent, deciphered."""

    def __init__(self, stream: trio.abc.Stream, server: FakeMysql) -> None:
        self.stream = stream
        self.server = server
        self.heard: list[bytes] = []
        self.is_secure = False
        self.number = 0

    async def send(self, *payloads: bytes) -> None:
        parts = []
        for payload in payloads:
            parts.append(len(payload).to_bytes(3, "little") + bytes([self.number]) + payload)
            self.number = (self.number + 1) % 256
        await self.stream.send_all(b"".join(parts))

    async def receive(self) -> bytes:
        header = await self._exactly(4)
        self.number = header[3] + 1
        payload = await self._exactly(int.from_bytes(header[:3], "little"))
        self.heard.append(payload)
        return payload

    async def encrypt(self, context: ssl.SSLContext) -> None:
        wrapped = trio.SSLStream(self.stream, context, server_side=True)
        await wrapped.do_handshake()
        self.stream, self.is_secure = wrapped, True

    async def _exactly(self, size: int) -> bytes:
        """No more: a handshake of TLS may stand behind it."""
        found = b""
        while len(found) < size:
            chunk = await self.stream.receive_some(size - len(found))
            if not chunk:
                raise trio.BrokenResourceError
            found += chunk
        return found


Exchange: TypeAlias = Callable[[Wire], Awaitable[None]]


@asynccontextmanager
async def serving(server: FakeMysql) -> AsyncIterator[list[Wire]]:
    """Serve until the end; gives the connections that were made."""
    wires: list[Wire] = []
    async with trio.open_nursery() as nursery:
        handler = partial(_serve, server, wires)
        listeners = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
        server.port = listeners[0].socket.getsockname()[1]
        yield wires
        nursery.cancel_scope.cancel()


async def _serve(server: FakeMysql, wires: list[Wire], stream: trio.SocketStream) -> None:
    wire = Wire(stream, server)
    wires.append(wire)
    server.peers.append(str(stream.socket.getpeername()[0]))
    try:
        await _log_in(server, wire)
        while True:
            wire.number = 0
            command = await wire.receive()
            if command[:1] == b"\x01":
                return
            statement = command[1:].decode()
            server.statements.append(statement)
            await _respond(wire, server.answer(statement))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return
    finally:
        await trio.aclose_forcefully(wire.stream)


async def _log_in(server: FakeMysql, wire: Wire) -> None:
    capabilities = _CAPABILITIES | (_SSL if server.tls is not None else 0)
    await wire.send(
        b"\x0a"
        + server.version.encode()
        + b"\0"
        + (7).to_bytes(4, "little")
        + SALT[:8]
        + b"\0"
        + (capabilities & 0xFFFF).to_bytes(2, "little")
        + b"\x2d"
        + server.status.to_bytes(2, "little")
        + (capabilities >> 16).to_bytes(2, "little")
        + bytes([len(SALT) + 1])
        + bytes(10)
        + SALT[8:]
        + b"\0"
        + server.plugin.encode()
        + b"\0"
    )
    first = await wire.receive()
    if len(first) == 32 and server.tls is not None:
        await wire.encrypt(server.tls)
        await wire.receive()
    if server.exchange is not None:
        await server.exchange(wire)
    await wire.send(OK)


async def _respond(wire: Wire, answer: Answer) -> None:
    match answer:
        case None:
            await trio.sleep_forever()
        case Failure(code, text):
            await wire.send(error(code, text))
        case Rows(columns, rows, after):
            column = b"".join(map(_text, (b"def", b"", b"", b"", b"c", b""))) + (
                b"\x0c\x2d\x00" + bytes(4) + b"\xfd" + bytes(5)
            )
            await wire.send(bytes([columns]), *[column] * columns, EOF)
            for row in rows:
                await wire.send(b"".join(map(_text, row)))
            if after is None:
                await trio.sleep_forever()
            else:
                await wire.send(
                    error(after.code, after.text) if not isinstance(after, bytes) else after
                )
        case bytes():
            await wire.send(answer)


def error(code: int, text: str = "") -> bytes:
    return b"\xff" + code.to_bytes(2, "little") + b"#HY000" + text.encode()


def _text(value: str | bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    data = value.encode() if isinstance(value, str) else value
    if len(data) < 0xFB:
        return bytes([len(data)]) + data
    return b"\xfc" + len(data).to_bytes(2, "little") + data


# --- the exchanges of logins -------------------------------------------------------------------


async def full_caching_sha2(wire: Wire) -> None:
    """As a server that does not know the password yet: over TLS as it is, else by RSA."""
    await wire.send(b"\x01\x04")
    answer = await wire.receive()
    if wire.is_secure:
        return
    assert answer == b"\x02"
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    await wire.send(b"\x01" + public)
    sealed = await wire.receive()
    sha1 = hashes.SHA1()  # noqa: S303 - what the protocol has
    opened = key.decrypt(sealed, padding.OAEP(padding.MGF1(sha1), sha1, None))
    wire.heard.append(bytes(a ^ SALT[n % len(SALT)] for n, a in enumerate(opened)))


async def fast_caching_sha2(wire: Wire) -> None:
    await wire.send(b"\x01\x03")


def switching_to(plugin: str) -> Exchange:
    """Ask for another method, and let in whoever answers."""

    async def exchange(wire: Wire) -> None:
        await wire.send(b"\xfe" + plugin.encode() + b"\0" + SALT + b"\0")
        await wire.receive()

    return exchange
