"""A proxy that makes the test server look like the primary of a replica set, and its writes fail.

The server behind it stands alone. What a primary does and it does not is done here: it says that it
is one, it carries out a write that the driver repeats (same session, same transaction number) once
only, and it steps down.
"""

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

import bson
import trio

from tests.servers.mongo_wire import Message, messages

CONNECT_SECONDS: Final = 10.0
ELECTION_SECONDS: Final = 0.5
"""For so long after a fault that a primary makes when it steps down nobody is primary."""
GONE: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
WRITES: Final = frozenset({"insert", "update", "delete", "findAndModify", "findandmodify"})
GREETINGS: Final = frozenset({"hello", "ismaster", "isMaster"})
UNKNOWN_BEHIND: Final = frozenset(
    {"lsid", "txnNumber", "$clusterTime", "topologyVersion", "maxAwaitTimeMS"}
)
"""What is said to a member of a set."""
NOT_PRIMARY: Final[Mapping[str, Any]] = {
    "ok": 0.0,
    "errmsg": "not primary",
    "code": 10107,
    "codeName": "NotWritablePrimary",
}
STEPPED_DOWN: Final[Mapping[str, Any]] = {
    "code": 189,
    "codeName": "PrimarySteppedDown",
    "errmsg": "Primary stepped down while waiting for replication",
}


class WriteFault(StrEnum):
    UNANSWERED = "no answer"
    """It took effect; the connection stands, and nothing comes."""
    CUT = "cut"
    """It took effect, and the connection is closed instead of an answer."""
    NOT_PRIMARY = "not primary"
    """It did not take effect; said, and then the connection is closed."""
    STEPPED_DOWN = "stepped down"
    """It took effect; the answer has a ``writeConcernError``."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write command that came."""

    command: str
    collection: str
    changes: Mapping[str, Any]
    """What it inserts, or its first update."""
    is_retryable: bool

    @property
    def words(self) -> str:
        """What it records."""
        if self.command == "insert":
            return f"insert into `{self.collection}`"
        made = self.changes.get("$set", {})
        changed = made.keys() | self.changes.get("$unset", {}).keys()
        for field, words in WORDS.items():
            if field in changed:
                return words.format(**made)
        return f"{self.command} in `{self.collection}`"


WORDS: Final[Mapping[str, str]] = {
    "dispatched_at": "mark as dispatched",
    "status": "become {status}",
    "metadata.terminalEventPending": "mark its event as published",
    "event_lease_until": "claim its event",
    "lease_until": "renew the lease",
    "progress": "note progress",
}
"""An update by the first of these fields that it changes."""


class MongoWriteProxy:
    """``port`` of the loopback address leads to the server."""

    def __init__(self, host: str, port: int, *, database: str) -> None:
        """``database``: whose writes are counted."""
        self.upstream = (host, port)
        self.writes: list[Write] = []
        """Since it was armed; what the driver repeats is not counted again."""
        self.struck: Write | None = None
        """The one that met the fault."""
        self.repeated = 0
        """How often the driver sent a write again that had taken effect."""
        self._database = database
        self._fault: WriteFault | None = None
        self._what = ""
        self._seen: set[RepeatKey] = set()
        self._outcomes: dict[RepeatKey, Mapping[str, Any]] = {}
        """What was answered to each repeatable write that took effect."""
        self._standing = _Standing()
        listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = listening.getsockname()[1]
        self._listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))

    def arm(self, fault: WriteFault | None, what: str = "") -> None:
        """The first write from now on that says so meets the fault."""
        self._fault, self._what = fault, what
        self.writes, self.struck, self.repeated = [], None, 0

    async def run(self) -> None:
        """Serve until cancelled."""
        await trio.serve_listeners(self._serve, [self._listener])

    async def _serve(self, client: trio.SocketStream) -> None:
        with suppress(*GONE):
            async with client:
                with trio.fail_after(CONNECT_SECONDS):
                    server = await trio.open_tcp_stream(*self.upstream)
                async with (
                    server,
                    aclosing(messages(server)) as answers,
                    aclosing(messages(client)) as asked,
                ):
                    behind = _Behind(server, answers)
                    async for message in asked:
                        answer, then = await self._answer(message, behind)
                        if answer is not None:
                            await client.send_all(answer.data)
                        if then is Then.CLOSE:
                            return

    async def _answer(self, message: Message, behind: "_Behind") -> tuple[Message | None, "Then"]:
        command = message.body
        name = next(iter(command))
        if name in GREETINGS:
            await self._standing.changed_since(command)
            answer = await behind.ask(message)
            return message.answered({**answer.body, **self._standing.told(self.port)}), Then.GO_ON
        if name not in WRITES or command.get("$db") != self._database:
            return await behind.ask(message), Then.GO_ON
        return await self._write(message, command, behind)

    async def _write(
        self, message: Message, command: Mapping[str, Any], behind: "_Behind"
    ) -> tuple[Message | None, "Then"]:
        key = _repeat_key(command)
        if key is not None and key in self._outcomes:
            self.repeated += 1
            return message.answered(self._outcomes[key]), Then.GO_ON
        fault = self._fault_of(message, command, key)
        # What a real server says to a driver that may repeat the write, and to no other.
        labels = {"errorLabels": ["RetryableWriteError"]} if key is not None else {}
        if fault is WriteFault.NOT_PRIMARY:
            self._standing.step_down()
        if not self._standing.is_primary:
            refusal = message.answered({**NOT_PRIMARY, **labels, **self._standing.version})
            return refusal, Then.CLOSE if fault is WriteFault.NOT_PRIMARY else Then.GO_ON
        answer = await behind.ask(message)
        if key is not None:
            self._outcomes[key] = answer.body
        if fault is WriteFault.UNANSWERED:
            return None, Then.GO_ON
        if fault is WriteFault.CUT:
            return None, Then.CLOSE
        if fault is WriteFault.STEPPED_DOWN:
            self._standing.step_down()
            concern = {"writeConcernError": STEPPED_DOWN, **labels, **self._standing.version}
            return message.answered({**answer.body, **concern}), Then.GO_ON
        return answer, Then.GO_ON

    def _fault_of(
        self, message: Message, command: Mapping[str, Any], key: "RepeatKey | None"
    ) -> WriteFault | None:
        if key is not None and key in self._seen:
            return None
        if key is not None:
            self._seen.add(key)
        write = _read(message, command, is_retryable=key is not None)
        self.writes.append(write)
        if self._fault is None or self.struck is not None or write.words != self._what:
            return None
        self.struck = write
        return self._fault


