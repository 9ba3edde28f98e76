"""Discovery on PostgreSQL, and which table a name means (spec datasources 6, 7, 19.1, 19.5)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from fetcher.compat import normalized_request
from fetcher.domain.connections import Connection
from fetcher.domain.job_filters import source_names
from fetcher.domain.jobs import JobOptions
from fetcher_engine import (
    ColumnSnapshot,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
    SchemaSnapshot,
)
from tests.integration.datasources.harness import (
    TENANT,
    connection_to,
    engines,
    rows_of,
    run_sql,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture
def database(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    address = postgres_database()
    run_sql(
        address,
        "CREATE SCHEMA ops",
        "CREATE TABLE runs (b int, a int, note text, PRIMARY KEY (a, b))",
        "CREATE TABLE ops.jobs (id bigint PRIMARY KEY, price numeric(8,2) NOT NULL)",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE MATERIALIZED VIEW stored AS SELECT 1 AS one",
        "CREATE TABLE parts (id int, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE parts_2031 PARTITION OF parts"
        " FOR VALUES FROM ('2031-01-01') TO ('2032-01-01')",
        "CREATE TABLE pg_mine (x int)",
        "CREATE FOREIGN DATA WRAPPER nothing",
        "CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing",
        "CREATE FOREIGN TABLE far (x int) SERVER elsewhere",
        "ALTER TABLE runs ADD gone int",
        "ALTER TABLE runs DROP gone",
    )
    return address


async def discover(
    connection: Connection, requested: Sequence[str] | None = None
) -> SchemaSnapshot:
    asked = None if requested is None else {"src": dict.fromkeys(requested, ("*",))}
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), asked)
        return await engine.discover_schema(TENANT, "src")


async def test_views_are_sources_where_the_operator_wants_them(database: SqlAddress) -> None:
    connection = connection_to(database)
    async with engines(include_views=True) as opened:
        engine = opened.engine_for([connection], JobOptions())
        names = (await engine.discover_schema(TENANT, "src")).table_names()
        assert names == ("far", "parts", "parts_2031", "runs", "seen", "stored")
        for view in ("seen", "stored"):
            assert await rows_of(opened, connection, view, ["*"]) == [{"one": 1}]


async def test_without_scope_the_public_tables_are_listed_unqualified(
    database: SqlAddress,
) -> None:
    snapshot = await discover(connection_to(database))
    assert snapshot.config_name == "src"
    assert [table.name for table in snapshot.tables] == ["parts", "parts_2031", "runs"]
    runs = snapshot.tables[2]
    assert runs.fields == ("a", "b", "note")
    assert set(runs.columns) == {
        ColumnSnapshot("a", "integer", nullable=False, primary_key=True),
        ColumnSnapshot("b", "integer", nullable=False, primary_key=True),
        ColumnSnapshot("note", "text", nullable=True, primary_key=False),
    }


async def test_the_connections_schema_is_the_default_one(database: SqlAddress) -> None:
    snapshot = await discover(connection_to(database, schema="ops"))
    assert [(t.name, t.fields) for t in snapshot.tables] == [("jobs", ("id", "price"))]
    assert snapshot.tables[0].columns[1].type == "numeric(8,2)"


async def test_a_listed_schema_is_looked_at_while_bare_names_stay_public(
    database: SqlAddress,
) -> None:
    reader = replace(connection_to(database), listed_schema="ops")
    assert [table.name for table in (await discover(reader)).tables] == ["ops.jobs"]
    asked = await discover(reader, ["jobs", "ops.jobs", "runs"])
    assert [table.name for table in asked.tables] == ["ops.jobs", "runs"]
    own = await discover(replace(reader, schema="public"))
    assert "runs" in [table.name for table in own.tables]


async def test_asked_tables_of_several_schemas_are_found(database: SqlAddress) -> None:
    snapshot = await discover(
        connection_to(database),
        ["ops.jobs", "PUBLIC.runs", "missing", "seen", "far", "nowhere.runs"],
    )
    assert [table.name for table in snapshot.tables] == ["ops.jobs", "runs"]


async def test_only_what_the_user_has_a_privilege_on_is_seen(database: SqlAddress) -> None:
    role = f"fetcher_src_{uuid4().hex[:12]}"
    run_sql(database, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT (a, note) ON runs TO {role}")
    try:
        reader = replace(connection_to(database), username=role)
        snapshot = await discover(reader)
        assert [(t.name, t.fields) for t in snapshot.tables] == [("runs", ("a", "note"))]
        async with engines() as opened:
            assert await rows_of(opened, reader, "runs", ["*"]) == []
            with pytest.raises(EngineError) as caught:
                await rows_of(opened, reader, "runs", ["b"])
        assert caught.value.category is ErrorCategory.VALIDATION
    finally:
        run_sql(database, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


async def test_names_that_need_quoting_are_read_exactly(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(
        address,
        'CREATE TABLE "Users" (a int)',
        "CREATE TABLE users (a int)",
        'CREATE TABLE "we""ird" ("select" int, "due date" int, "q""x" int, "per%cent {0}" int)',
        'CREATE TABLE "a.b" (a int)',
        'CREATE TABLE "t""; --" (a int)',
        'INSERT INTO "Users" VALUES (1)',
        "INSERT INTO users VALUES (2)",
        'INSERT INTO "we""ird" VALUES (3, 4, 5, 6)',
        'INSERT INTO "a.b" VALUES (7)',
        'INSERT INTO "t""; --" VALUES (8)',
    )
    connection = connection_to(address)
    async with engines() as opened:
        assert await rows_of(opened, connection, "Users", ["a"]) == [{"a": 1}]
        assert await rows_of(opened, connection, "users", ["a"]) == [{"a": 2}]
        assert await rows_of(opened, connection, 'we"ird', ["*"]) == [
            {"due date": 4, "per%cent {0}": 6, 'q"x': 5, "select": 3}
        ]
        assert await rows_of(
            opened, connection, 'we"ird', ["select"], where={'q"x': {"eq": [5]}}
        ) == [{"select": 3}]
        assert await rows_of(opened, connection, "a.b", ["a"]) == [{"a": 7}]
        assert await rows_of(opened, connection, 't"; --', ["a"]) == [{"a": 8}]
        assert await rows_of(
            opened, connection, 'WE"IRD', ["SELECT"], where={'Q"X': {"eq": [5]}}
        ) == [{"select": 3}]
        assert await rows_of(opened, connection, "A.B", ["A"]) == [{"a": 7}]
        for missing, detail in (("USERS", "ambiguous"), ("we ird", "not found")):
            with pytest.raises(EngineError) as caught:
                await rows_of(opened, connection, missing, ["a"])
            assert caught.value.category is ErrorCategory.VALIDATION
            (failure,) = caught.value.failures
            assert (failure.table, detail in failure.detail) == (missing, True)


async def test_a_table_in_a_schema_wins_over_a_name_with_a_dot(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(
        address,
        "CREATE SCHEMA a",
        "CREATE TABLE a.b (v int)",
        'CREATE TABLE "a.b" (v int)',
        "INSERT INTO a.b VALUES (1)",
        'INSERT INTO "a.b" VALUES (2)',
    )
    async with engines() as opened:
        assert await rows_of(opened, connection_to(address), "a.b", ["v"]) == [{"v": 1}]


async def test_a_public_table_is_not_taken_for_one_of_the_connections_schema(
    database: SqlAddress,
) -> None:
    run_sql(
        database,
        "CREATE TABLE ops.runs (v int)",
        "INSERT INTO ops.runs VALUES (1)",
        "INSERT INTO public.runs VALUES (2, 3, 'x')",
    )
    connection = connection_to(database, schema="ops")
    requested = {"src": {"public.runs": ("note",), "ops.runs": ("v",)}}
    wanted, _ = normalized_request(requested, {}, source_names([connection]))
    async with engines() as opened:
        assert await rows_of(opened, connection, "runs", ["v"]) == [{"v": 1}]
        engine = opened.engine_for([connection], JobOptions(), requested)
        plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=wanted))
        result = await engine.execute_extraction(plan)
    assert result.direct is not None
    assert result.direct.data == b'{"src":{"public.runs":[{"note":"x"}],"runs":[{"v":1}]}}'


async def test_one_table_asked_for_in_two_spellings_is_read_once(database: SqlAddress) -> None:
    connection = connection_to(database)
    run_sql(database, "INSERT INTO runs VALUES (2, 3, 'x')")
    requested = {"src": {"public.runs": ("note",), "runs": ("b",)}}
    wanted, _ = normalized_request(requested, {}, source_names([connection]))
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions(), requested)
        plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=wanted))
        result = await engine.execute_extraction(plan)
    assert result.direct is not None
    assert result.direct.data == b'{"src":{"runs":[{"b":2,"note":"x"}]}}'


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE runs", "ALTER TABLE runs DROP note", "ALTER TABLE runs RENAME note TO notes"],
)
async def test_schema_that_changed_after_planning_ends_the_job(
    database: SqlAddress, change: str
) -> None:
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
