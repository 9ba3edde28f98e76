"""Servers that refuse whoever comes, in words that quote the caller's own secret.

No server of ours does so; proxies, gateways and plugins in front of them may.
"""

import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio
from pamqp import commands, frame

from tests.servers.fake_mongo import failed, fake_mongo
from tests.servers.mysql_wire import FakeMysql, Wire, error, serving

_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)
_ACCESS_DENIED: Final = 1045
_NOT_AUTHENTICATED: Final = 18
_SSL_REQUEST: Final = (80877103).to_bytes(4, "big")
_SHORT_TEXT_BYTES: Final = 255


@dataclass(slots=True)
class Quoting:
    """``ports`` by protocol, and how often each was met."""

    ports: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)

    def meet(self, protocol: str) -> None:
        self.met[protocol] = self.met.get(protocol, 0) + 1


@contextmanager
def quoting(texts: Mapping[str, str]) -> Iterator[Quoting]:
    """A server for each protocol in ``texts``, in a thread of its own, until the block ends."""
    servers = Quoting()
    is_ready = threading.Event()
    ended: list[trio.Event] = []
    tokens: list[trio.lowlevel.TrioToken] = []

    async def main() -> None:
        ended.append(trio.Event())
        tokens.append(trio.lowlevel.current_trio_token())
        async with _all(servers, texts):
            is_ready.set()
            await ended[0].wait()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    try:
        assert is_ready.wait(20), "no server"
        yield servers
    finally:
        trio.from_thread.run_sync(ended[0].set, trio_token=tokens[0])
        thread.join(timeout=20)


@asynccontextmanager
async def _all(servers: Quoting, texts: Mapping[str, str]) -> AsyncIterator[None]:
    mysql = FakeMysql(exchange=partial(_refuse_mysql, servers, texts.get("mysql", "")))

    def refuse_mongo(_: object) -> Mapping[str, object]:
        servers.meet("mongodb")
        return failed(_NOT_AUTHENTICATED, texts.get("mongodb", ""))

    async with (
        serving(mysql),
        fake_mongo(saslStart=refuse_mongo) as mongo,
        trio.open_nursery() as nursery,
    ):
        servers.ports = {"mysql": mysql.port, "mongodb": mongo.port}
        for protocol, refuse in _REFUSALS.items():
            handler = partial(_served, servers, protocol, refuse, texts.get(protocol, ""))
            listeners = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
            servers.ports[protocol] = listeners[0].socket.getsockname()[1]
        yield
        nursery.cancel_scope.cancel()


Refusal = Callable[[trio.SocketStream, str], Awaitable[None]]


async def _served(
    servers: Quoting, protocol: str, refuse: Refusal, text: str, stream: trio.SocketStream
) -> None:
    async with stream:
        with suppress(*_GONE), trio.move_on_after(20):
            await refuse(stream, text)
            servers.meet(protocol)
            # whoever was refused reads it before the connection is reset for what it still sends
            await stream.receive_some()


async def _refuse_mysql(servers: Quoting, text: str, wire: Wire) -> None:
    servers.meet("mysql")
    await wire.send(error(_ACCESS_DENIED, text))
    raise trio.ClosedResourceError


async def _refuse_postgresql(stream: trio.SocketStream, text: str) -> None:
    first = await stream.receive_some()
    if first[4:8] == _SSL_REQUEST:
        await stream.send_all(b"N")
        await stream.receive_some()
    fields = b"SFATAL\0VFATAL\0C28P01\0M" + text.encode() + b"\0D" + text.encode() + b"\0\0"
    await stream.send_all(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)


async def _refuse_redis(stream: trio.SocketStream, text: str) -> None:
    while await stream.receive_some():
        await stream.send_all(b"-WRONGPASS " + text.encode() + b"\r\n")


async def _refuse_amqp(stream: trio.SocketStream, text: str) -> None:
    await stream.receive_some()
    start = commands.Connection.Start(mechanisms="PLAIN", server_properties={})
    await stream.send_all(frame.marshal(start, 0))
    await stream.receive_some()
    said = f"ACCESS_REFUSED - {text}".encode()[:_SHORT_TEXT_BYTES].decode(errors="ignore")
    await stream.send_all(frame.marshal(commands.Connection.Close(403, said, 10, 11), 0))


async def _refuse_http(stream: trio.SocketStream, text: str) -> None:
    """In the words of S3 where the request is signed for it."""
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = await stream.receive_some()
        if not chunk:
            return
        head += chunk
    quoted = text + head.decode("latin-1")
    body, kind = json.dumps({"code": "X-1", "title": "t", "message": quoted}), "application/json"
    if b"AWS4-HMAC" in head:
        said = quoted.replace("&", "&amp;").replace("<", "&lt;")
        kind = "application/xml"
        body = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{said}</Message></Error>"
    data = body.encode()
    start = f"HTTP/1.1 403 Forbidden\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
    await stream.send_all(f"{start}Connection: close\r\n\r\n".encode() + data)


_REFUSALS: Final[Mapping[str, Refusal]] = {
    "postgresql": _refuse_postgresql,
    "redis": _refuse_redis,
    "amqp": _refuse_amqp,
    "http": _refuse_http,
}
