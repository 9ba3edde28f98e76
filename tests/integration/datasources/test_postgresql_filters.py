"""Every operator on PostgreSQL, from the request to the rows (spec datasources 9, 19.7)."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from fetcher.domain.connections import Connection
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    connection_to,
    document,
    engines,
    parsed,
    rows_of,
    run_sql,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def connection(postgres: SqlAddress) -> Iterator[Connection]:
    """Nine rows, read by every test and changed by none."""
    address = SqlAddress(
        host=postgres.host,
        port=postgres.port,
        user=postgres.user,
        password=postgres.password,
        database=f"fetcher_src_{uuid4().hex[:12]}",
    )
    name = sql.Identifier(address.database)
    with psycopg.connect(postgres.conninfo, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            run_sql(
                address,
                "CREATE TYPE mood AS ENUM ('ok', 'sad')",
                """CREATE TABLE t (n int PRIMARY KEY, big bigint, qty numeric(10,2), f4 real,
                 f8 float8, s text, c char(5), b boolean, u uuid, raw bytea, d date,
                 ts timestamp, tz timestamptz, clock time, m mood, j jsonb, a int[], paid text,
                 js json, updated_by text)""",
                "CREATE TABLE other (v int)",
                "INSERT INTO other VALUES (1), (2)",
                """INSERT INTO t (n, big, qty, f4, f8, s, c, b, u, raw, d, ts, tz, clock, m, j, a,
                 paid) VALUES
                 (1, 9007199254740993, 10.50, 0.1, 0.1, 'open', 'AB', true,
                  '7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10', '\\xbeef', '2031-03-31',
                  '2031-03-31 23:59:59.9999', '2031-03-31 23:59:59.9999+00', '06:07', 'ok',
                  '{"k":1}', '{1,2}', 'yes'),
                 (2, 9007199254740992, 1.00, 0.2, 'NaN', 'late', 'CD', false,
                  '00000000-0000-0000-0000-000000000000', '\\x00', '2031-04-01',
                  '2031-04-01 00:00', '2031-04-01 00:00+00', '07:00', 'sad', '5', '{}', 'no'),
                 (3, 5, -3.25, -1, 2, 'banana', 'x', NULL, NULL, NULL, '2031-03-01',
                  '2031-03-01 00:00', '2031-03-01 00:00+00', NULL, NULL, NULL, NULL, NULL)""",
                r"""INSERT INTO t (n, s) VALUES (4, NULL), (5, 'x''; DROP TABLE t; --'),
                 (6, '50%'), (7, 'a_b'), (8, 'a\b'), (9, 'axb')""",
                "UPDATE t SET updated_by = '2031-03-31' WHERE n = 1",
                "UPDATE t SET updated_by = '2031-03-31T06:00' WHERE n = 2",
            )
            yield connection_to(address)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


Condition = Mapping[str, Sequence[object]]

CASES: list[tuple[Mapping[str, Condition], list[int]]] = [
    ({"s": {"eq": ["open"]}}, [1]),
    ({"s": {"eq": ["open", "late"]}}, [1, 2]),
    ({"s": {"eq": [None]}}, [4]),
    ({"s": {"eq": ["open", None]}}, [1, 4]),
    ({"s": {"ne": [None]}}, [1, 2, 3, 5, 6, 7, 8, 9]),
    ({"s": {"ne": ["open", "late"]}}, [3, 5, 6, 7, 8, 9]),
    ({"s": {"in": ["open", "late"]}}, [1, 2]),
    ({"s": {"in": ["open", None]}}, [1, 4]),
    ({"s": {"nin": ["open"]}}, [2, 3, 5, 6, 7, 8, 9]),
    ({"s": {"nin": ["open", None]}}, [2, 3, 5, 6, 7, 8, 9]),
    ({"n": {"gt": [7]}}, [8, 9]),
    ({"n": {"gte": [8]}}, [8, 9]),
    ({"n": {"lt": [2]}}, [1]),
    ({"n": {"lte": [2]}}, [1, 2]),
    ({"n": {"gt": [2], "lte": [4]}}, [3, 4]),
    ({"n": {"between": [2, 4]}}, [2, 3, 4]),
    ({"n": {"between": [4, 2]}}, []),
    ({"n": {"gt": [Decimal("7.5")]}}, [8, 9]),
    ({"n": {"eq": [Decimal("7.5")]}}, []),
    ({"n": {"eq": ["7"]}}, [7]),
    ({"n": {"lt": [-5]}}, []),
    ({"n": {"is_null": [True]}}, []),
    ({"s": {"is_null": [True]}}, [4]),
    ({"s": {"not_null": [True]}, "n": {"lt": [6]}}, [1, 2, 3, 5]),
    ({"b": {"is_null": [False]}}, [1, 2]),
    ({"s": {"like": ["%ana%"]}}, [3]),
    ({"s": {"like": ["%ANA%"]}}, []),
    ({"s": {"like": ["op%", "la%"]}}, [1, 2]),
    ({"s": {"like": ["a_b"]}}, [7, 8, 9]),
    ({"s": {"like": ["a\\_b"]}}, [7]),
    ({"s": {"like": ["50\\%"]}}, [6]),
    ({"s": {"like": ["%\\\\%"]}}, [8]),
    ({"s": {"like": ["%_\\"]}}, []),
    ({"s": {"like": ["a\\"]}}, []),
    ({"s": {"eq": ["x'; DROP TABLE t; --"]}}, [5]),
    ({"s": {"eq": ["a\\b"]}}, [8]),
    ({"s": {"eq": ['O\'Hara "x"; DROP']}}, []),
    ({"s": {"eq": [5]}}, []),
    ({"c": {"eq": ["AB"]}}, [1]),
    ({"paid": {"eq": ["yes"]}}, [1]),
    ({"big": {"eq": [9007199254740993]}}, [1]),
    ({"big": {"in": [9007199254740993, 5]}}, [1, 3]),
    ({"qty": {"eq": [Decimal("10.5")]}}, [1]),
    ({"qty": {"eq": ["10.50"]}}, [1]),
    ({"qty": {"lt": [0]}}, [3]),
    ({"qty": {"gt": [-4]}, "n": {"lt": [4]}}, [1, 2, 3]),
    ({"f4": {"eq": [Decimal("0.1")]}}, [1]),
    ({"f8": {"eq": [Decimal("0.1")]}}, [1]),
    ({"f8": {"eq": ["NaN"]}}, [2]),
    ({"f4": {"lt": [Decimal("-0.5")]}}, [3]),
    ({"b": {"eq": [True]}}, [1]),
    ({"b": {"eq": [0]}}, [2]),
    ({"b": {"ne": ["true"]}}, [2]),
    ({"u": {"eq": ["7F3C1F0E9C554B0E8F570C5A1F2D9B10"]}}, [1]),
    ({"u": {"in": ["urn:uuid:00000000-0000-0000-0000-000000000000"]}}, [2]),
    ({"raw": {"eq": ["vu8="]}}, [1]),
    ({"d": {"eq": ["2031-04-01"]}}, [2]),
    ({"d": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"d": {"gt": ["2031-03-31T12:00:00Z"]}}, [2]),
    ({"d": {"lte": ["2031-03-31T12:00:00Z"]}}, [1, 3]),
    ({"ts": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"tz": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"ts": {"between": ["2031-03-01", "9999-12-31"]}}, [1, 2, 3]),
    ({"ts": {"between": ["2031-03-01T00:00:00Z", "2031-03-31T00:00:00Z"]}}, [3]),
    ({"updated_by": {"between": ["2031-03-01", "2031-03-31"]}}, [1]),
    ({"ts": {"lte": ["2031-03-31"]}}, [3]),
    ({"ts": {"gte": ["2031-03-01T00:00:00Z"], "lt": ["2031-04-01T00:00:00Z"]}}, [1, 3]),
    ({"tz": {"eq": ["2031-04-01T05:45:00+05:45"]}}, [2]),
    ({"ts": {"eq": ["2031-04-01T05:45:00+05:45"]}}, [2]),
    ({"tz": {"eq": ["2031-04-01"]}}, [2]),
    ({"tz": {"lt": ["infinity"]}}, [1, 2, 3]),
    ({"clock": {"gt": ["06:30"]}}, [2]),
    ({"m": {"eq": ["ok"]}}, [1]),
    ({"m": {"in": ["ok", "sad"]}}, [1, 2]),
    ({"j": {"eq": ['{"k": 1}']}}, [1]),
    ({"a": {"eq": ["{1,2}"]}}, [1]),
    ({"s": {"ne": ["open"]}, "n": {"lte": [3]}}, [2, 3]),
    ({"n": {"in": list(range(1500, 3100))}}, []),
]


async def test_every_operator_gives_its_rows(connection: Connection) -> None:
    wrong = []
    async with engines() as opened:
        for where, wanted in CASES:
            rows = await rows_of(opened, connection, "t", ["n"], where=where)
            if sorted(row["n"] for row in rows) != wanted:
                wrong.append((where, [row["n"] for row in rows], wanted))
    assert wrong == []


async def test_a_filter_on_one_table_leaves_the_others_whole(connection: Connection) -> None:
    fields = {"t": ["n"], "other": ["v"]}
    async with engines() as opened:
        data = await document(opened, connection, fields, filters={"t": {"n": {"eq": [7]}}})
    assert parsed(data) == {"t": [{"n": 7}], "other": [{"v": 1}, {"v": 2}]}


@pytest.mark.parametrize(
    ("field", "condition", "reason"),
    [
        ("u", {"eq": ["zz"]}, "invalid_filter_value"),
        ("n", {"eq": ["abc"]}, "invalid_filter_value"),
        ("n", {"eq": [True]}, "invalid_filter_value"),
        ("n", {"lt": [2**31]}, "invalid_filter_value"),
        ("big", {"eq": [-(2**63) - 1]}, "invalid_filter_value"),
        ("f4", {"lt": [Decimal("1e39")]}, "invalid_filter_value"),
        ("f4", {"gt": [Decimal("1e-46")]}, "invalid_filter_value"),
        ("f8", {"gt": [Decimal("1e-400")]}, "invalid_filter_value"),
        ("d", {"eq": ["20310401"]}, "invalid_filter_value"),
        ("ts", {"eq": ["2031-W14-2"]}, "invalid_filter_value"),
        ("s", {"eq": [True]}, "invalid_filter_value"),
        ("s", {"eq": ["nul\0"]}, "invalid_filter_value"),
        ("s", {"eq": ["\ud800"]}, "invalid_filter_value"),
        ("b", {"eq": ["perhaps"]}, "invalid_filter_value"),
        ("d", {"gt": ["2031-02-30"]}, "invalid_filter_value"),
        ("ts", {"gt": ["yesterday"]}, "invalid_filter_value"),
        ("ts", {"lt": ["2031-01-01T00:00:00.1234567Z"]}, "invalid_filter_value"),
        ("raw", {"eq": ["***"]}, "invalid_filter_value"),
        ("m", {"eq": ["none"]}, "invalid_filter_value"),
        ("clock", {"eq": ["25:61"]}, "invalid_filter_value"),
        ("f8", {"eq": ["1e999"]}, "invalid_filter_value"),
        ("n", {"like": ["1%"]}, "invalid_filter_value"),
        ("js", {"eq": ["{}"]}, "invalid_filter"),
        ("n", {"gt": [1, 2]}, "invalid_filter"),
        ("n", {"gt": [None]}, "invalid_filter"),
        ("n", {"between": [10]}, "invalid_filter"),
        ("n", {"equals": [1]}, "invalid_filter"),
        ("n", {"eq": "abc"}, "invalid_filter"),
        ("s", {"like": [5]}, "invalid_filter"),
        ("s", {"like": ["a", 5]}, "invalid_filter"),
    ],
)
async def test_what_cannot_be_applied_fails_and_names_the_field(
    connection: Connection, field: str, condition: Condition, reason: str
) -> None:
    async with engines() as opened:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, connection, "t", ["n"], where={field: condition})
    assert (caught.value.stage, caught.value.reason) == ("query", reason)
    assert (caught.value.table, caught.value.column) == ("t", field)
