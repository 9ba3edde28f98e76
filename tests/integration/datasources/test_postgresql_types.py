"""Values of PostgreSQL beyond the golden matrix (spec datasources 10.2, 19.8)."""

from collections.abc import Callable
from decimal import Decimal

import psycopg
import pytest
from psycopg import sql

from fetcher.domain.connections import Connection
from fetcher.domain.jobs import JobOptions
from tests.integration.datasources.harness import (
    connection_to,
    document,
    engines,
    rows_of,
    run_sql,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture
def typed(postgres_database: Callable[[], SqlAddress]) -> tuple[SqlAddress, Connection]:
    """A database of the test's own, and the way to it."""
    address = postgres_database()
    return address, connection_to(address)


async def test_numbers_inside_json_columns_keep_their_text(
    typed: tuple[SqlAddress, Connection],
) -> None:
    address, connection = typed
    run_sql(
        address,
        "CREATE TABLE t (j json)",
        """INSERT INTO t VALUES ('{"a":7088992364139642880,"b":1.10,"a2":1e400}')""",
    )
    async with engines() as opened:
        data = await document(opened, connection, {"t": ["j"]})
    assert data == b'{"src":{"t":[{"j":{"a":7088992364139642880,"b":1.10,"a2":1e400}}]}}'


async def test_bigint_as_string_quotes_what_a_double_cannot_hold(
    typed: tuple[SqlAddress, Connection],
) -> None:
    address, connection = typed
    run_sql(
        address,
        "CREATE TABLE t (a bigint, b bigint, c bigint[], d int)",
        "INSERT INTO t VALUES (9007199254740992, 9007199254740993, '{{1,-9007199254740993}}', 5)",
    )
    options = JobOptions(bigint="string", values="natural")
    async with engines() as opened:
        rows = await rows_of(opened, connection, "t", ["a", "b", "c", "d"], options=options)
    assert rows == [
        {"a": 9007199254740992, "b": "9007199254740993", "c": [[1, "-9007199254740993"]], "d": 5}
    ]


async def test_decimals_as_number_keep_every_digit(
    typed: tuple[SqlAddress, Connection],
) -> None:
    address, connection = typed
    run_sql(
        address,
        "CREATE TABLE t (a numeric, b numeric, c numeric[])",
        "INSERT INTO t VALUES (12345678901234567890.10, 'NaN', '{1.50}')",
    )
    options = JobOptions(decimals="number", values="natural")
    async with engines() as opened:
        data = await document(opened, connection, {"t": ["a", "b", "c"]}, options=options)
    assert data == b'{"src":{"t":[{"a":12345678901234567890.10,"b":"NaN","c":[1.50]}]}}'


async def test_session_settings_of_the_database_change_no_value(
    typed: tuple[SqlAddress, Connection],
) -> None:
    address, connection = typed
    run_sql(
        address,
        f"ALTER DATABASE \"{address.database}\" SET datestyle = 'German'",
        f"ALTER DATABASE \"{address.database}\" SET timezone = 'Asia/Kathmandu'",
        f"ALTER DATABASE \"{address.database}\" SET intervalstyle = 'iso_8601'",
        f'ALTER DATABASE "{address.database}" SET extra_float_digits = -5',
        f'ALTER DATABASE "{address.database}" SET standard_conforming_strings = off',
        f"ALTER DATABASE \"{address.database}\" SET bytea_output = 'escape'",
        "CREATE TABLE t (d date, z timestamptz, i interval, f float8, b bytea, s text)",
        "INSERT INTO t VALUES ('2031-04-05', '2031-04-05 00:00+00', '1 day', 0.1, 'x', E'a\\\\b')",
    )
    async with engines() as opened:
        rows = await rows_of(
            opened,
            connection,
            "t",
            ["d", "z", "i", "f", "b", "s"],
            where={"s": {"eq": ["a\\b"]}},
        )
    assert rows == [
        {
            "d": "2031-04-05T00:00:00Z",
            "z": "2031-04-05T00:00:00Z",
            "i": "1 day",
            "f": Decimal("0.1"),
            "b": "eA==",
            "s": "a\\b",
        }
    ]


async def test_other_encodings_come_out_as_utf8(postgres: SqlAddress) -> None:
    name = "fetcher_src_latin1"
    with psycopg.connect(postgres.conninfo, autocommit=True) as admin:
        admin.execute(
            sql.SQL(
                "CREATE DATABASE {} TEMPLATE template0 ENCODING 'LATIN1'"
                " LC_COLLATE 'C' LC_CTYPE 'C'"
            ).format(sql.Identifier(name))
        )
        try:
            address = SqlAddress(
                host=postgres.host,
                port=postgres.port,
                user=postgres.user,
                password=postgres.password,
                database=name,
            )
            run_sql(address, 'CREATE TABLE "größe" (a text)', "INSERT INTO \"größe\" VALUES ('ó')")
            async with engines() as opened:
                rows = await rows_of(opened, connection_to(address), "größe", ["a"])
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
    assert rows == [{"a": "ó"}]
