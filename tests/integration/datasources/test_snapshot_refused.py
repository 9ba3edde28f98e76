"""Sources that refuse a snapshot are read without one, and that is told (spec datasources 12.2)."""

from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fetcher.domain.connections import Connection
from fetcher_engine import EngineError, SourceNotes
from tests.integration.datasources import harness, mariadb
from tests.integration.datasources.harness import document, engines, extraction
from tests.integration.datasources.refusing import (
    RefusingProxy,
    mysql_query,
    mysql_refusal,
    mysql_statement,
    postgresql_forgetting,
    postgresql_refusal,
    postgresql_statement,
    served,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration

Logs = list[MutableMapping[str, Any]]

FIELDS = {"a": ["x"], "b": ["x"]}
WHOLE = b'{"src":{"a":[{"x":1}],"b":[{"x":2}]}}'
TABLES = (
    "CREATE TABLE a (x int)",
    "CREATE TABLE b (x int)",
    "INSERT INTO a VALUES (1)",
    "INSERT INTO b VALUES (2)",
)
REFUSED = ("warning", "snapshot_refused", False)
WITHOUT = SourceNotes(has_snapshot=False)
AGAIN = ("info", "read_without_snapshot", False)


@pytest.fixture
def postgresql(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    address = postgres_database()
    harness.run_sql(address, *TABLES)
    return address


@pytest.fixture
def mysql(request: pytest.FixtureRequest) -> Iterator[SqlAddress]:
    with mariadb.own_database(request.getfixturevalue("mariadb")) as address:
        mariadb.run_sql(address, *TABLES)
        yield address


@pytest.fixture
def logs() -> Iterator[Logs]:
    with capture_logs() as captured:
        yield captured


def told(logs: Logs) -> list[tuple[str, str, bool]]:
    return [
        (entry["log_level"], entry["event"], entry["snapshot"])
        for entry in logs
        if "snapshot" in entry
    ]


@asynccontextmanager
async def before_postgresql(
    address: SqlAddress, state: bytes, *, hangs_up: bool = False, forgets: bool = False
) -> AsyncIterator[tuple[Connection, RefusingProxy]]:
    """Without a state the proxy says nothing."""
    proxy = RefusingProxy(
        statement=b"BEGIN",
        refusal=postgresql_refusal(state, is_last=hangs_up) if state else b"",
        hangs_up=hangs_up,
        rewrite=postgresql_forgetting if forgets else None,
        statement_in=postgresql_statement,
    )
    async with served(proxy, address.host, address.port):
        yield replace(harness.connection_to(address), host="127.0.0.1", port=proxy.port), proxy


@asynccontextmanager
async def before_mysql(
    address: SqlAddress,
    statement: bytes,
    code: int,
    *,
    hangs_up: bool = False,
    rewrite: Callable[[bytes], bytes] | None = None,
) -> AsyncIterator[tuple[Connection, RefusingProxy]]:
    proxy = RefusingProxy(
        statement=statement,
        refusal=mysql_refusal(code) if code else b"",
        hangs_up=hangs_up,
        rewrite=rewrite,
        statement_in=mysql_statement,
    )
    async with served(proxy, address.host, address.port):
        yield replace(mariadb.connection_to(address), host="127.0.0.1", port=proxy.port), proxy


@pytest.mark.parametrize(
    ("state", "hangs_up"),
    [(b"08P01", True), (b"08P01", False), (b"0A000", False), (b"42601", False)],
)
async def test_postgresql_is_read_without_a_snapshot_and_that_is_told(
    postgresql: SqlAddress,
    logs: Logs,
    state: bytes,
    hangs_up: bool,
) -> None:
    async with (
        before_postgresql(postgresql, state, hangs_up=hangs_up) as (connection, proxy),
        engines() as opened,
    ):
        assert await extraction(opened, connection, FIELDS) == (WHOLE, WITHOUT)
        assert told(logs) == [REFUSED]
        assert await extraction(opened, connection, FIELDS) == (WHOLE, WITHOUT)
    assert told(logs) == [REFUSED, AGAIN]
    copies = [each for each in proxy.heard if b"COPY (" in each]
    assert [each.count(b"COPY (") for each in copies] == [1] * 4, "one statement a table"
    assert all(each.startswith(b"SET TRANSACTION READ ONLY; ") for each in copies)


@pytest.mark.parametrize("statement", [b"SET SESSION TRANSACTION", b"START TRANSACTION"])
@pytest.mark.parametrize("code", [1064, 1148, 1235])
async def test_mysql_is_read_without_a_snapshot_and_that_is_told(
    mysql: SqlAddress, logs: Logs, statement: bytes, code: int
) -> None:
    async with (
        before_mysql(mysql, statement, code) as (connection, _),
        engines() as opened,
    ):
        for _ in range(2):
            assert await extraction(opened, connection, FIELDS) == (WHOLE, WITHOUT)
    assert told(logs) == [REFUSED, AGAIN]


@pytest.mark.parametrize("check", [1, 2, 3])
async def test_mysql_without_a_snapshot_is_not_read_from_a_session_that_was_not_prepared(
    mysql: SqlAddress, check: int
) -> None:
    """Before all, and before the statement of each of the two tables."""
    asked: list[bytes] = []

    def rewrite(statement: bytes) -> bytes:
        if statement.startswith(b"SELECT @@SESSION."):
            asked.append(statement)
            if len(asked) == check:
                statement = statement.replace(b"@@SESSION.time_zone", b"'SYSTEM'")
        return mysql_query(statement)

    async with (
        before_mysql(mysql, b"START TRANSACTION", 1064, rewrite=rewrite) as (connection, _),
        engines() as opened,
    ):
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, FIELDS)
    assert (caught.value.stage, caught.value.reason) == ("session", "pooled")
    assert len(asked) == check


async def test_each_connection_is_told_of(postgresql: SqlAddress, logs: Logs) -> None:
    async with (
        before_postgresql(postgresql, b"0A000") as (one, _),
        before_postgresql(postgresql, b"0A000") as (other, _),
        engines() as opened,
    ):
        for connection in (one, other):
            assert await document(opened, connection, FIELDS) == WHOLE
    assert told(logs) == [REFUSED, REFUSED]


@pytest.mark.parametrize("state", [b"", b"57P01", b"53300", b"25006", b"XX000"])
async def test_postgresql_lost_or_failing_otherwise_fails_the_job(
    postgresql: SqlAddress, logs: Logs, state: bytes
) -> None:
    async with (
        before_postgresql(postgresql, state, hangs_up=True) as (connection, _),
        engines() as opened,
    ):
        with pytest.raises(EngineError):
            await document(opened, connection, FIELDS)
    assert told(logs) == []


@pytest.mark.parametrize(("code", "hangs_up"), [(0, True), (1227, False), (1053, True)])
async def test_mysql_lost_or_failing_otherwise_fails_the_job(
    mysql: SqlAddress, logs: Logs, code: int, hangs_up: bool
) -> None:
    async with (
        before_mysql(mysql, b"START TRANSACTION", code, hangs_up=hangs_up) as (connection, _),
        engines() as opened,
    ):
        with pytest.raises(EngineError):
            await document(opened, connection, FIELDS)
    assert told(logs) == []


async def test_a_proxy_that_forgets_settings_between_statements_changes_no_value(
    postgresql: SqlAddress,
) -> None:
    """Without a transaction each statement may meet a server that somebody else has set up."""
    harness.run_sql(
        postgresql,
        "CREATE TABLE set (f float8, d timestamptz)",
        "INSERT INTO set VALUES (0.1::float8 + 0.2::float8, '2024-05-06 07:08:09+02')",
    )
    async with (
        before_postgresql(postgresql, b"08P01", hangs_up=True, forgets=True) as (connection, _),
        engines() as opened,
    ):
        data = await document(opened, connection, {"set": ["d", "f"]})
    assert data == (b'{"src":{"set":[{"d":"2024-05-06T05:08:09Z","f":0.30000000000000004}]}}')


async def test_a_server_with_snapshots_is_not_told_of(
    postgresql: SqlAddress, mysql: SqlAddress, logs: Logs
) -> None:
    async with engines() as opened:
        for connection in (harness.connection_to(postgresql), mariadb.connection_to(mysql)):
            assert await extraction(opened, connection, FIELDS) == (WHOLE, SourceNotes())
    assert told(logs) == []
