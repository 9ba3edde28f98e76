"""Golden values: what each column type of PostgreSQL becomes (spec datasources 10.2, 19.8)."""

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

NATURAL = JobOptions(values="natural")

# type, SQL expression, the value of the compatible profile, that of the natural one if it differs
GOLDEN: list[tuple[str, str, object, object]] = [
    ("smallint", "42", 42, ...),
    ("integer", "-2147483648", -2147483648, ...),
    ("bigint", "9007199254740993", 9007199254740993, ...),
    ("bigint", "'-9223372036854775808'", -9223372036854775808, ...),
    ("oid", "4294967295", 4294967295, ...),
    ("xid", "'16384'", 16384, ...),
    ("cid", "'7'", 7, ...),
    ("boolean", "true", True, ...),
    ("boolean", "false", False, ...),
    ("numeric", "'NaN'", "NaN", ...),
    ("numeric", "'-Infinity'", "-Infinity", ...),
    ("numeric(10,2)", "10", "10.00", ...),
    ("numeric", "0.1", "0.1", ...),
    ("numeric", "12345678901234567890.123456789", "12345678901234567890.123456789", ...),
    ("numeric(10,3)", "-0.000", "0.000", ...),
    ("numeric", "1e400", "1" + "0" * 400, ...),
    ("real", "0.1", Decimal("0.1"), ...),
    ("double precision", "0.1", Decimal("0.1"), ...),
    ("double precision", "1e300", Decimal("1e300"), ...),
    ("double precision", "'NaN'", "NaN", ...),
    ("double precision", "'Infinity'", "Infinity", ...),
    ("real", "'-Infinity'", "-Infinity", ...),
    ("char(5)", "'AB'", "AB   ", ...),
    ("varchar", "'héllo'", "héllo", ...),
    (
        "text",
        r"""E'quote " back \\ slash / tab \t nl \n cr \r bell \x07 del \x7f'""",
        'quote " back \\ slash / tab \t nl \n cr \r bell \x07 del \x7f',
        ...,
    ),
    ("text", "'<a href=\"x\">&\u2028</a>'", '<a href="x">&\u2028</a>', ...),
    ("text", "E'\\x01!looks like a marker'", "\x01!looks like a marker", ...),
    ("text", "''", "", ...),
    ("text", "'null'", "null", ...),
    ("text", "'[1,2]'", "[1,2]", ...),
    ("name", "'pg'", "pg", ...),
    ('"char"', "'x'", "x", ...),
    ("bytea", r"'\xdeadbeef'", "3q2+7w==", ...),
    ("bytea", r"decode(repeat('00', 60), 'hex')", "A" * 80, ...),
    ("bytea", '\'{"k":"v"}\'', "eyJrIjoidiJ9", ...),
    ("uuid", "'7F3C1F0E-9C55-4B0E-8F57-0C5A1F2D9B10'", "7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10", ...),
    ("date", "'2031-04-05'", "2031-04-05T00:00:00Z", "2031-04-05"),
    ("date", "'infinity'", "infinity", ...),
    ("date", "'0044-03-15 BC'", "0044-03-15 BC", ...),
    ("date", "'12031-01-02'", "12031-01-02", ...),
    ("date", "'0001-01-01'", "0001-01-01T00:00:00Z", "0001-01-01"),
    ("date", "'9999-12-31'", "9999-12-31T00:00:00Z", "9999-12-31"),
    (
        "timestamp",
        "'2031-04-05 06:07:08.123456'",
        "2031-04-05T06:07:08.123456Z",
        "2031-04-05T06:07:08.123456",
    ),
    (
        "timestamp",
        "'2031-04-05 06:00:00.500000'",
        "2031-04-05T06:00:00.5Z",
        "2031-04-05T06:00:00.5",
    ),
    ("timestamp", "'2031-04-05 00:00:00'", "2031-04-05T00:00:00Z", "2031-04-05T00:00:00"),
    ("timestamp", "'infinity'", "infinity", ...),
    (
        "timestamp",
        "'9999-12-31 23:59:59.999999'",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999",
    ),
    ("timestamptz", "'2031-04-05 06:07:08.123456+05:45'", "2031-04-05T00:22:08.123456Z", ...),
    ("timestamptz", "'-infinity'", "-infinity", ...),
    ("timestamptz", "'0044-03-15 12:00:00+00 BC'", "0044-03-15 12:00:00+00 BC", ...),
    ("time", "'06:07:08.5'", "06:07:08.5", ...),
    ("timetz", "'06:07:08.5+02'", "06:07:08.5+02", ...),
    ("interval", "'1 year 2 mons 3 days 04:05:06'", "1 year 2 mons 3 days 04:05:06", ...),
    ("jsonb", """'{"a":[1,2]}'""", {"a": [1, 2]}, ...),
    ("jsonb", "'\"hi\"'", "hi", ...),
    ("jsonb", "'null'", None, ...),
    ("jsonb", "'5'", 5, ...),
    ("jsonb", "'true'", True, ...),
    ("jsonb", "'9007199254740993'", 9007199254740993, ...),
    ("json", """E'{"a":\\n 1,\\t"b":"x"}'""", {"a": 1, "b": "x"}, ...),
    ("integer[]", "'{1,2,NULL}'", "{1,2,NULL}", [1, 2, None]),
    ("integer[]", "'{}'", "{}", []),
    ("integer[]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
    ("integer[]", "'[5:6]={1,2}'", "[5:6]={1,2}", [1, 2]),
    ("text[]", """'{a,"b c","q\\"x"}'""", '{a,"b c","q\\"x"}', ["a", "b c", 'q"x']),
    ("numeric(5,2)[]", "'{1.5,NaN,NULL}'", "{1.50,NaN,NULL}", ["1.50", "NaN", None]),
    (
        "numeric(5,2)[]",
        "'{{1,2},{3,NULL}}'",
        "{{1.00,2.00},{3.00,NULL}}",
        [["1.00", "2.00"], ["3.00", None]],
    ),
    (
        "numeric[]",
        "'{{{1},{2}},{{3},{4}}}'",
        "{{{1},{2}},{{3},{4}}}",
        [[["1"], ["2"]], [["3"], ["4"]]],
    ),
    ("bytea[]", r"""ARRAY['\x01'::bytea]""", '{"\\\\x01"}', ["AQ=="]),
    (
        "timestamptz[]",
        "'{2031-04-05 06:07:08.5+02}'",
        '{"2031-04-05 04:07:08.5+00"}',
        ["2031-04-05T04:07:08.5Z"],
    ),
    ("timestamp[]", "'{2031-04-05 06:07:08}'", '{"2031-04-05 06:07:08"}', ["2031-04-05T06:07:08"]),
    ("date[]", "'{2031-04-05,infinity}'", "{2031-04-05,infinity}", ["2031-04-05", "infinity"]),
    ("inet[]", "'{10.1.2.3}'", "{10.1.2.3}", ["10.1.2.3"]),
    ("char(3)[]", "'{a}'", '{"a  "}', ["a  "]),
    ("float8[]", "'{NaN,0.5}'", "{NaN,0.5}", ["NaN", Decimal("0.5")]),
    ("json[]", """ARRAY['{"a":1}'::json]""", '{"{\\"a\\":1}"}', [{"a": 1}]),
    ("money", "'1234.5'", "$1,234.50", ...),
    ("int4range", "'[1,5)'", "[1,5)", ...),
    ("tstzrange", "'[2031-01-01 00:00+00,)'", '["2031-01-01 00:00:00+00",)', ...),
    ("int4multirange", "'{[1,5)}'", "{[1,5)}", ...),
    ("inet", "'10.1.2.3'", "10.1.2.3", ...),
    ("inet", "'10.1.2.3/8'", "10.1.2.3/8", ...),
    ("cidr", "'10.1.0.0/16'", "10.1.0.0/16", ...),
    ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03", ...),
    ("point", "'(1.5,2)'", "(1.5,2)", ...),
    ("box", "'(1,1),(0,0)'", "(1,1),(0,0)", ...),
    ("circle", "'<(0,0),2>'", "<(0,0),2>", ...),
    ("bit(4)", "'1010'", "1010", ...),
    ("varbit", "'101'", "101", ...),
    ("tsvector", "'a:1 b:2'", "'a':1 'b':2", ...),
    ("xml", "'<a b=\"c\"/>'", '<a b="c"/>', ...),
    ("pg_lsn", "'16/B374D848'", "16/B374D848", ...),
    ("jsonpath", "'$.a'", '$."a"', ...),
    ("mood", "'sa\"d'", 'sa"d', ...),
    ("mood[]", "ARRAY['ok'::mood]", "{ok}", ["ok"]),
    ("pair", "'(1,abc)'", "(1,abc)", ...),
    ("pair", "'(,)'", "(,)", ...),
    ("pair[]", "ARRAY[ROW(1,'x')::pair]", '{"(1,x)"}', ["(1,x)"]),
    ("amount_of_money", "12.5", "12.50", ...),
    ("short_text", "'x'", "x", ...),
    ("amount_of_money[]", "ARRAY[1.5]", "{1.50}", ["1.50"]),
]


@pytest.fixture
def typed(postgres_database: Callable[[], SqlAddress]) -> tuple[SqlAddress, Connection]:
    """A table of one row with a column for each golden value, and a row of NULLs."""
    address = postgres_database()
    run_sql(
        address,
        "CREATE TYPE mood AS ENUM ('ok', 'sa\"d')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN amount_of_money AS numeric(10,2)",
        "CREATE DOMAIN short AS varchar(10)",
        "CREATE DOMAIN short_text AS short",
    )
    return address, connection_to(address)


def _columns(count: int) -> list[str]:
    return [f"c{number:03}" for number in range(count)]


async def test_every_type_has_its_form_in_both_profiles(
    typed: tuple[SqlAddress, Connection],
) -> None:
    address, connection = typed
    mistakes = []
    async with engines() as opened:
        # a request names at most 50 fields of a table
        for start in range(0, len(GOLDEN), 50):
            part = GOLDEN[start : start + 50]
            names = _columns(len(part))
            declared = ", ".join(f"{n} {g[0]}" for n, g in zip(names, part, strict=True))
            values = ", ".join(f"({g[1]})::{g[0]}" for g in part)
            run_sql(
                address,
                "DROP TABLE IF EXISTS golden",
                f"CREATE TABLE golden ({declared})",
                f"INSERT INTO golden VALUES ({values})",
                "INSERT INTO golden DEFAULT VALUES",
            )
            for options, column in ((JobOptions(), 2), (NATURAL, 3)):
                row, empty = await rows_of(opened, connection, "golden", names, options=options)
                assert empty == dict.fromkeys(names)
                for name, golden in zip(names, part, strict=True):
                    wanted = golden[2] if golden[column] is ... else golden[column]
                    same = row[name] == wanted and type(row[name]) is type(wanted)
                    if not same:
                        mistakes.append((golden[0], golden[1], options.values, row[name], wanted))
    assert mistakes == []


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
