"""A server that speaks MongoDB's wire protocol and answers what a test wants it to.

For what no server of ours can be made to do: members of a replica set, cursors that are killed.
It asks for no password, and stores nothing.
"""

import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import bson
import trio

_OP_REPLY: Final = 1
_OP_QUERY: Final = 2004
_OP_MSG: Final = 2013
_HEADER: Final = struct.Struct("<4i")

Answer = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""None is silence. HangUp may be raised."""


class HangUp(Exception):
    """Close the connection instead of answering."""


STANDALONE: Final[Mapping[str, Any]] = {
    "helloOk": True,
    "ismaster": True,
    "isWritablePrimary": True,
    "maxBsonObjectSize": 16 * 1024 * 1024,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "minWireVersion": 0,
    "maxWireVersion": 21,
    "ok": 1.0,
}


def failed(code: int, text: str = "refused") -> Mapping[str, Any]:
    """The answer to a command that fails."""
    return {"ok": 0.0, "code": code, "codeName": "Failed", "errmsg": text}


def batch(
    *documents: Mapping[str, Any], cursor: int = 0, first: bool = True, of: str = "db.t"
) -> Mapping[str, Any]:
    """A batch of a cursor; 0 says that it is the last."""
    key = "firstBatch" if first else "nextBatch"
    return {"cursor": {key: list(documents), "id": bson.Int64(cursor), "ns": of}, "ok": 1.0}


@dataclass(slots=True)
class FakeMongo:
    """``answers`` by the command's name; whatever has none is ``ok``. ``hello`` may be changed."""

    port: int = 0
    hello: dict[str, Any] = field(default_factory=lambda: dict(STANDALONE))
    answers: dict[str, Answer] = field(default_factory=dict)
    commands: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def names(self) -> Sequence[str]:
        """Of the commands that came, those of the handshake apart."""
        return [name for each in self.commands if (name := next(iter(each))) not in _GREETINGS]

    def answer(self, command: dict[str, Any]) -> Mapping[str, Any] | None:
        name = next(iter(command))
        if name in _GREETINGS:
            return self.hello
        self.commands.append(command)
        answer = self.answers.get(name)
        return {"ok": 1.0} if answer is None else answer(command)


_GREETINGS: Final = frozenset({"hello", "ismaster", "isMaster"})


@asynccontextmanager
async def fake_mongo(**answers: Answer) -> AsyncIterator[FakeMongo]:
    """Listens on a free port until the context ends."""
    server = FakeMongo(answers=dict(answers))
    async with trio.open_nursery() as nursery:

        async def talk(stream: trio.SocketStream) -> None:
            await _talk(server, stream)

        listeners = await nursery.start(trio.serve_tcp, talk, 0)
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


async def _talk(server: FakeMongo, stream: trio.SocketStream) -> None:
    pending = b""
    while True:
        try:
            chunk = await stream.receive_some(65536)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        if not chunk:
            return
        pending += chunk
        while len(pending) >= 16 and len(pending) >= (size := _HEADER.unpack_from(pending)[0]):
            message, pending = pending[:size], pending[size:]
            try:
                reply = _reply(server, message)
                if reply is not None:
                    await stream.send_all(reply)
            except (HangUp, trio.BrokenResourceError, trio.ClosedResourceError):
                return


def _reply(server: FakeMongo, message: bytes) -> bytes | None:
    _, request, _, kind = _HEADER.unpack_from(message)
    if kind == _OP_QUERY:
        at = message.index(b"\0", 20) + 9
        answer = server.answer(bson.decode(message[at:]))
        head, kind = struct.pack("<iqii", 8, 0, 0, 1), _OP_REPLY
    else:
        # flags, then one section of kind 0: clients that only read send no other
        size = struct.unpack_from("<i", message, 21)[0]
        answer = server.answer(bson.decode(message[21 : 21 + size]))
        head, kind = struct.pack("<iB", 0, 0), _OP_MSG
    if answer is None:
        return None
    body = head + bson.encode(answer)
    return _HEADER.pack(16 + len(body), 0, request, kind) + body
