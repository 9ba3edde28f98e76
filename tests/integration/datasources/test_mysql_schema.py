"""Discovery on MariaDB, and which table a name means (spec datasources 6, 7; case 10)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fetcher.domain.jobs import JobOptions
from fetcher_engine import ColumnSnapshot, EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources.harness import TENANT, engines, rows_of
from tests.integration.datasources.mariadb import connection_to, own_database, run_sql
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def test_tables_are_listed_with_types_and_keys(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE runs (b int, a int unsigned, note json, u int NOT NULL UNIQUE,"
        " PRIMARY KEY (a, b))",
        "CREATE TABLE keyless (u int NOT NULL UNIQUE)",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE SEQUENCE numbers",
    )
    async with engines() as opened:
        engine = opened.engine_for([connection_to(database)], JobOptions())
        snapshot = await engine.discover_schema(TENANT, "src")
    assert [table.name for table in snapshot.tables] == ["keyless", "runs"]
    assert not snapshot.tables[0].columns[0].primary_key
    assert set(snapshot.tables[1].columns) == {
        ColumnSnapshot("a", "int(10) unsigned", nullable=False, primary_key=True),
        ColumnSnapshot("b", "int(11)", nullable=False, primary_key=True),
        ColumnSnapshot("note", "json", nullable=True, primary_key=False),
        ColumnSnapshot("u", "int(11)", nullable=False, primary_key=False),
    }


async def test_a_schema_changes_nothing(database: SqlAddress) -> None:
    """There is none beside the connected database (spec 6.2), whoever names one."""
    run_sql(database, "CREATE TABLE runs (a int)", "INSERT INTO runs VALUES (7)")
    connection = replace(connection_to(database), schema="mysql")
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        assert (await engine.discover_schema(TENANT, "src")).table_names() == ("runs",)
        assert await rows_of(opened, connection, "runs", ["a"]) == [{"a": 7}]
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, connection, "mysql.user", ["User"])
    assert caught.value.category is ErrorCategory.VALIDATION


async def test_names_that_need_quoting_are_read_exactly(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE `Users` (a int)",
        "CREATE TABLE users (a int)",
        'CREATE TABLE `we"ird` (`select` int, `due date` int, `q``x` int, `per%cent {0}` int)',
        "CREATE TABLE `a.b` (a int)",
        "CREATE TABLE `t``; --` (a int)",
        "INSERT INTO `Users` VALUES (1)",
        "INSERT INTO users VALUES (2)",
        'INSERT INTO `we"ird` VALUES (3, 4, 5, 6)',
        "INSERT INTO `a.b` VALUES (7)",
        "INSERT INTO `t``; --` VALUES (8)",
    )
    connection = connection_to(database)
    async with engines() as opened:
        assert await rows_of(opened, connection, "Users", ["a"]) == [{"a": 1}]
        assert await rows_of(opened, connection, "users", ["a"]) == [{"a": 2}]
        assert await rows_of(opened, connection, f"{database.database}.users", ["a"]) == [{"a": 2}]
        assert await rows_of(opened, connection, 'WE"ird', ["*"]) == [
            {"due date": 4, "per%cent {0}": 6, "q`x": 5, "select": 3}
        ]
        assert await rows_of(
            opened, connection, 'we"ird', ["SELECT"], where={"Q`X": {"eq": [5]}}
        ) == [{"select": 3}]
        assert await rows_of(opened, connection, "a.b", ["a"]) == [{"a": 7}]
        assert await rows_of(opened, connection, "t`; --", ["a"]) == [{"a": 8}]
        for missing in ("USERS", "we ird"):
            with pytest.raises(EngineError) as caught:
                await rows_of(opened, connection, missing, ["a"])
            assert caught.value.category is ErrorCategory.VALIDATION


@pytest.mark.parametrize("change", ["DROP TABLE runs", "ALTER TABLE runs DROP note"])
async def test_schema_that_changed_after_planning_ends_the_job(
    database: SqlAddress, change: str
) -> None:
    run_sql(database, "CREATE TABLE runs (id int, note text)")
    connection = connection_to(database)
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), {"src": {"runs": ("note",)}})
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {"runs": ["note"]}})
        )
        run_sql(database, change)
        with pytest.raises(EngineError) as caught:
            await engine.execute_extraction(plan)
    found = (caught.value.stage, caught.value.reason, caught.value.table)
    assert found == ("schema", "schema changed", "runs")
