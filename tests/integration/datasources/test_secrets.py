"""No secret and no row leaves a source in a failure, in a log or in a text form (case 21).

One suite for every database. Each has a connection with a canary in every field, and ways to fail
that put a canary into what its driver or server says.
"""

import logging
import pickle
import sqlite3
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.records import descriptor_of
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.ids import new_connection_id
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    a_connection,
    connection_to,
    document,
    engines,
    own_database,
    run_sql,
)
from tests.integration.datasources.mariadb import connection_to as mariadb_connection_to
from tests.integration.datasources.mariadb import own_database as own_mariadb
from tests.integration.datasources.mariadb import run_sql as run_mariadb_sql
from tests.integration.datasources.relay import relay
from tests.integration.datasources.sqlserver import Definition, answering, source
from tests.servers.addresses import SqlAddress
from tests.servers.fake_mongo import batch, failed, fake_mongo
from tests.servers.tds import Answer, Column, ServerError, TdsServer, tds_server
from tests.unit.datasources.oracle.fake_driver import (
    OPENED,
    FakeDatabase,
    a_catalogue,
    driver_error,
)
from tests.unit.datasources.oracle.fake_driver import Answer as OracleAnswer

pytestmark = pytest.mark.integration

CANARY = "canary7d1f"
PASSWORD = f"{CANARY}-of-a-password"
PEM = f"-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----\n"
KEY = PEM.replace("CERTIFICATE", "PRIVATE KEY").replace(CANARY, PASSWORD)
CANARY_TLS = {"ca": PEM, "cert": PEM, "key": KEY}


@dataclass(frozen=True, kw_only=True)
class Way:
    """To fail: which connection, and what is asked of it. The reason tells that it came so far."""

    connection: Connection
    reason: str
    table: str = "t"
    fields: Sequence[str] = ("id", "s")
    where: dict[str, dict[str, Sequence[object]]] = field(default_factory=dict)


Ways = dict[str, Way]


