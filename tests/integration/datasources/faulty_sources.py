"""The databases that the fault suite runs on: another one is another entry of ``KINDS``.

Each has a table ``t`` of ``ROWS`` rows with the columns ``id`` and ``s``, and tables with these
columns that fail in the midst of their rows: views, or what a server of ours makes of them.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice, repeat
from typing import Any

import pymongo
import pytest
import trio

from fetcher.datasources import connecting
from fetcher.datasources.mongodb import connect as mongodb_connect
from fetcher.datasources.mongodb import connector as mongodb_connector
from fetcher.datasources.mongodb import rows as mongodb_rows
from fetcher.datasources.mysql import connect as mysql_connect
from fetcher.datasources.mysql import rows as mysql_rows
from fetcher.datasources.mysql import session as mysql_session
from fetcher.datasources.postgresql import connect as postgresql_connect
from fetcher.datasources.postgresql import rows as postgresql_rows
from fetcher.datasources.postgresql import session as postgresql_session
from fetcher.datasources.sqlserver import connect as sqlserver_connect
from fetcher.datasources.sqlserver import rows as sqlserver_rows
from fetcher.datasources.sqlserver import session as sqlserver_session
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from tests.integration.datasources import mariadb
from tests.integration.datasources.harness import (
    a_connection,
    connection_to,
    own_database,
    run_sql,
)
from tests.integration.datasources.sqlserver import Definition, answering, source
from tests.servers.addresses import SqlAddress
from tests.servers.fake_mongo import Answer, batch, failed, fake_mongo
from tests.servers.tds import Answer as TdsAnswer
from tests.servers.tds import Column, ServerError, TdsServer, tds_server

ROWS = 6_000
FAILING_ROW = ROWS * 6 // 10

_NO_SUCH_CODE, _MAX_TIME_EXPIRED = 4711, 50
"""Of MongoDB's errors."""

Faults = Mapping[str, frozenset[tuple[str, str]]]
"""By table: the stage and reason that it may end with."""


@dataclass(frozen=True, kw_only=True)
class FaultySource:
    connection: Connection
    fails_amid_rows: Faults
    """Tables that the server itself gives up after some rows."""
    too_slow: Faults
    """Tables whose rows take longer than ``query_timeout_seconds=0.5``."""
    failing: Connection | None = None
    """Where the failing tables are, if not beside ``t``."""


