"""The driver's edge without a server: canned answers, and a record of what was asked.

Types are the driver's own objects; what it would do with them is its documentation's word.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import oracledb
import pytest
from oracledb import errors

from fetcher.datasources.connecting import SourceConnector
from fetcher.datasources.oracle import connect
from fetcher.datasources.oracle.connector import OracleSource
from fetcher.datasources.oracle.line import SOCKETS
from fetcher.datasources.oracle.names import TableNames
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.oracle.session import Session
from fetcher.datasources.session_supply import OwnSessions
from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.targets import Target
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions

ADDRESS = "192.0.2.7"
OPENED: list[socket.socket] = []
"""The servers' ends, to be closed after each test."""

Row = tuple[object, ...]

# owner, table, column, type, type's owner, length, precision, scale, nullable
STAFF: list[Row] = [
    ("HR", "STAFF", "ID", "NUMBER", None, 22, 10, 0, "N"),
    ("HR", "STAFF", "NAME", "VARCHAR2", None, 40, None, None, "Y"),
    ("HR", "STAFF", "PAY", "NUMBER", None, 22, 10, 2, "Y"),
]


def driver_error(code: int, text: str = "canary") -> oracledb.DatabaseError:
    """As the driver makes one from what the server says."""
    details = errors._Error(f"ORA-{code:05}: {text}", code=code)
    error: oracledb.DatabaseError = details.exc_type(details)
    return error


def client_error(full_code: str, text: str = "canary") -> oracledb.DatabaseError:
    """As the driver makes one by itself."""
    details = errors._Error(f"{full_code}: {text}")
    error: oracledb.DatabaseError = details.exc_type(details)
    return error


@dataclass
class Answer:
    """To statements that begin with ``start``: rows in turn, after which ``end`` is raised."""

    start: str
    rows: Sequence[Row] = ()
    types: Sequence[Any] = ()
    error: Exception | None = None
    end: Exception | None = None
    blocks: bool = False


@dataclass
class Variable:
    db_type: Any
    arraysize: int
    size: int
    encoding_errors: str


@dataclass
class Metadata:
    type_code: Any
    internal_size: int = 40


class FakeCursor:
    def __init__(self, connection: "FakeConnection") -> None:
        self.connection = connection
        self.arraysize = 100
        self.prefetchrows = 2
        self.outputtypehandler: Callable[[Any, Any], Any] | None = None
        self.input_sizes: tuple[Any, ...] = ()
        self.variables: list[Variable | None] = []
        self._answer = Answer("")
        self._at = 0

    def __enter__(self) -> "FakeCursor":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def setinputsizes(self, *types: Any) -> None:
        self.input_sizes = types

    def var(
        self, db_type: Any, size: int = 0, *, arraysize: int, encoding_errors: str = "strict"
    ) -> Variable:
        return Variable(db_type, arraysize, size, encoding_errors)

    def execute(self, statement: str, values: Sequence[object] = ()) -> None:
        database = self.connection.database
        database.executed.append(Executed(statement, list(values), self, self.connection))
        self._answer = database.answer(statement)
        self._at = 0
        if self._answer.error is not None:
            raise self._answer.error
        if self.outputtypehandler is not None:
            metadata = map(Metadata, self._answer.types)
            self.variables = [self.outputtypehandler(self, each) for each in metadata]
        if self._answer.blocks:
            database.blocked.set()
            database.released.wait()
            raise driver_error(1013)

    def fetchmany(self, size: int) -> list[Row]:
        rows = list(self._answer.rows[self._at : self._at + size])
        self._at += len(rows)
        if not rows and self._answer.end is not None:
            raise self._answer.end
        return rows

    def fetchall(self) -> list[Row]:
        return self.fetchmany(len(self._answer.rows) + 1)

    def fetchone(self) -> Row | None:
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        pass


class FakeConnection:
    def __init__(self, database: "FakeDatabase") -> None:
        self.database = database
        self.autocommit: bool | None = None
        self.module = self.action = self.client_identifier = ""
        self.timeouts: list[int] = []
        self.is_closed = False
        self.rollbacks = 0

    @property
    def call_timeout(self) -> int:
        return self.timeouts[-1]

    @call_timeout.setter
    def call_timeout(self, milliseconds: int) -> None:
        self.timeouts.append(milliseconds)

    def cursor(self) -> FakeCursor:
        return FakeCursor(self)

    def rollback(self) -> None:
        self.rollbacks += 1

    def cancel(self) -> None:
        self.database.cancelled_in = threading.current_thread().name
        if self.database.heeds_cancel:
            self.database.released.set()

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Executed:
    statement: str
    values: list[object]
    cursor: FakeCursor
    connection: FakeConnection


@dataclass
class FakeDatabase:
    """A listener, its database, and the driver between."""

    answers: list[Answer] = field(default_factory=list)
    user: str = "HR"
    keywords: list[dict[str, Any]] = field(default_factory=list)
    executed: list[Executed] = field(default_factory=list)
    connections: list[FakeConnection] = field(default_factory=list)
    peers: list[socket.socket] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    refuses: Exception | None = None
    takes_socket: bool = True
    heeds_cancel: bool = True
    cancelled_in: str | None = None
    blocked: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def connect(self, **keywords: Any) -> FakeConnection:
        self.keywords.append(keywords)
        if self.takes_socket:
            SOCKETS.create_connection((keywords["host"], keywords["port"]), 1)
        if self.refuses is not None:
            raise self.refuses
        self.connections.append(FakeConnection(self))
        return self.connections[-1]

    async def dial(self, addresses: Sequence[str], port: int) -> socket.socket:
        (address,) = addresses
        self.dialled.append((address, port))
        ours, peer = socket.socketpair()
        peer.settimeout(5)
        self.peers.append(peer)
        OPENED.append(peer)
        return ours

    def answer(self, statement: str) -> Answer:
        if statement == "SELECT USER FROM DUAL":
            return Answer("", [(self.user,)])
        for answer in self.answers:
            if statement.startswith(answer.start):
                return answer
        return Answer("")

    @property
    def statements(self) -> list[str]:
        return [each.statement for each in self.executed]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeDatabase":
        monkeypatch.setattr(oracledb, "connect", self.connect)
        monkeypatch.setattr(connect, "dial", self.dial)
        return self


def a_catalogue(
    columns: Sequence[Row], keys: Sequence[Row] = (), *, num_rows: int | None = None
) -> list[Answer]:
    """``num_rows``: what the statistics tell of every table."""
    rows = [(*column, num_rows) for column in columns]
    return [Answer("SELECT c.owner", rows), Answer("SELECT k.owner", keys)]


def a_target(**changes: Any) -> Target:
    settings: dict[str, Any] = {
        "host": ADDRESS,
        "port": 1521,
        "database": "ignored",
        "user": "hr",
        "password": "p@ss wörd%/?#:'\"\\",
        "metadata": {"serviceName": "ORDERS"},
    }
    return Target(**{**settings, **changes})


def a_connector(
    requested: dict[str, tuple[str, ...]] | None = None,
    *,
    options: JobOptions | None = None,
    schema: str | None = None,
    target: Target | None = None,
    texts: Texts | None = None,
    **settings: Any,
) -> SourceConnector[Session]:
    source = OracleSource(
        config_name="ora",
        target=lambda: target or a_target(),
        names=TableNames(schema, requested),
        renderer=ValueRenderer(options or JobOptions(), texts),
        settings=ReadSettings(**settings),
    )
    return SourceConnector(source, OwnSessions(source))