@asynccontextmanager
async def _postgresql(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    address: SqlAddress = request.getfixturevalue("canary_rows")
    good = replace(connection_to(address), password_encrypted=PASSWORD)
    async with relay(address.host, address.port, cut_after=60_000) as link:
        cut = replace(connection_to(address), host="127.0.0.1", port=link.port)
        yield {
            "unknown user": Way(connection=replace(good, username=CANARY), reason="auth"),
            "unknown database": Way(
                connection=replace(good, database_name=CANARY), reason="database_missing"
            ),
            "unknown host": Way(connection=replace(good, host=f"{CANARY}.invalid"), reason="dns"),
            "closed port": Way(connection=replace(good, port=1), reason="refused"),
            "no certificates": Way(
                connection=replace(good, tls=TlsSettings(mode="verify-full", **CANARY_TLS)),
                reason="tls",
            ),
            "a row that fails": Way(connection=good, table="failing", reason="unknown"),
            "a value that fits no column": Way(
                connection=good, where={"id": {"eq": [CANARY]}}, reason="invalid_filter_value"
            ),
            "a cut": Way(connection=cut, reason="reset"),
        }


@pytest.fixture(scope="module")
def canary_rows(postgres: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(postgres) as address:
        run_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            f"INSERT INTO t SELECT i, '{CANARY}' || i FROM generate_series(1, 20000) i",
            "CREATE VIEW failing AS SELECT CASE WHEN id > 15000 THEN s::int ELSE id END AS id, s"
            " FROM t",
        )
        yield address


@asynccontextmanager
async def _mariadb(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    address: SqlAddress = request.getfixturevalue("canary_rows_of_mariadb")
    good = mariadb_connection_to(address)
    async with relay(address.host, address.port, cut_after=60_000) as link:
        cut = replace(good, host="127.0.0.1", port=link.port, id=new_connection_id())
        yield {
            "wrong password": Way(
                connection=replace(good, username="nobody", password_encrypted=PASSWORD),
                reason="auth",
            ),
            "unknown user": Way(connection=replace(good, username=CANARY), reason="auth"),
            "unknown database": Way(
                connection=replace(good, database_name=CANARY), reason="database_missing"
            ),
            "unknown host": Way(connection=replace(good, host=f"{CANARY}.invalid"), reason="dns"),
            "closed port": Way(connection=replace(good, port=1), reason="refused"),
            "no certificates": Way(
                connection=replace(good, tls=TlsSettings(mode="true", **CANARY_TLS)), reason="tls"
            ),
            "a row that fails": Way(connection=good, table="failing", reason="unknown"),
            "a value that fits no column": Way(
                connection=good, where={"id": {"eq": [CANARY]}}, reason="invalid_filter_value"
            ),
            "a cut": Way(connection=cut, reason="reset"),
        }


@pytest.fixture(scope="module")
def canary_rows_of_mariadb(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_mariadb(mariadb) as address:
        run_mariadb_sql(
            address,
            "CREATE TABLE t (id int PRIMARY KEY, s text)",
            f"INSERT INTO t SELECT seq, concat('{CANARY}', seq) FROM seq_1_to_20000",
            "CREATE FUNCTION fail(s text) RETURNS int NOT DETERMINISTIC BEGIN"
            " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = s; RETURN 1; END",
            "CREATE VIEW failing AS SELECT if(id > 15000, fail(s), id) AS id, s FROM t",
        )
        yield address


@asynccontextmanager
async def _sqlserver(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    del request
    text = CANARY.encode("utf-16-le")
    columns = [Column("int"), Column("varbinary")]
    some = [(number, text) for number in range(50)]
    names = ("t", "refused", "cut", "odd")
    columns_of: list[Definition] = [("id", "int"), ("s", "nvarchar", 100)]
    tables = {("dbo", name): columns_of for name in names}
    answers = {
        "FROM [dbo].[refused]": Answer(
            columns=columns, rows=some, errors=[ServerError(245, CANARY)]
        ),
        "FROM [dbo].[cut]": Answer(columns=columns, rows=some, cut=True),
        "FROM [dbo].[odd]": Answer(columns=columns, rows=[(1, text + b"\0")]),
    }
    server = TdsServer(answer=answering(tables, answers))
    async with tds_server(server):
        good = source(server)
        yield {
            "wrong password": Way(
                connection=replace(good, password_encrypted=PASSWORD), reason="auth"
            ),
            "unknown user": Way(connection=replace(good, username=CANARY), reason="auth"),
            "unknown database": Way(
                connection=replace(good, database_name=CANARY), reason="database_missing"
            ),
            "no certificates": Way(
                connection=replace(good, tls=TlsSettings(mode="true", **CANARY_TLS)), reason="tls"
            ),
            "a row that fails": Way(connection=good, table="refused", reason="unknown"),
            "a cut": Way(connection=good, table="cut", reason="reset"),
            "a cell that is no text": Way(connection=good, table="odd", reason="invalid_text"),
            "a value that fits no column": Way(
                connection=good, where={"id": {"eq": [CANARY]}}, reason="invalid_filter_value"
            ),
        }


@asynccontextmanager
async def _mongodb(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    del request

    def refuse(_: object) -> dict[str, object]:
        return dict(failed(18, f"{CANARY}: you said {PASSWORD}"))

    def rows(_: object) -> dict[str, object]:
        return dict(batch({"id": 1, "s": CANARY}, cursor=7))

    def count(_: object) -> dict[str, object]:
        return {"n": 1, "ok": 1.0}

    def names(_: object) -> dict[str, object]:
        return dict(batch({"name": "t", "type": "collection"}, of="db.$cmd.listCollections"))

    async with (
        fake_mongo(saslStart=refuse) as refusing,
        fake_mongo(listCollections=names, count=count, find=rows, getMore=refuse) as failing,
    ):
        good = a_connection(
            source_type=SourceType.MONGODB, host="127.0.0.1", port=failing.port, database="db"
        )
        named = replace(good, username=CANARY, password_encrypted=PASSWORD)
        yield {
            "wrong password": Way(connection=replace(named, port=refusing.port), reason="auth"),
            "unknown host": Way(connection=replace(named, host=f"{CANARY}.invalid"), reason="dns"),
            "no certificates": Way(
                connection=replace(named, tls=TlsSettings(mode="true", **CANARY_TLS)), reason="tls"
            ),
            "rows that end in an error": Way(connection=good, reason="unknown"),
        }


@asynccontextmanager
async def _sqlite(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    folder: Path = request.getfixturevalue("tmp_path")
    (folder / f"{CANARY}.db").write_text(f"{CANARY} is no database" * 100)
    run_sqlite(
        folder / "rows.db",
        "CREATE TABLE t (id int, s text)",
        f"INSERT INTO t VALUES (1, '{CANARY}'), (2, CAST(x'{CANARY.encode().hex()}F3' AS TEXT))",
    )
    outside = folder.parent / f"{CANARY}-outside.db"
    outside.touch()

    def file(name: str) -> Connection:
        return replace(
            a_connection(source_type=SourceType.SQLITE, password=PASSWORD, user=CANARY),
            database_name=name,
        )

    yield {
        "no such file": Way(connection=file(f"{CANARY}/none.db"), reason="database_missing"),
        "a file elsewhere": Way(connection=file(f"../{outside.name}"), reason="path_refused"),
        "no database": Way(connection=file(f"{CANARY}.db"), reason="protocol"),
        "a cell that is no text": Way(connection=file("rows.db"), reason="invalid_text"),
    }


def run_sqlite(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@asynccontextmanager
async def _oracle(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    columns = [
        ("HR", "T", "ID", "NUMBER", None, 22, 10, 0, "Y"),
        ("HR", "T", "S", "VARCHAR2", None, 10, None, None, "Y"),
    ]
    answers = [*a_catalogue(columns), OracleAnswer('SELECT t."ID"', [(CANARY, CANARY)])]
    FakeDatabase(answers=answers).install(request.getfixturevalue("monkeypatch"))
    yield {
        "a value that is no number": Way(
            connection=ORACLE, table="T", fields=("ID", "S"), reason="protocol"
        ),
        "no certificates": Way(
            connection=replace(ORACLE, tls=TlsSettings(mode="verify", **CANARY_TLS)), reason="tls"
        ),
    }


@asynccontextmanager
async def _oracle_that_refuses(request: pytest.FixtureRequest) -> AsyncIterator[Ways]:
    refusal = driver_error(1017, CANARY)
    FakeDatabase(refuses=refusal).install(request.getfixturevalue("monkeypatch"))
    yield {"wrong password": Way(connection=ORACLE, table="T", reason="auth")}


ORACLE = replace(
    a_connection(
        source_type=SourceType.ORACLE,
        host="192.0.2.7",
        port=1521,
        database="ignored",
        user=CANARY,
        password=PASSWORD,
    ),
    metadata={"serviceName": CANARY},
)


KINDS: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Ways]]] = {
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "sqlserver": _sqlserver,
    "mongodb": _mongodb,
    "sqlite": _sqlite,
    "oracle": _oracle,
    "oracle, refusing": _oracle_that_refuses,
}


@pytest.fixture(autouse=True)
def closed_listeners() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_failure_and_no_log_holds_a_canary(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    # below what the product lets any library say, it tells whole commands and answers
    caplog.set_level(logging.WARNING, "pymongo")
    with capture_logs() as logged:
        async with (
            KINDS[kind](request) as ways,
            engines(sqlite_folder=tmp_path, include_views=True) as opened,
        ):
            reasons = {}
            for name, way in ways.items():
                error = await _failure_of(opened, way)
                reasons[name] = error.reason
                _gives_nothing_away(error, way)
                _shows_no_secret(way.connection)
    assert reasons == {name: way.reason for name, way in ways.items()}
    assert CANARY not in repr(logged)
    assert CANARY not in caplog.text
    out, err = capfd.readouterr()
    assert CANARY not in out + err


async def _failure_of(opened: RequestEngines, way: Way) -> EngineError:
    with pytest.raises(EngineError) as caught:
        await document(
            opened,
            way.connection,
            {way.table: way.fields},
            filters={way.table: way.where} if way.where else None,
        )
    return caught.value


def _shows_no_secret(connection: Connection) -> None:
    """What a record shows of itself is what its owner may read of it."""
    told = replace(connection, host="", database_name="", username="", metadata={})
    assert CANARY not in repr((told, descriptor_of(told), told.tls))


def _gives_nothing_away(error: EngineError, way: Way) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    assert error.unwrap() is None
    shown = [
        str(error),
        repr(error),
        repr(vars(error)),
        str(error.to_public_dict()),
        pickle.dumps(error).decode("latin-1"),
        *traceback.format_exception(error),
    ]
    assert CANARY not in "".join(shown), way
    assert [told for told in _locals_of_ours(error) if PASSWORD in told] == []


def _locals_of_ours(error: EngineError) -> Iterator[str]:
    """What a debugger's or a collector's traceback shows of each of our frames that it went
    through."""
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if "/fetcher" in frame.filename and "/tests/" not in frame.filename:
            for name, shown in (frame.locals or {}).items():
                yield f"{frame.filename}:{frame.lineno} {name}={shown}\n"
