"""Values of MariaDB beyond the golden matrix (spec datasources 10.3, 19.8)."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from fetcher.domain.jobs import JobOptions
from tests.integration.datasources.harness import document, engines, rows_of
from tests.integration.datasources.mariadb import (
    connection_to,
    own_database,
    run_sql,
    running_server,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def test_numbers_inside_json_columns_keep_their_text(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (j json)",
        """INSERT INTO t VALUES ('{"a":7088992364139642880,"b":1.10,"a2":1e400}')""",
    )
    async with engines() as opened:
        data = await document(opened, connection_to(database), {"t": ["j"]})
    assert data == b'{"src":{"t":[{"j":{"a":7088992364139642880,"b":1.10,"a2":1e400}}]}}'


async def test_text_far_beyond_a_packets_first_size_is_whole(database: SqlAddress) -> None:
    run_sql(
        database, "CREATE TABLE t (s longtext)", "INSERT INTO t VALUES (repeat('\u00e9', 70000))"
    )
    async with engines() as opened:
        rows = await rows_of(opened, connection_to(database), "t", ["s"])
    assert rows == [{"s": "\u00e9" * 70000}]


async def test_json_columns_that_hold_no_json_come_as_text(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (j json)",
        "SET STATEMENT check_constraint_checks = 0 FOR INSERT INTO t VALUES ('{\"a\":')",
    )
    async with engines() as opened:
        rows = await rows_of(opened, connection_to(database), "t", ["j"])
    assert rows == [{"j": '{"a":'}]


@pytest.mark.parametrize("text", ["1.", '["\\x"]'])
async def test_what_only_mariadb_takes_for_json_comes_as_text(
    database: SqlAddress, text: str
) -> None:
    escaped = text.replace("\\", "\\\\")
    run_sql(
        database,
        "CREATE TABLE t (id int, j json)",
        f"INSERT INTO t VALUES (1, '{{}}'), (2, '{escaped}'), (3, NULL)",
    )
    async with engines() as opened:
        rows = await rows_of(opened, connection_to(database), "t", ["id", "j"])
    assert rows == [{"id": 1, "j": {}}, {"id": 2, "j": text}, {"id": 3, "j": None}]


async def test_bigint_as_string_quotes_what_a_double_cannot_hold(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (a bigint, b bigint, c bigint unsigned, d int, e bit(64))",
        "INSERT INTO t VALUES (9007199254740992, -9007199254740993, ~0, 5, ~0)",
    )
    options = JobOptions(bigint="string")
    async with engines() as opened:
        rows = await rows_of(opened, connection_to(database), "t", ["*"], options=options)
    largest = "18446744073709551615"
    assert rows == [
        {"a": 9007199254740992, "b": "-9007199254740993", "c": largest, "d": 5, "e": largest}
    ]


async def test_decimals_as_number_keep_every_digit(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (a decimal(40,2))",
        "INSERT INTO t VALUES (12345678901234567890.10)",
    )
    options = JobOptions(decimals="number")
    async with engines() as opened:
        data = await document(opened, connection_to(database), {"t": ["a"]}, options=options)
    assert data == b'{"src":{"t":[{"a":12345678901234567890.10}]}}'


async def test_every_float_comes_back_as_the_same_float(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, f float)",
        "INSERT INTO t SELECT seq, (rand(seq) - 0.5) * pow(10, cast(seq % 70 AS signed) - 35)"
        " FROM seq_1_to_5000",
        "INSERT INTO t SELECT 5000 + seq, pow(2, cast(seq AS signed) - 60) FROM seq_1_to_120",
        "CREATE TABLE copy (id int PRIMARY KEY, f float)",
    )
    async with engines() as opened:
        rows = await rows_of(opened, connection_to(database), "t", ["id", "f"])
        values = ", ".join(f"({row['id']}, {Decimal(row['f']):e})" for row in rows)
        run_sql(
            database,
            f"INSERT INTO copy VALUES {values}",
            "DELETE t FROM t JOIN copy USING (id) WHERE t.f = copy.f",
        )
        assert await rows_of(opened, connection_to(database), "t", ["id", "f"]) == []
    usual = [Decimal(row["f"]) for row in rows if 1e-5 < abs(row["f"]) < 1e9 and row["id"] < 5000]
    assert max(len(value.as_tuple().digits) for value in usual) <= 10


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlAddress]:
    """Whose global settings are the tests' own."""
    with running_server(tmp_path_factory.mktemp("mariadb") / "server") as server:
        yield server.admin


async def test_settings_of_the_server_change_no_value(own_server: SqlAddress) -> None:
    with own_database(own_server) as database:
        await _settings_change_no_value(database)


async def _settings_change_no_value(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (c char(4), z timestamp NULL, s varchar(9))",
        "SET STATEMENT time_zone = '+00:00' FOR"
        " INSERT INTO t VALUES ('x', '2031-04-05 00:00:00', 'a\\\\b''c')",
        "INSERT INTO t SELECT * FROM t",
    )
    modes = "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH"
    run_sql(
        database,
        "CREATE USER odd@'%' IDENTIFIED BY 'odd'",
        f"GRANT SELECT ON {database.database}.* TO odd@'%'",
        "SET GLOBAL init_connect = \"SET sql_mode = '"
        f"{modes}', time_zone = '+05:45', sql_select_limit = 1\"",
    )
    connection = connection_to(replace(database, user="odd", password="odd"))
    async with engines() as opened:
        rows = await rows_of(
            opened,
            connection,
            "t",
            ["c", "s", "z"],
            where={"s": {"eq": ["a\\b'c"], "like": ["a\\\\b'_"]}},
        )
    assert rows == [{"c": "x", "s": "a\\b'c", "z": "2031-04-05T00:00:00Z"}] * 2
