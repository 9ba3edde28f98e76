"""Rows: what is selected of each type, what the driver is asked to fetch it as, what becomes JSON.

Expected values are those of spec datasources 10.5; no server made them.
"""

import json
from typing import Any

import oracledb
import pytest

from fetcher.datasources.oracle import rows
from fetcher.datasources.oracle.session import SNAPSHOT
from fetcher.domain.jobs import JobOptions
from tests.unit.datasources.oracle.fake_driver import (
    Answer,
)
from tests.unit.datasources.oracle.one_read import LIMIT, a_database, of, one_cell, read_all

NATURAL = JobOptions(values="natural")
BIGINT_TEXT = JobOptions(bigint="string")
DECIMAL_NUMBER = JobOptions(decimals="number")
DAY = " 2031-04-05T06:07:08"
"""As TO_CHAR with SYYYY writes it: a blank stands where a minus would."""


@pytest.mark.parametrize(
    ("column", "fetched", "expected"),
    [
        (of("NUMBER", precision=10, scale=0), "42", "42"),
        (of("NUMBER", scale=0), "9007199254740993", "9007199254740993"),
        (of("NUMBER", precision=38, scale=0), "-" + "9" * 38, "-" + "9" * 38),
        (of("NUMBER", precision=5, scale=-2), "12300", "12300"),
        (of("NUMBER", precision=10, scale=2), "12.5", '"12.50"'),
        (of("NUMBER", precision=10, scale=2), "12", '"12.00"'),
        (of("NUMBER", precision=10, scale=3), "-.003", '"-0.003"'),
        (of("NUMBER"), "12.5", '"12.5"'),
        (of("NUMBER"), ".1", '"0.1"'),
        (of("NUMBER"), "1E+3", '"1000"'),
        (of("FLOAT", precision=126), "0.1", '"0.1"'),
        (of("BINARY_FLOAT"), 0.10000000149011612, "0.1"),
        (of("BINARY_FLOAT"), 3.4028234663852886e38, "3.4028235e+38"),
        (of("BINARY_DOUBLE"), 0.1, "0.1"),
        (of("BINARY_DOUBLE"), float("nan"), '"NaN"'),
        (of("BINARY_FLOAT"), float("-inf"), '"-Infinity"'),
        (of("CHAR"), "AB   ", '"AB   "'),
        (of("VARCHAR2"), 'hé"llo\n', '"hé\\"llo\\n"'),
        (of("NVARCHAR2"), "[1,2]", '"[1,2]"'),
        (of("LONG"), "text", '"text"'),
        (of("DATE"), DAY, '"2031-04-05T06:07:08Z"'),
        (of("DATE"), "-0044-03-15T00:00:00", '"-0044-03-15 00:00:00"'),
        (of("TIMESTAMP(9)"), f"{DAY}.123456789", '"2031-04-05T06:07:08.123456789Z"'),
        (of("TIMESTAMP(6)"), f"{DAY}.120000000", '"2031-04-05T06:07:08.12Z"'),
        (of("TIMESTAMP(6)"), f"{DAY}.000000000", '"2031-04-05T06:07:08Z"'),
        (of("TIMESTAMP(6) WITH TIME ZONE"), f"{DAY}.500000000", '"2031-04-05T06:07:08.5Z"'),
        (of("TIMESTAMP(6) WITH LOCAL TIME ZONE"), f"{DAY}.500000000", '"2031-04-05T06:07:08.5Z"'),
        (of("INTERVAL YEAR(2) TO MONTH"), "+01-02", '"+01-02"'),
        (of("INTERVAL DAY(2) TO SECOND(6)"), "+03 04:05:06.000000", '"+03 04:05:06.000000"'),
        (of("RAW"), b"\xbe\xef", '"vu8="'),
        (of("LONG RAW"), b'{"a":1}', '"eyJhIjoxfQ=="'),
        (of("ROWID"), "AAAAAAAAAAAAAAAAAA", '"AAAAAAAAAAAAAAAAAA"'),
        (of("UROWID"), "*BAFAB4wCwQL+", '"*BAFAB4wCwQL+"'),
        (of("BOOLEAN"), True, "true"),
        (of("SOMETHING NEW"), "its text", '"its text"'),
    ],
)
async def test_each_type_in_its_form(
    column: tuple[object, ...], fetched: object, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await one_cell(monkeypatch, column, fetched) == expected
    assert await one_cell(monkeypatch, column, None) == "null"


@pytest.mark.parametrize(
    ("column", "fetched", "expected"),
    [
        (of("CLOB"), "text", '"text"'),
        (of("NCLOB"), "", '""'),
        (of("BLOB"), b"\xbe\xef", '"vu8="'),
        (of("XMLTYPE", owner="PUBLIC"), "<a>1</a>", '"<a>1</a>"'),
        (of("JSON"), '{"n":9007199254740993,"d":1.10}', '{"n":9007199254740993,"d":1.10}'),
        (of("JSON"), "[1,\n2]", "[1, 2]"),
        (of("JSON"), "null", "null"),
        (of("VECTOR"), "[1.0E+000,2.5E-001]", "[1.0E+000,2.5E-001]"),
    ],
)
async def test_large_values_come_with_their_length(
    column: tuple[object, ...], fetched: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await one_cell(monkeypatch, column, fetched, str(len(fetched))) == expected
    assert await one_cell(monkeypatch, column, None, None) == "null"


@pytest.mark.parametrize(
    ("options", "column", "fetched", "expected"),
    [
        (NATURAL, of("DATE"), DAY, '"2031-04-05T06:07:08"'),
        (NATURAL, of("TIMESTAMP(6)"), f"{DAY}.500000000", '"2031-04-05T06:07:08.5"'),
        (NATURAL, of("TIMESTAMP(6) WITH TIME ZONE"), f"{DAY}.5", '"2031-04-05T06:07:08.5Z"'),
        (BIGINT_TEXT, of("NUMBER", scale=0), "9007199254740993", '"9007199254740993"'),
        (BIGINT_TEXT, of("NUMBER", scale=0), "-9007199254740992", "-9007199254740992"),
        (DECIMAL_NUMBER, of("NUMBER", scale=2), "12.5", "12.50"),
        (DECIMAL_NUMBER, of("NUMBER"), ".5", "0.5"),
    ],
)
async def test_a_jobs_options_change_the_form(
    options: JobOptions,
    column: tuple[object, ...],
    fetched: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await one_cell(monkeypatch, column, fetched, options=options) == expected


FF9 = """'SYYYY-MM-DD"T"HH24:MI:SS.FF9')"""


@pytest.mark.parametrize(
    ("column", "selected"),
    [
        (of("NUMBER"), 't."C"'),
        (of("DATE"), """TO_CHAR(t."C", 'SYYYY-MM-DD"T"HH24:MI:SS')"""),
        (of("TIMESTAMP(9)"), f'TO_CHAR(t."C", {FF9}'),
        (of("TIMESTAMP(9) WITH TIME ZONE"), f'TO_CHAR(SYS_EXTRACT_UTC(t."C"), {FF9}'),
        (of("TIMESTAMP(9) WITH LOCAL TIME ZONE"), f'TO_CHAR(t."C", {FF9}'),
        (of("INTERVAL YEAR(2) TO MONTH"), 'TO_CHAR(t."C")'),
        (of("SOMETHING NEW"), 'TO_CHAR(t."C")'),
        (
            of("CLOB"),
            f'CASE WHEN DBMS_LOB.GETLENGTH(t."C") <= {LIMIT} THEN t."C" END,'
            ' DBMS_LOB.GETLENGTH(t."C")',
        ),
    ],
)
async def test_date_times_are_written_by_the_server(
    column: tuple[object, ...], selected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = a_database(monkeypatch, Answer("SELECT "), [("HR", "STAFF", "C", *column, "Y")])
    assert await read_all(database, ("C",)) == []
    assert database.statements[-1] == f'SELECT {selected} FROM "HR"."STAFF" t'


async def test_numbers_and_large_values_are_fetched_so_that_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = [
        oracledb.DB_TYPE_NUMBER,
        oracledb.DB_TYPE_VARCHAR,
        oracledb.DB_TYPE_CLOB,
        oracledb.DB_TYPE_NCLOB,
        oracledb.DB_TYPE_BLOB,
        oracledb.DB_TYPE_BINARY_DOUBLE,
    ]
    database = a_database(monkeypatch, Answer("SELECT t.", types=types))
    await read_all(database)
    cursor = database.executed[-1].cursor
    assert [each and each.db_type for each in cursor.variables] == [
        oracledb.DB_TYPE_VARCHAR,
        oracledb.DB_TYPE_VARCHAR,
        oracledb.DB_TYPE_LONG,
        oracledb.DB_TYPE_LONG_NVARCHAR,
        oracledb.DB_TYPE_LONG_RAW,
        None,
    ]
    assert {each.arraysize for each in cursor.variables if each} == {cursor.arraysize}
    # a text keeps the size that the server described
    assert [each and each.size for each in cursor.variables] == [0, 40, 0, 0, 0, None]
    assert [each and each.encoding_errors for each in cursor.variables] == [
        "surrogateescape",
        "surrogateescape",
        "surrogateescape",
        "surrogatepass",
        "strict",
        None,
    ]
    assert cursor.prefetchrows == cursor.arraysize == 1000


@pytest.mark.parametrize("name", ["CLOB", "LONG", "BLOB", "JSON"])
async def test_few_rows_travel_at_once_where_cells_may_be_large(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = a_database(monkeypatch, Answer("SELECT "), [("HR", "STAFF", "C", *of(name), "Y")])
    await read_all(database, ("C",))
    assert database.executed[-1].cursor.arraysize == 4


async def test_all_tables_are_read_in_one_read_only_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = a_database(monkeypatch, Answer("SELECT t.", [("1", "a"), ("2", None)]))
    (batch,) = await read_all(database, ("ID", "NAME"), filters={"PAY": {"gte": [1]}})
    assert (batch.table, batch.row_count) == ("STAFF", 2)
    assert batch.data == b'{"ID":1,"NAME":"a"},{"ID":2,"NAME":null}'
    executed = database.executed
    begun = database.statements.index(SNAPSHOT)
    assert [each.statement[:15] for each in executed[begun:]] == [
        "SET TRANSACTION",
        "SELECT c.owner,",
        "SELECT k.owner,",
        'SELECT t."ID", ',
    ]
    assert executed[-1].statement.endswith(' FROM "HR"."STAFF" t WHERE t."PAY" >= :1')
    assert executed[-1].values == [1]
    assert executed[-1].cursor.input_sizes == (oracledb.DB_TYPE_NUMBER,)
    (connection,) = database.connections
    assert connection.rollbacks == 1, "it must be a transaction's first statement (ORA-01453)"


async def test_batches_hold_what_was_asked_for_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched = [(str(number), "x" * 50) for number in range(5000)]
    database = a_database(monkeypatch, Answer("SELECT t.", fetched))
    batches = await read_all(database, ("ID", "NAME"), max_batch_bytes=10_000)
    assert all(len(batch.data) <= 10_000 for batch in batches)
    joined = b",".join(batch.data for batch in batches)
    assert [row["ID"] for row in json.loads(b"[%b]" % joined)] == list(range(5000))
    assert sum(batch.row_count for batch in batches) == 5000


def test_the_driver_has_the_types_that_are_asked_for() -> None:
    """Its own variables take them: no server is needed to make one."""
    known: set[Any] = {
        value for name, value in vars(oracledb).items() if name.startswith("DB_TYPE")
    }
    assert set(rows._FETCHED_AS) | set(rows._FETCHED_AS.values()) | set(rows._BROKEN) <= known
