"""How many rows a source says that its tables have: its own statistics, never a count of ours."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
import pytest
from pymongo.database import Database

from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import ExtractionRequest
from tests.integration.datasources import mariadb as mysql
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    connection_to,
    engines,
    own_database,
    run_sql,
)
from tests.integration.datasources.sqlserver import ROWS, answering
from tests.integration.datasources.sqlserver import source as sql_server
from tests.servers.addresses import SqlAddress
from tests.servers.tds import TdsServer, tds_server

pytestmark = pytest.mark.integration

Estimates = Mapping[str, int | None]


async def estimates(
    connection: Connection, asked: Sequence[str] | None, **settings: Any
) -> Estimates:
    """By table what discovery tells, and, of the asked ones, the plan."""
    name = connection.config_name
    wanted = None if asked is None else {name: dict.fromkeys(asked, ("*",))}
    async with engines(**settings) as opened:
        engine = opened.engine_for([connection], JobOptions(), wanted)
        snapshot = await engine.discover_schema(TENANT, name)
        found = {table.name: table.estimated_rows for table in snapshot.tables}
        if wanted is not None:
            request = ExtractionRequest(mapped_fields=wanted)
            (step,) = (await engine.plan_extraction(TENANT, request)).steps
            told = {table: rows for table, rows in found.items() if rows is not None}
            assert step.estimated_rows == told
    return found


async def test_postgresql_tells_what_it_knew_when_it_last_analyzed(postgres: SqlAddress) -> None:
    with own_database(postgres) as database:
        run_sql(
            database,
            "CREATE TABLE runs AS SELECT n AS id FROM generate_series(1, 1200) AS s(n)",
            "CREATE TABLE empty (id int)",
            "CREATE TABLE never (id int)",
            "CREATE VIEW seen AS SELECT 1 AS id",
            "CREATE TABLE parts (id int) PARTITION BY RANGE (id)",
            "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)",
            "INSERT INTO never VALUES (1)",
            "INSERT INTO parts VALUES (1), (2)",
            "ANALYZE runs, empty",
            "ANALYZE parts",
            "INSERT INTO runs SELECT 7",
        )
        asked = ["runs", "empty", "never", "seen", "parts", "parts_1"]
        found = await estimates(connection_to(database), asked, include_views=True)
        listed = await estimates(connection_to(database), None)
    assert found == {
        "runs": 1200,
        "empty": 0,
        "never": None,
        "seen": None,
        "parts": 2,
        "parts_1": 2,
    }
    assert set(listed.values()) == {None}


async def test_mariadb_tells_what_its_engines_keep(mariadb: SqlAddress) -> None:
    """Those that count exactly do; of a view nothing is known, of a listing nothing is asked."""
    with mysql.own_database(mariadb) as database:
        mysql.run_sql(
            database,
            "CREATE TABLE runs (id int) ENGINE=MyISAM",
            "CREATE TABLE empty (id int) ENGINE=MyISAM",
            "CREATE VIEW seen AS SELECT id FROM runs",
            "INSERT INTO runs SELECT seq FROM seq_1_to_1200",
        )
        connection = mysql.connection_to(database)
        found = await estimates(connection, ["runs", "empty", "seen"], include_views=True)
        listed = await estimates(connection, None)
    assert found == {"runs": 1200, "empty": 0, "seen": None}
    assert listed == {"runs": None, "empty": None}


@pytest.fixture
def collections(mongo_uri: str) -> Iterator[Database[dict[str, Any]]]:
    with pymongo.MongoClient[dict[str, Any]](
        mongo_uri, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as client:
        name = f"fetcher_src_{uuid4().hex[:12]}"
        try:
            yield client[name]
        finally:
            client.drop_database(name)


@pytest.mark.usefixtures("brief_threads")
async def test_mongodb_tells_its_count(collections: Database[dict[str, Any]]) -> None:
    collections["runs"].insert_many({"_id": n} for n in range(1200))
    collections.create_collection("empty")
    address = collections.client.address
    assert address is not None
    host, port = address
    connection = a_connection(
        source_type=SourceType.MONGODB, host=host, port=port, database=collections.name
    )
    assert await estimates(connection, ["runs", "empty"]) == {"runs": 1200, "empty": 0}


async def test_sqlite_tells_what_analyze_left(tmp_path: Path) -> None:
    connection = a_connection(source_type=SourceType.SQLITE, database="a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        file.executescript(
            """CREATE TABLE runs (id INTEGER PRIMARY KEY, kind INT);
            CREATE INDEX some ON runs (kind) WHERE kind > 3;
            CREATE INDEX every ON runs (kind);
            CREATE TABLE plain (id INT);
            WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1200)
            INSERT INTO runs SELECT n, n % 5 FROM s;
            INSERT INTO plain VALUES (1), (2), (3);"""
        )
        before = await estimates(connection, ["runs", "plain"], sqlite_folder=tmp_path)
        file.executescript("ANALYZE; CREATE TABLE later (id INT); INSERT INTO plain VALUES (4);")
        after = await estimates(connection, ["runs", "plain", "later"], sqlite_folder=tmp_path)
    assert before == {"runs": None, "plain": None}
    assert after == {"runs": 1200, "plain": 3, "later": None}


@pytest.mark.parametrize("stat", ["x", "", "-5 1", None, b"\xff"])
async def test_sqlite_statistics_that_are_none_tell_nothing(stat: object, tmp_path: Path) -> None:
    connection = a_connection(source_type=SourceType.SQLITE, database="a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        file.executescript("CREATE TABLE t (id INT); INSERT INTO t VALUES (1); ANALYZE;")
        file.execute("UPDATE sqlite_stat1 SET stat = ?", (stat,))
        file.commit()
    assert await estimates(connection, ["t"], sqlite_folder=tmp_path) == {"t": None}


async def test_sql_server_tells_the_rows_of_the_asked_tables() -> None:
    answer = answering({("dbo", "orders"): [("id", "int")]}, {})
    async with tds_server(TdsServer(answer=answer)) as server:
        assert await estimates(sql_server(server), ["orders"]) == {"orders": ROWS}
        assert await estimates(sql_server(server), None) == {"orders": None}
