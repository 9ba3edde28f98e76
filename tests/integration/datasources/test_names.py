"""Which table and which field a request means, on every SQL database (spec datasources 7; case 10).

A database is an entry in ``DATABASES``: how its tables come to be, and where bare names lie.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from fetcher.commands.job_failures import failure_of
from fetcher.compat import normalized_request
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.job_filters import source_names
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources import mariadb as on_mariadb
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    connection_to,
    engines,
    own_database,
    parsed,
    run_sql,
)
from tests.integration.datasources.sqlserver import answering, source
from tests.servers.addresses import SqlAddress
from tests.servers.tds import Answer, Column, TdsServer, tds_server

pytestmark = pytest.mark.integration

NAMES = (
    "Users",
    "users",
    'we"ird',
    "a.b",
    "order",
    "größe ✓",
    "due date",
    " led ",
    '"q"',
    "n" * 60,
)
"""Tables with one row each: in ``v`` its place in this list; only the first has more columns."""

Fields = Mapping[str, Sequence[str]]
Extract = Callable[[Fields], Awaitable[dict[str, list[dict[str, Any]]]]]


def _statements(mark: str, doubled: str) -> Iterator[str]:
    for number, name in enumerate(NAMES):
        table = f"{mark}{name.replace(mark, doubled)}{mark}"
        yield f"CREATE TABLE {table} (v int)"
        yield f"INSERT INTO {table} VALUES ({number})"
    table = f"{mark}Users{mark}"
    yield f"ALTER TABLE {table} ADD COLUMN {mark}select{mark} int DEFAULT 7"


@contextmanager
def _on_mariadb(address: SqlAddress) -> Iterator[Connection]:
    with on_mariadb.own_database(address) as own:
        # a name that ends in a space is none there
        statements = [each for each in _statements("`", "``") if "` led `" not in each]
        on_mariadb.run_sql(own, *statements)
        yield on_mariadb.connection_to(own)


@contextmanager
def _on_postgresql(address: SqlAddress) -> Iterator[Connection]:
    with own_database(address) as own:
        run_sql(own, *_statements('"', '""'))
        yield connection_to(own)


DATABASES = {"postgresql": ("postgres", _on_postgresql), "mariadb": ("mariadb", _on_mariadb)}
"""By kind the fixture of its server, and how a database with the tables comes to be."""

KINDS = pytest.mark.parametrize("connection", DATABASES, indirect=True)


@pytest.fixture(scope="module")
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    server, open_database = DATABASES[request.param]
    with open_database(request.getfixturevalue(server)) as each:
        yield each


async def extracted(
    connection: Connection, fields: Fields, **settings: Any
) -> dict[str, list[dict[str, Any]]]:
    """The rows by table, the request's names normalized as a worker does it."""
    keeps_default = settings.get("keeps_default_schema", False)
    asked = {"src": {table: tuple(names) for table, names in fields.items()}}
    wanted, _ = normalized_request(
        asked, {}, source_names([connection], keeps_default=keeps_default)
    )
    async with engines(**settings) as opened:
        engine = opened.engine_for([connection], JobOptions(), asked)
        plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=wanted))
        result = await engine.execute_extraction(plan)
    return parsed(result.document)


async def refusal(connection: Connection, fields: Fields) -> EngineError:
    with pytest.raises(EngineError) as caught:
        await extracted(connection, fields)
    return caught.value


def _value(number: int) -> list[dict[str, Any]]:
    return [{"v": number}]


@KINDS
@pytest.mark.parametrize(
    ("asked", "key", "number"),
    [
        ("Users", "Users", 0),
        ("users", "users", 1),
        ('"Users"', "Users", 0),
        ('we"ird', 'we"ird', 2),
        ('"we""ird"', 'we"ird', 2),
        ('WE"IRD', 'WE"IRD', 2),
        ("a.b", "a.b", 3),
        ('"a.b"', '"a.b"', 3),
        ('"A.B"', '"A.B"', 3),
        ("order", "order", 4),
        ('"order"', "order", 4),
        ("größe ✓", "größe ✓", 5),
        ("due date", "due date", 6),
        ("  due date ", "due date", 6),
        ('"""q"""', '"""q"""', 8),
        ("n" * 60, "n" * 60, 9),
    ],
)
async def test_a_name_means_one_table(
    connection: Connection, asked: str, key: str, number: int
) -> None:
    assert await extracted(connection, {asked: ["v"]}) == {key: _value(number)}


@KINDS
@pytest.mark.parametrize(
    "asked",
    [
        '"users',
        '"q"',
        '"a"."b"',
        '""',
        '"".""',
        ".",
        "a.",
        '"a.b".c.d.e',
        '"due date "',
        "n" * 59,
        "n" * 61,
        "n" * 128,
        '"' * 1023,
        ".a" * 512,
        't"; DROP TABLE users; --',
    ],
)
async def test_what_is_no_table_is_told_by_its_name(connection: Connection, asked: str) -> None:
    error = await refusal(connection, {asked: ["v"]})
    assert error.category is ErrorCategory.VALIDATION
    (failure,) = error.failures
    assert (failure.type, failure.candidates) == ("table_not_found", ())


