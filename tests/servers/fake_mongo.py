"""A server that speaks MongoDB's wire protocol and answers what a test wants it to.

For what no server of ours can be made to do: members of a replica set, cursors that are killed.
It asks for no password, and stores nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import bson
import trio

from tests.servers.mongo_wire import messages

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
    try:
        async with aclosing(messages(stream)) as asked:
            async for message in asked:
                answer = server.answer(bson.decode(bson.encode(message.body)))
                if answer is not None:
                    await stream.send_all(message.answered(answer).data)
    except (HangUp, trio.BrokenResourceError, trio.ClosedResourceError):
        return