Open = Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[FaultySource]]
Limit = tuple[object, str]
"""A module and its constant, or defaults of a function and an argument."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    open: Open
    connecting: tuple[Limit, ...]
    """The limits of connecting, to be lowered by tests of a server that says nothing."""
    before_rows: tuple[Limit, ...]
    no_progress: tuple[Limit, ...]
    tls_mode: str
    silent_login: str
    """The stage of a server without TLS that accepts, and never says a word."""
    prepare: tuple[tuple[object, str, object], ...] = ()


def _reasons(stage: str, *reasons: str) -> frozenset[tuple[str, str]]:
    return frozenset((stage, reason) for reason in reasons)


# --- PostgreSQL -----------------------------------------------------------------------------


@asynccontextmanager
async def _postgresql(request: pytest.FixtureRequest) -> AsyncIterator[FaultySource]:
    address = request.getfixturevalue("postgresql_rows")
    yield FaultySource(
        connection=connection_to(address),
        fails_amid_rows={"failing": _reasons("rows", "unknown")},
        too_slow={"slow": _reasons("rows", "timeout")},
    )


@contextmanager
def postgresql_rows_in(server: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(server) as address:
        run_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            f"INSERT INTO t SELECT i, repeat(i::text, 40) FROM generate_series(1, {ROWS}) i",
            f"CREATE VIEW failing AS SELECT id / ({FAILING_ROW} - id) AS id, s FROM t",
            "CREATE FUNCTION slowed(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN"
            f" IF $1 > {FAILING_ROW} THEN PERFORM pg_catalog.pg_sleep(0.05); END IF;"
            " RETURN $1; END'",
            "CREATE VIEW slow AS SELECT slowed(id) AS id, s FROM t",
        )
        yield address


# --- MariaDB --------------------------------------------------------------------------------


@asynccontextmanager
async def _mariadb(request: pytest.FixtureRequest) -> AsyncIterator[FaultySource]:
    address = request.getfixturevalue("mariadb_rows")

    yield FaultySource(
        connection=mariadb.connection_to(address),
        fails_amid_rows={"failing": _reasons("rows", "unknown")},
        too_slow={"slow": _reasons("rows", "timeout")},
    )


@contextmanager
def mariadb_rows_in(server: SqlAddress) -> Iterator[SqlAddress]:
    with mariadb.own_database(server) as address:
        mariadb.run_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            f"INSERT INTO t SELECT seq, repeat(seq, 40) FROM seq_1_to_{ROWS}",
            "CREATE VIEW failing AS SELECT"
            f" id + if(id > {FAILING_ROW}, 9223372036854775807, 0) AS id, s FROM t",
            "CREATE VIEW slow AS SELECT id + if(id > 100, sleep(0.01), 0) AS id, s FROM t",
        )
        yield address


# --- SQL Server, the fake -------------------------------------------------------------------


@asynccontextmanager
async def _sqlserver(request: pytest.FixtureRequest) -> AsyncIterator[FaultySource]:
    del request
    # texts travel as bytes that are asked for as such
    columns = [Column("int"), Column("varbinary")]
    rows = [(number, (f"{number}" * 10).encode("utf-16-le")) for number in range(ROWS)]
    columns_of: list[Definition] = [("id", "int"), ("s", "nvarchar", 100)]
    tables = {("dbo", name): columns_of for name in ("t", "e", "w")}
    some = rows[:FAILING_ROW]
    answers = {
        "WHERE": TdsAnswer(columns=columns),
        "FROM [dbo].[t]": TdsAnswer(columns=columns, rows=rows),
        "FROM [dbo].[e]": TdsAnswer(columns=columns, rows=some, errors=[ServerError(8134)]),
        "FROM [dbo].[w]": TdsAnswer(columns=columns, rows=repeat(rows[0])),
    }
    server = TdsServer(answer=answering(tables, answers))
    async with tds_server(server):
        yield FaultySource(
            connection=source(server),
            fails_amid_rows={"e": _reasons("rows", "unknown")},
            too_slow={"w": _reasons("rows", "timeout")},
        )


# --- MongoDB --------------------------------------------------------------------------------


@asynccontextmanager
async def _mongodb(request: pytest.FixtureRequest) -> AsyncIterator[FaultySource]:
    async with fake_mongo(**_failing_collections()) as server:
        yield FaultySource(
            connection=request.getfixturevalue("mongodb_rows"),
            fails_amid_rows={"failing": _reasons("rows", "unknown")},
            too_slow={"endless": _reasons("rows", "timeout")},
            failing=a_connection(
                source_type=SourceType.MONGODB, host="127.0.0.1", port=server.port, database="db"
            ),
        )


def _failing_collections() -> dict[str, Answer]:
    """``failing`` ends in an error; ``endless`` when the time is over that its reader has set."""
    numbers = count()
    give_up_at: list[float] = []

    def some(**places: Any) -> Mapping[str, Any]:
        return batch(
            *({"_id": n, "id": n, "s": f"{n}" * 40} for n in islice(numbers, 100)), **places
        )

    def find(command: dict[str, Any]) -> Mapping[str, Any]:
        if command.get("limit"):  # a sample
            return some()
        give_up_at.append(trio.current_time() + command["maxTimeMS"] / 1000)
        return some(cursor=1, of=f"db.{command['find']}")

    def get_more(command: dict[str, Any]) -> Mapping[str, Any]:
        if command["collection"] == "failing":
            return failed(_NO_SUCH_CODE)
        if trio.current_time() > give_up_at[-1]:
            return failed(_MAX_TIME_EXPIRED)
        return some(cursor=1, first=False, of=f"db.{command['collection']}")

    names = ("failing", "endless")
    return {
        "listCollections": lambda _: batch(*({"name": n, "type": "collection"} for n in names)),
        "count": lambda _: {"n": ROWS, "ok": 1.0},
        "find": find,
        "getMore": get_more,
    }


def mongodb_rows_in(uri: str, name: str) -> Connection:
    """A connection to the database of that name, which has the rows afterwards."""
    with pymongo.MongoClient[dict[str, object]](uri, serverSelectionTimeoutMS=10_000) as client:
        client[name]["t"].insert_many(
            [{"_id": number, "id": number, "s": f"{number}" * 40} for number in range(ROWS)]
        )
        host, port = client.address or ("", 0)
    return a_connection(source_type=SourceType.MONGODB, host=host, port=port, database=name)


def through(connection: Connection, port: int) -> Connection:
    """By way of that port, and no session that came by another one."""
    return replace(connection, id=new_connection_id(), host="127.0.0.1", port=port)


KINDS: dict[str, Kind] = {
    "postgresql": Kind(
        open=_postgresql,
        connecting=((postgresql_connect, "ADDRESS_SECONDS"),),
        before_rows=((postgresql_session, "SETUP_SECONDS"),),
        no_progress=((postgresql_rows, "NO_PROGRESS_SECONDS"),),
        tls_mode="require",
        silent_login="auth",
    ),
    "sqlserver": Kind(
        open=_sqlserver,
        connecting=((sqlserver_connect, "PHASE_SECONDS"),),
        before_rows=((sqlserver_session, "SETUP_SECONDS"),),
        no_progress=((sqlserver_rows, "NO_PROGRESS_SECONDS"),),
        tls_mode="true",
        # its servers say in their first message whether they speak TLS at all
        silent_login="tls",
    ),
    "mariadb": Kind(
        open=_mariadb,
        connecting=((mysql_connect, "LOGIN_SECONDS"),),
        before_rows=((mysql_session, "SETUP_SECONDS"),),
        no_progress=((mysql_rows, "NO_PROGRESS_SECONDS"),),
        tls_mode="true",
        silent_login="auth",
    ),
    "mongodb": Kind(
        open=_mongodb,
        connecting=((mongodb_connect, "PHASE_SECONDS"),),
        before_rows=(
            (connecting.SourceConnector.__init__.__kwdefaults__, "discovery_seconds"),
            (mongodb_connector, "DISCOVERY_SECONDS"),
        ),
        no_progress=((mongodb_connector, "NO_PROGRESS_SECONDS"),),
        tls_mode="true",
        silent_login="auth",
        prepare=((mongodb_rows, "_SERVER_BATCH_DOCUMENTS", 500),),
    ),
}