@KINDS
@pytest.mark.parametrize("asked", ["USERS", '"USERS"', "uSERS"])
async def test_an_ambiguous_table_lists_what_it_could_mean(
    connection: Connection, asked: str
) -> None:
    error = await refusal(connection, {asked: ["v"]})
    (failure,) = error.failures
    assert failure.candidates == ("Users", "users")
    name = asked.strip('"')
    assert failure_of(error).message == (
        f"src: schema mismatch: ambiguous names {name} (Users, users)"
    )


@KINDS
async def test_every_name_of_the_listing_can_be_asked_for(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        listed = (await engine.discover_schema(TENANT, "src")).table_names()
    found = await extracted(connection, {name: ["v"] for name in listed})
    numbers = sorted(rows[0]["v"] for rows in found.values())
    spaced = connection.type is SourceType.POSTGRESQL
    assert numbers == [number for number in range(len(NAMES)) if spaced or number != 7]


@KINDS
async def test_columns_are_found_like_tables(connection: Connection) -> None:
    assert await extracted(connection, {"Users": ["SELECT", "V"]}) == {
        "Users": [{"select": 7, "v": 0}]
    }
    error = await refusal(connection, {"Users": ["v", "selec", "select", 'v"; --']})
    assert failure_of(error).message == (
        'src: schema mismatch: missing fields Users.selec, Users.v"; --'
    )


async def test_ambiguous_columns_list_what_they_could_mean(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(address, 'CREATE TABLE t ("Sum" int, sum int)', "INSERT INTO t VALUES (1, 2)")
    connection = connection_to(address)
    assert await extracted(connection, {"t": ["Sum", "sum"]}) == {"t": [{"Sum": 1, "sum": 2}]}
    error = await refusal(connection, {"t": ["SUM"]})
    assert failure_of(error).message == "src: schema mismatch: ambiguous names t.SUM (Sum, sum)"


async def test_a_catalog_before_a_schema_may_make_two_names_one(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    """It is dropped (spec engine 17.1), so that both names are ``We.ird`` to the result."""
    address = postgres_database()
    run_sql(
        address,
        'CREATE SCHEMA "Sales 2031"',
        'CREATE TABLE "Sales 2031"."We.ird" (v int)',
        'CREATE TABLE "We.ird" (v int)',
        'INSERT INTO "Sales 2031"."We.ird" VALUES (1)',
        'INSERT INTO "We.ird" VALUES (2)',
    )
    connection = connection_to(address)
    both = await refusal(connection, {"Sales 2031.We.ird": ["v"], "We.ird": ["v"]})
    (failure,) = both.failures
    assert failure.candidates == ('"We.ird"', 'Sales 2031."We.ird"')
    found = await extracted(connection, {"Sales 2031.We.ird": ["v"], '"We.ird"': ["v"]})
    assert found == {"We.ird": [{"v": 1}], '"We.ird"': [{"v": 2}]}


async def test_ambiguous_names_of_another_schema_are_told_with_it(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(
        address,
        "CREATE SCHEMA sales",
        'CREATE TABLE sales."2031.q1" (v int)',
        'CREATE TABLE sales."2031.Q1" (v int)',
        "CREATE TABLE sales.q1 (v int)",
        'CREATE SCHEMA "sales.2031"',
        'CREATE TABLE "sales.2031".q1 (v int)',
        'INSERT INTO sales."2031.q1" VALUES (1)',
        "INSERT INTO sales.q1 VALUES (2)",
        'INSERT INTO "sales.2031".q1 VALUES (3)',
    )
    connection = connection_to(address)
    asked = ('sales."2031.q1"', '"sales"."q1"', '"sales.2031".q1', "db.sales.q1")
    assert await extracted(connection, {name: ["v"] for name in asked}) == {
        'sales."2031.q1"': [{"v": 1}],
        '"sales"."q1"': [{"v": 2}],
        "sales.q1": [{"v": 2}],
        '"sales.2031".q1': [{"v": 3}],
    }
    # the database has tables of that name, but the wanted spelling is none of theirs
    run_sql(address, 'CREATE TABLE sales."A.b" (v int)', 'CREATE TABLE sales."a.B" (v int)')
    error = await refusal(connection, {"sales.a.b": ["v"]})
    (failure,) = error.failures
    assert failure.candidates == ('sales."A.b"', 'sales."a.B"')


async def test_the_connections_schema_is_where_bare_names_lie_unless_it_is_switched_off(
    postgres_database: Callable[[], SqlAddress],
) -> None:
    address = postgres_database()
    run_sql(
        address,
        "CREATE SCHEMA ops",
        "CREATE TABLE runs (v int)",
        "CREATE TABLE ops.runs (v int)",
        "INSERT INTO runs VALUES (1)",
        "INSERT INTO ops.runs VALUES (2)",
    )
    connection = connection_to(address, schema="ops")
    both = {"runs": ["v"], "public.runs": ["v"], "ops.runs": ["v"]}
    assert await extracted(connection, both) == {"runs": [{"v": 2}], "public.runs": [{"v": 1}]}
    legacy: dict[str, Any] = {"keeps_default_schema": True}
    assert await extracted(connection, both, **legacy) == {
        "runs": [{"v": 1}],
        "ops.runs": [{"v": 2}],
    }
    for settings, listed in (({}, ("runs",)), (legacy, ("ops.runs",))):
        async with engines(**settings) as opened:
            engine = opened.engine_for([connection], JobOptions())
            assert (await engine.discover_schema(TENANT, "src")).table_names() == listed


# --- SQL Server, on the fake ----------------------------------------------------------------


@asynccontextmanager
async def a_sql_server() -> AsyncIterator[TdsServer]:
    names = [*NAMES[:-1], "n" * 128]
    tables = {("dbo", name): [("v", "int")] for name in names} | {
        ("sales", "2031.q1"): [("Sum", "int"), ("sum", "int")],
        ("ops", "runs"): [("v", "int")],
        ("dbo", "runs"): [("v", "int")],
    }
    answers = {
        f"FROM [{schema}].[{name.replace(']', ']]')}]": Answer(
            columns=[Column("int")] * len(columns), rows=[(number,) * len(columns)]
        )
        for number, ((schema, name), columns) in enumerate(tables.items())
    }
    async with tds_server(TdsServer(answer=answering(tables, answers))) as server:
        yield server


@pytest.mark.parametrize(
    ("asked", "key", "number"),
    [
        ("Users", "Users", 0),
        ("users", "users", 1),
        ('"we""ird"', 'we"ird', 2),
        ('dbo."a.b"', '"a.b"', 3),
        ("db1.dbo.order", "order", 4),
        ("größe ✓", "größe ✓", 5),
        ('" led "', '" led "', 7),
        ("N" * 128, "N" * 128, 9),
    ],
)
async def test_a_name_means_one_table_on_sql_server(asked: str, key: str, number: int) -> None:
    async with a_sql_server() as server:
        assert await extracted(source(server), {asked: ["V"]}) == {key: _value(number)}


async def test_tables_of_the_default_schema_and_of_another_come_together_on_sql_server() -> None:
    async with a_sql_server() as server:
        found = await extracted(source(server), {"dbo.runs": ["v"], "ops.runs": ["v"]})
    assert found == {"runs": _value(12), "ops.runs": _value(11)}


@pytest.mark.parametrize(("asked", "filtered"), [("public.t", "t"), ("t", "public.t")])
async def test_a_filter_in_another_spelling_of_its_table_is_applied(
    asked: str, filtered: str, postgres_database: Callable[[], SqlAddress]
) -> None:
    address = postgres_database()
    run_sql(address, "CREATE TABLE t (v int)", "INSERT INTO t VALUES (1), (2)")
    wanted, filters = normalized_request(
        {"src": {asked: ("v",)}},
        {"src": {filtered: {"v": {"eq": (2,)}}}},
        source_names([connection_to(address)]),
    )
    async with engines() as opened:
        engine = opened.engine_for([connection_to(address)], JobOptions(), {"src": {asked: ("v",)}})
        request = ExtractionRequest(mapped_fields=wanted, filters=filters)
        result = await engine.execute_extraction(await engine.plan_extraction(TENANT, request))
    assert parsed(result.document) == {"t": [{"v": 2}]}


async def test_what_is_ambiguous_on_sql_server_is_told() -> None:
    async with a_sql_server() as server:
        connection = source(server)
        table = await refusal(connection, {"USERS": ["v"]})
        column = await refusal(connection, {'sales."2031.Q1"': ["SUM"]})
        missing = await refusal(connection, {"sales.2031.q2": ["sum"], "n" * 129: ["v"]})
        found = await extracted(connection, {"sales.2031.q1": ["sum", "Sum"]})
    assert table.failures[0].candidates == ("Users", "users")
    assert column.failures[0].candidates == ("Sum", "sum")
    assert [failure.candidates for failure in missing.failures] == [(), ()]
    assert list(found) == ["2031.q1"]


async def test_the_old_default_schema_of_sql_server() -> None:
    async with a_sql_server() as server:
        connection = a_connection(
            source_type=SourceType.SQL_SERVER,
            host="127.0.0.1",
            port=server.port,
            database="shop",
            user="app",
            password="secret",
            schema="ops",
        )
        assert await extracted(connection, {"runs": ["v"]}) == {"runs": _value(11)}
        assert await extracted(connection, {"runs": ["v"]}, keeps_default_schema=True) == {
            "runs": _value(12)
        }