class Then(StrEnum):
    GO_ON = "go on"
    CLOSE = "close"


RepeatKey: TypeAlias = tuple[bytes, int]


class _Standing:
    """What the server is in its set, as it says itself."""

    def __init__(self) -> None:
        self._process_id, self._election_id = bson.ObjectId(), bson.ObjectId()
        self._counter = 1
        self._elected_at: float | None = None
        self._changed = trio.Event()

    @property
    def is_primary(self) -> bool:
        if self._elected_at is not None and trio.current_time() >= self._elected_at:
            self._elected_at = None
            self._election_id = bson.ObjectId()
            self._change()
        return self._elected_at is None

    @property
    def version(self) -> Mapping[str, Any]:
        counted = {"processId": self._process_id, "counter": bson.Int64(self._counter)}
        return {"topologyVersion": counted}

    def step_down(self) -> None:
        self._elected_at = trio.current_time() + ELECTION_SECONDS
        self._change()

    def told(self, port: int) -> Mapping[str, Any]:
        """What differs from a server that stands alone."""
        me = f"127.0.0.1:{port}"
        is_primary = self.is_primary
        term = {"primary": me, "electionId": self._election_id} if is_primary else {}
        return {
            "setName": "fetcher-t",
            "setVersion": 1,
            "hosts": [me],
            "me": me,
            "ismaster": is_primary,
            "isWritablePrimary": is_primary,
            "secondary": not is_primary,
            "logicalSessionTimeoutMinutes": 30,
            **term,
            **self.version,
        }

    async def changed_since(self, greeting: Mapping[str, Any]) -> None:
        """A driver that names what it knows is answered when it is no longer so."""
        known = greeting.get("topologyVersion")
        if known is None:
            return
        with trio.move_on_after(greeting["maxAwaitTimeMS"] / 1000):
            while self.is_primary and known["counter"] == self._counter:
                await self._changed.wait()
            if known["counter"] == self._counter and self._elected_at is not None:
                await trio.sleep_until(self._elected_at)

    def _change(self) -> None:
        self._counter += 1
        self._changed.set()
        self._changed = trio.Event()


class _Behind:
    """A connection to the server, which knows nothing of sets and sessions."""

    def __init__(self, stream: trio.SocketStream, answers: AsyncGenerator[Message, None]) -> None:
        self._stream = stream
        self._answers = answers

    async def ask(self, message: Message) -> Message:
        """Raise BrokenResourceError when it goes away."""
        body = {name: value for name, value in message.body.items() if name not in UNKNOWN_BEHIND}
        await self._stream.send_all(message.with_body(body).data)
        async for answer in self._answers:
            return answer
        raise trio.BrokenResourceError


def _repeat_key(command: Mapping[str, Any]) -> RepeatKey | None:
    """The same for a write that is sent again; None for one that may not be."""
    if "txnNumber" not in command:
        return None
    return bytes(command["lsid"]["id"]), int(command["txnNumber"])


def _read(message: Message, command: Mapping[str, Any], *, is_retryable: bool) -> Write:
    name = next(iter(command))
    beside = message.sections
    if name == "update":
        changes = (beside.get("updates") or [plain(command["updates"][0])])[0]["u"]
    else:
        changes = (beside.get("documents") or [plain(command.get("update") or {})])[0]
    return Write(name, str(command[name]), changes, is_retryable)


def plain(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A document that was not looked into yet."""
    return bson.decode(bson.encode(raw))
