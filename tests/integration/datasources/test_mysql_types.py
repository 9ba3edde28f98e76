"""Golden values: what each column type of MariaDB becomes (spec datasources 10.3, 19.8)."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import document, engines, rows_of
from tests.integration.datasources.mariadb import connection_to, own_database, run_sql
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration

NATURAL = JobOptions(values="natural")

# type, SQL expression, the value of the compatible profile, that of the natural one if it differs
GOLDEN: list[tuple[str, str, object, object]] = [
    ("tinyint", "-128", -128, ...),
    ("tinyint unsigned", "255", 255, ...),
    ("smallint", "42", 42, ...),
    ("mediumint", "8388607", 8388607, ...),
    ("int", "-2147483648", -2147483648, ...),
    ("int(6) zerofill", "42", 42, ...),
    ("bigint", "9007199254740993", 9007199254740993, ...),
    ("bigint", "-9223372036854775808", -9223372036854775808, ...),
    ("bigint unsigned", "18446744073709551615", 18446744073709551615, ...),
    ("bigint zerofill", "7", 7, ...),
    ("tinyint(1)", "1", 1, ...),
    ("bool", "0", 0, ...),
    ("float", "0.1", Decimal("0.1"), ...),
    ("float", "16777217", 16777216, ...),
    ("float", "1.2345678", Decimal("1.2345678"), ...),
    ("float", "3.4e38", Decimal("3.4e38"), ...),
    ("float", "-0.3", Decimal("-0.3"), ...),
    ("float", "0", 0, ...),
    ("float zerofill", "1.5", Decimal("1.5"), ...),
    ("double", "0.1", Decimal("0.1"), ...),
    ("double", "1e300", Decimal("1e300"), ...),
    ("double", "0.1e0 + 0.2e0", Decimal("0.30000000000000004"), ...),
    ("double", "-2.5e-300", Decimal("-2.5e-300"), ...),
    ("double(8,2)", "12.5", Decimal("12.50"), ...),
    ("decimal(10,2)", "12.5", "12.50", ...),
    ("decimal(10,2)", "10", "10.00", ...),
    ("decimal(10,1)", "0.1", "0.1", ...),
    ("decimal(30,9)", "12345678901234567890.123456789", "12345678901234567890.123456789", ...),
    ("decimal(10,3)", "-0.000", "0.000", ...),
    ("decimal(10,3)", "-0.003", "-0.003", ...),
    ("decimal(65,30)", "-1e-30", "-0." + "0" * 29 + "1", ...),
    ("decimal(8,2) zerofill", "12.5", "12.50", ...),
    ("bit(1)", "b'1'", 1, ...),
    ("bit(1)", "b'0'", 0, ...),
    ("bit(10)", "b'1000000001'", 513, ...),
    ("bit(64)", "~0", 18446744073709551615, ...),
    ("year", "2031", 2031, ...),
    ("year", "0", 0, ...),
    ("date", "'2031-04-05'", "2031-04-05T00:00:00Z", "2031-04-05"),
    ("date", "'0001-01-01'", "0001-01-01T00:00:00Z", "0001-01-01"),
    ("date", "'9999-12-31'", "9999-12-31T00:00:00Z", "9999-12-31"),
    ("date", "'2032-02-29'", "2032-02-29T00:00:00Z", "2032-02-29"),
    ("date", "'0000-00-00'", "0000-00-00", ...),
    ("date", "'2031-00-12'", "2031-00-12", ...),
    ("date", "'2031-04-00'", "2031-04-00", ...),
    ("date", "'2031-02-30'", "2031-02-30", ...),
    ("datetime", "'2031-04-05 06:07:08'", "2031-04-05T06:07:08Z", "2031-04-05T06:07:08"),
    ("datetime", "'2031-04-05 00:00:00'", "2031-04-05T00:00:00Z", "2031-04-05T00:00:00"),
    (
        "datetime(3)",
        "'2031-04-05 06:07:08.123'",
        "2031-04-05T06:07:08.123Z",
        "2031-04-05T06:07:08.123",
    ),
    (
        "datetime(6)",
        "'2031-04-05 06:07:08.500000'",
        "2031-04-05T06:07:08.5Z",
        "2031-04-05T06:07:08.5",
    ),
    ("datetime(6)", "'2031-04-05 06:07:00'", "2031-04-05T06:07:00Z", "2031-04-05T06:07:00"),
    (
        "datetime(6)",
        "'9999-12-31 23:59:59.999999'",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999",
    ),
    ("datetime", "'0000-00-00 00:00:00'", "0000-00-00 00:00:00", ...),
    ("timestamp(6) null", "'2031-04-05 06:07:08.123456'", "2031-04-05T06:07:08.123456Z", ...),
    ("timestamp null", "'0000-00-00 00:00:00'", "0000-00-00 00:00:00", ...),
    ("time", "'-12:30:00'", "-12:30:00", ...),
    ("time", "'838:59:59'", "838:59:59", ...),
    ("time(1)", "'06:07:08.5'", "06:07:08.5", ...),
    ("char(5)", "'AB'", "AB", ...),
    ("varchar(20)", "'héllo \U0001f600'", "héllo \U0001f600", ...),
    ("varchar(20)", "'null'", "null", ...),
    ("varchar(20)", "'[1,2]'", "[1,2]", ...),
    ("varchar(20)", "'alice'", "alice", ...),
    ("varchar(20)", "''", "", ...),
    ("varchar(20)", "'trailing  '", "trailing  ", ...),
    (
        "text",
        r"""concat('quote " back \\ slash / tab ', char(9), ' nl ', char(10), ' cr ', char(13),
         ' bell ', char(7), ' nul ', char(0), ' del ', char(127))""",
        'quote " back \\ slash / tab \t nl \n cr \r bell \x07 nul \0 del \x7f',
        ...,
    ),
    ("text", "'<a href=\"x\">&\u2028</a>'", '<a href="x">&\u2028</a>', ...),
    ("text", "concat(char(1), '!looks like a marker')", "\x01!looks like a marker", ...),
    ("longtext", "repeat('é', 70000)", "é" * 70000, ...),
    ("varchar(20) character set latin1", "'é€ \"'", 'é€ "', ...),
    ("varchar(20) character set utf16", "'é\\\\€'", "é\\€", ...),
    ("varchar(20) character set sjis", "'\u30bd\u8868'", "\u30bd\u8868", ...),
    ("varchar(20) collate utf8mb4_bin", "'Ä'", "Ä", ...),
    ("enum('credit','de\"bit')", "'de\"bit'", 'de"bit', ...),
    ("enum('crédit') character set latin1", "'crédit'", "crédit", ...),
    ("set('a','b')", "'a,b'", "a,b", ...),
    ("binary(4)", "X'BEEF'", "vu8AAA==", ...),
    ("varbinary(90)", "repeat('\\0', 60)", "A" * 80, ...),
    ("blob", '\'{"k":"v"}\'', "eyJrIjoidiJ9", ...),
    ("blob", "''", "", ...),
    ("text character set binary", "X'DEADBEEF'", "3q2+7w==", ...),
    ("json", """'{"a": [1,\\n2]}'""", {"a": [1, 2]}, ...),
    ("json", "'\"hi\"'", "hi", ...),
    ("json", "'null'", None, ...),
    ("json", "'5'", 5, ...),
    ("json", "'true'", True, ...),
    ("json", "'9007199254740993'", 9007199254740993, ...),
    ("longtext", "'{\"a\":1}'", '{"a":1}', ...),
    ("point", "point(1, 2)", "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==", ...),
    ("geometry", "point(1, 2)", "AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA==", ...),
    ("uuid", "'7F3C1F0E-9C55-4B0E-8F57-0C5A1F2D9B10'", "7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10", ...),
    ("inet6", "'2001:DB8::1'", "2001:db8::1", ...),
    ("inet4", "'10.1.2.3'", "10.1.2.3", ...),
]


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def test_every_type_has_its_form_in_both_profiles(database: SqlAddress) -> None:
    mistakes = []
    async with engines() as opened:
        # a request names at most 50 fields of a table
        for start in range(0, len(GOLDEN), 50):
            part = GOLDEN[start : start + 50]
            names = [f"c{number:03}" for number in range(len(part))]
            declared = ", ".join(f"{n} {g[0]}" for n, g in zip(names, part, strict=True))
            run_sql(
                database,
                "DROP TABLE IF EXISTS golden",
                f"CREATE TABLE golden ({declared})",
                "SET STATEMENT sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00' FOR"
                f" INSERT INTO golden VALUES ({', '.join(g[1] for g in part)})",
                f"INSERT INTO golden VALUES ({', '.join(['NULL'] * len(part))})",
            )
            for options, column in ((JobOptions(), 2), (NATURAL, 3)):
                row, empty = await rows_of(
                    opened, connection_to(database), "golden", names, options=options
                )
                assert empty == dict.fromkeys(names)
                for name, golden in zip(names, part, strict=True):
                    wanted = golden[2] if golden[column] is ... else golden[column]
                    same = row[name] == wanted and type(row[name]) is type(wanted)
                    if not same:
                        mistakes.append((golden[0], golden[1], options.values, row[name], wanted))
    assert mistakes == []


async def test_numbers_inside_json_columns_keep_their_text(database: SqlAddress) -> None:
    run_sql(
        database,
        "CREATE TABLE t (j json)",
        """INSERT INTO t VALUES ('{"a":7088992364139642880,"b":1.10,"a2":1e400}')""",
    )
    async with engines() as opened:
        data = await document(opened, connection_to(database), {"t": ["j"]})
    assert data == b'{"src":{"t":[{"j":{"a":7088992364139642880,"b":1.10,"a2":1e400}}]}}'


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
async def test_what_only_mariadb_takes_for_json_fails_and_is_named(
    database: SqlAddress, text: str
) -> None:
    escaped = text.replace("\\", "\\\\")
    run_sql(
        database,
        "CREATE TABLE t (id int, j json)",
        f"INSERT INTO t VALUES (1, '{{}}'), (2, '{escaped}')",
    )
    async with engines() as opened:
        assert await rows_of(opened, connection_to(database), "t", ["id"]) == [{"id": 1}, {"id": 2}]
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, connection_to(database), "t", ["id", "j"])
    error = caught.value
    assert (error.reason, error.table, error.column) == ("invalid_json", "t", "j")


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


async def test_settings_of_the_server_change_no_value(
    database: SqlAddress, mariadb: SqlAddress
) -> None:
    run_sql(
        database,
        "CREATE TABLE t (c char(4), z timestamp NULL, s varchar(9))",
        "SET STATEMENT time_zone = '+00:00' FOR"
        " INSERT INTO t VALUES ('x', '2031-04-05 00:00:00', 'a\\\\b''c')",
        "INSERT INTO t SELECT * FROM t",
    )
    modes = "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH"
    user = "fetcher_src_odd"
    run_sql(
        mariadb,
        f"CREATE OR REPLACE USER {user}@'%' IDENTIFIED BY 'odd'",
        f"GRANT SELECT ON {database.database}.* TO {user}@'%'",
        "SET GLOBAL init_connect = \"SET sql_mode = '"
        f"{modes}', time_zone = '+05:45', sql_select_limit = 1\"",
    )
    try:
        connection = connection_to(
            SqlAddress(
                host=database.host,
                port=database.port,
                user=user,
                password="odd",
                database=database.database,
            )
        )
        async with engines() as opened:
            rows = await rows_of(
                opened,
                connection,
                "t",
                ["c", "s", "z"],
                where={"s": {"eq": ["a\\b'c"], "like": ["a\\\\b'_"]}},
            )
    finally:
        run_sql(mariadb, "SET GLOBAL init_connect = ''", f"DROP USER {user}@'%'")
    assert rows == [{"c": "x", "s": "a\\b'c", "z": "2031-04-05T00:00:00Z"}] * 2
