"""Every operator on MariaDB, from the request to the rows (spec datasources 9, 19.7)."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import pytest

from fetcher.domain.connections import Connection
from fetcher_engine import EngineError
from tests.integration.datasources.harness import engines, rows_of
from tests.integration.datasources.mariadb import connection_to, own_database, run_sql
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def connection(mariadb: SqlAddress) -> Iterator[Connection]:
    """Nine rows, read by every test and changed by none."""
    with own_database(mariadb) as address:
        run_sql(
            address,
            """CREATE TABLE t (n int PRIMARY KEY, big bigint, qty decimal(10,2), f4 float,
             f8 double, s varchar(40), c char(5), b tinyint(1), bits bit(8), u uuid,
             raw varbinary(9), d date, ts datetime(6), tz timestamp(6) NULL, clock time,
             m enum('ok','sad'), y year, j json, g point, paid text, l varchar(9) character set
             latin1)""",
            """INSERT INTO t (n, big, qty, f4, f8, s, c, b, bits, u, raw, d, ts, tz, clock, m, y,
             j, paid, l) VALUES
             (1, 9007199254740993, 10.50, 0.1, 0.1, 'open', 'AB', 1, 5,
              '7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10', X'BEEF', '2031-03-31',
              '2031-03-31 23:59:59.9999', '2031-03-31 23:59:59.9999', '06:07', 'ok', 2031,
              '{"k":1}', 'yes', 'é'),
             (2, 9007199254740992, 1.00, 0.2, 7, 'late', 'CD', 0, 6,
              '00000000-0000-0000-0000-000000000001', X'00', '2031-04-01',
              '2031-04-01 00:00', '2031-04-01 00:00', '07:00', 'sad', 2032, '5', 'no', 'e'),
             (3, 5, -3.25, -1, 2, 'banana', 'x', NULL, NULL, NULL, NULL, '2031-03-01',
              '2031-03-01 00:00', '2031-03-01 00:00', NULL, NULL, NULL, NULL, NULL, NULL)""",
            r"""INSERT INTO t (n, s) VALUES (4, NULL), (5, 'x''; DROP TABLE t; --'),
             (6, '50%'), (7, 'a_b'), (8, 'a\\b'), (9, 'axb')""",
        )
        yield connection_to(address)


Condition = Mapping[str, Sequence[object]]

CASES: list[tuple[Mapping[str, Condition], list[int]]] = [
    ({"s": {"eq": ["open"]}}, [1]),
    ({"s": {"eq": ["open", "late"]}}, [1, 2]),
    ({"s": {"eq": [None]}}, [4]),
    ({"s": {"eq": ["open", None]}}, [1, 4]),
    ({"s": {"ne": [None]}}, [1, 2, 3, 5, 6, 7, 8, 9]),
    ({"s": {"ne": ["open", "late"]}}, [3, 5, 6, 7, 8, 9]),
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
    ({"qty": {"lt": [10**80]}}, [1, 2, 3]),
    ({"s": {"is_null": [True]}}, [4]),
    ({"s": {"not_null": [True]}, "n": {"lt": [6]}}, [1, 2, 3, 5]),
    ({"s": {"like": ["%ana%"]}}, [3]),
    ({"s": {"like": ["op%", "la%"]}}, [1, 2]),
    ({"s": {"like": ["a_b"]}}, [7, 8, 9]),
    ({"s": {"like": ["a\\_b"]}}, [7]),
    ({"s": {"like": ["50\\%"]}}, [6]),
    ({"s": {"like": ["%\\\\%"]}}, [8]),
    ({"s": {"like": ["%_\\"]}}, []),
    ({"s": {"eq": ["x'; DROP TABLE t; --"]}}, [5]),
    ({"s": {"eq": ["a\\b"]}}, [8]),
    ({"s": {"eq": ['O\'Hara "x"; DROP']}}, []),
    ({"s": {"eq": [5]}}, []),
    ({"c": {"eq": ["AB"]}}, [1]),
    ({"paid": {"eq": ["yes"]}}, [1]),
    ({"l": {"eq": ["\u6f22"]}}, []),
    ({"l": {"lt": ["\u6f22"]}}, [1, 2]),
    ({"big": {"eq": [9007199254740993]}}, [1]),
    ({"big": {"in": [9007199254740993, 5]}}, [1, 3]),
    ({"qty": {"eq": [Decimal("10.5")]}}, [1]),
    ({"qty": {"eq": ["10.50"]}}, [1]),
    ({"qty": {"lt": [0]}}, [3]),
    ({"f4": {"eq": [Decimal("0.1")]}}, [1]),
    ({"f8": {"eq": [Decimal("0.1")]}}, [1]),
    ({"b": {"eq": [True]}}, [1]),
    ({"b": {"eq": [0]}}, [2]),
    ({"b": {"eq": ["true"]}}, [1]),
    ({"bits": {"eq": [5]}}, [1]),
    ({"y": {"gt": [2031]}}, [2]),
    ({"u": {"eq": ["7F3C1F0E9C554B0E8F570C5A1F2D9B10"]}}, [1]),
    ({"raw": {"eq": ["vu8="]}}, [1]),
    ({"d": {"eq": ["2031-04-01"]}}, [2]),
    ({"d": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"d": {"gt": ["2031-03-31T12:00:00Z"]}}, [2]),
    ({"ts": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"tz": {"between": ["2031-03-01", "2031-03-31"]}}, [1, 3]),
    ({"ts": {"between": ["2031-03-01", "9999-12-31"]}}, [1, 2, 3]),
    ({"ts": {"between": ["2031-03-01T00:00:00Z", "2031-03-31T00:00:00Z"]}}, [3]),
    ({"ts": {"lte": ["2031-03-31"]}}, [3]),
    ({"tz": {"eq": ["2031-04-01T05:45:00+05:45"]}}, [2]),
    ({"ts": {"eq": ["2031-04-01T05:45:00+05:45"]}}, [2]),
    ({"clock": {"gt": ["06:30"]}}, [2]),
    ({"m": {"in": ["ok", "sad"]}}, [1, 2]),
    ({"j": {"is_null": [False]}}, [1, 2]),
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


@pytest.mark.parametrize(
    ("field", "condition", "reason"),
    [
        ("u", {"eq": ["zz"]}, "invalid_filter_value"),
        ("n", {"eq": ["abc"]}, "invalid_filter_value"),
        ("n", {"eq": [True]}, "invalid_filter_value"),
        ("n", {"lt": [2**31]}, "invalid_filter_value"),
        ("big", {"eq": [-(2**63) - 1]}, "invalid_filter_value"),
        ("bits", {"eq": [256]}, "invalid_filter_value"),
        ("y", {"gt": [9999]}, "invalid_filter_value"),
        ("b", {"eq": [128]}, "invalid_filter_value"),
        ("b", {"eq": ["perhaps"]}, "invalid_filter_value"),
        ("d", {"eq": ["20310401"]}, "invalid_filter_value"),
        ("ts", {"eq": ["2031-W14-2"]}, "invalid_filter_value"),
        ("s", {"eq": [True]}, "invalid_filter_value"),
        ("s", {"eq": ["\ud800"]}, "invalid_filter_value"),
        ("d", {"gt": ["2031-02-30"]}, "invalid_filter_value"),
        ("ts", {"gt": ["yesterday"]}, "invalid_filter_value"),
        ("ts", {"lt": ["2031-01-01T00:00:00.1234567Z"]}, "invalid_filter_value"),
        ("raw", {"eq": ["***"]}, "invalid_filter_value"),
        ("clock", {"eq": ["25:61"]}, "invalid_filter_value"),
        ("f8", {"eq": ["1e999"]}, "invalid_filter_value"),
        ("n", {"like": ["1%"]}, "invalid_filter_value"),
        ("j", {"eq": ["{}"]}, "invalid_filter"),
        ("g", {"eq": ["x"]}, "invalid_filter"),
        ("n", {"gt": [1, 2]}, "invalid_filter"),
        ("n", {"between": [10]}, "invalid_filter"),
        ("n", {"equals": [1]}, "invalid_filter"),
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
