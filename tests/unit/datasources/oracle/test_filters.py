"""Conditions and binds, by operator and by column type."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import oracledb
import pytest

from fetcher.datasources.oracle.names import TableId
from fetcher.datasources.oracle.query import TableQuery, prepare_table
from fetcher.datasources.oracle.schema import Column
from fetcher.datasources.oracle.types import column_type
from fetcher_engine import SourceFailure, Stage

SELECT = 'SELECT t."C" FROM "HR"."T" t'


def a_query(type_name: str, condition: object, **type_facts: Any) -> TableQuery:
    read = Column(name="C", type=column_type("NUMBER"), is_nullable=True, is_key=False)
    filtered = Column(
        name="F", type=column_type(type_name, **type_facts), is_nullable=True, is_key=False
    )
    return prepare_table(
        name="T",
        table=TableId("HR", "T"),
        columns=[read, filtered],
        fields=("C",),
        filters={"F": condition},
        max_cell_bytes=1000,
    )


def where(query: TableQuery) -> str:
    assert query.statement.startswith(f"{SELECT} WHERE ")
    return query.statement.removeprefix(f"{SELECT} WHERE ")


@pytest.mark.parametrize(
    ("condition", "text", "values"),
    [
        ({"eq": ["open"]}, 't."F" IN (:1)', ["open"]),
        ({"eq": ["open", "late"]}, 't."F" IN (:1, :2)', ["open", "late"]),
        ({"in": ["a", None]}, 't."F" IN (:1) OR t."F" IS NULL', ["a"]),
        ({"nin": ["a", None]}, 't."F" NOT IN (:1) AND t."F" IS NOT NULL', ["a"]),
        ({"ne": ["a", "b"]}, 't."F" NOT IN (:1, :2)', ["a", "b"]),
        ({"eq": [""]}, 't."F" IS NULL', []),
        ({"ne": [""]}, 't."F" IS NOT NULL', []),
        ({"in": ["", "a"]}, 't."F" IN (:1) OR t."F" IS NULL', ["a"]),
        ({"like": ["%ana%", r"a\%_\x"]}, None, ["%ana%", r"a\%_x"]),
        ({"like": [r"\\a\b"]}, None, [r"\\ab"]),
        ({"between": ["a", "b"]}, 't."F" >= :1 AND t."F" <= :2', ["a", "b"]),
    ],
)
def test_conditions_on_text(condition: object, text: str | None, values: list[object]) -> None:
    query = a_query("VARCHAR2", condition)
    one = "t.\"F\" LIKE :{} ESCAPE '\\'"
    like = " OR ".join(one.format(number) for number in range(1, len(values) + 1))
    assert where(query) == f"({text or like})"
    assert list(query.values) == values
    assert set(query.bind_types) <= {oracledb.DB_TYPE_VARCHAR}


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"in": []}, "1 = 0"),
        ({"nin": []}, "1 = 1"),
        ({"is_null": [True]}, 't."F" IS NULL'),
        ({"is_null": [False]}, 't."F" IS NOT NULL'),
        ({"not_null": [True]}, 't."F" IS NOT NULL'),
        ({"gt": ["a"], "lt": ["b"]}, 't."F" > :1 AND t."F" < :2'),
    ],
)
def test_conditions_without_brackets(condition: object, text: str) -> None:
    assert where(a_query("VARCHAR2", condition)) == text


def test_long_lists_come_in_chunks_and_all_are_bound() -> None:
    values = list(range(1500))
    query = a_query("NUMBER", {"in": values})
    first = ", ".join(f":{n}" for n in range(1, 1001))
    second = ", ".join(f":{n}" for n in range(1001, 1501))
    assert where(query) == f'(t."F" IN ({first}) OR t."F" IN ({second}))'
    assert list(query.values) == values
    assert ') AND t."F" NOT IN (' in where(a_query("NUMBER", {"nin": values}))


INSTANT = "2031-04-05T06:07:08.123456789+02:00"
TS = "TO_TIMESTAMP(:1, 'YYYY-MM-DD HH24:MI:SS.FF9')"
TSTZ = "TO_TIMESTAMP_TZ(:1, 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM')"


@pytest.mark.parametrize(
    ("type_name", "value", "expression", "bound", "db_type"),
    [
        ("NUMBER", 9007199254740993, ":1", 9007199254740993, oracledb.DB_TYPE_NUMBER),
        ("NUMBER", Decimal("1.5"), ":1", Decimal("1.5"), oracledb.DB_TYPE_NUMBER),
        ("NUMBER", "12.50", ":1", Decimal("12.50"), oracledb.DB_TYPE_NUMBER),
        ("FLOAT", "1e3", ":1", 1000, oracledb.DB_TYPE_NUMBER),
        ("BINARY_FLOAT", Decimal("0.1"), ":1", 0.1, oracledb.DB_TYPE_BINARY_FLOAT),
        ("BINARY_DOUBLE", "-Infinity", ":1", float("-inf"), oracledb.DB_TYPE_BINARY_DOUBLE),
        ("CHAR", "AB", ":1", "AB", oracledb.DB_TYPE_CHAR),
        ("NCHAR", "AB", ":1", "AB", oracledb.DB_TYPE_NCHAR),
        ("NVARCHAR2", "ä", ":1", "ä", oracledb.DB_TYPE_NVARCHAR),
        ("VARCHAR2", 5, ":1", "5", oracledb.DB_TYPE_VARCHAR),
        ("BOOLEAN", "true", ":1", True, oracledb.DB_TYPE_BOOLEAN),
        ("RAW", "vu8=", ":1", b"\xbe\xef", oracledb.DB_TYPE_RAW),
        ("DATE", "2031-04-05", ":1", datetime(2031, 4, 5), oracledb.DB_TYPE_DATE),  # noqa: DTZ001
        ("DATE", INSTANT, TS, "2031-04-05 04:07:08.123456789", oracledb.DB_TYPE_VARCHAR),
        ("TIMESTAMP(9)", INSTANT, TS, "2031-04-05 04:07:08.123456789", oracledb.DB_TYPE_VARCHAR),
        (
            "TIMESTAMP(6) WITH TIME ZONE",
            INSTANT,
            TSTZ,
            "2031-04-05 04:07:08.123456789 +00:00",
            oracledb.DB_TYPE_VARCHAR,
        ),
        (
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            "2031-04-05 06:07",
            TSTZ,
            "2031-04-05 06:07:00.000000000 +00:00",
            oracledb.DB_TYPE_VARCHAR,
        ),
        (
            "INTERVAL YEAR(2) TO MONTH",
            "01-02",
            "TO_YMINTERVAL(:1)",
            "01-02",
            oracledb.DB_TYPE_VARCHAR,
        ),
        (
            "INTERVAL DAY(2) TO SECOND(6)",
            "3 04:05:06",
            "TO_DSINTERVAL(:1)",
            "3 04:05:06",
            oracledb.DB_TYPE_VARCHAR,
        ),
        ("ROWID", "A" * 18, ":1", "A" * 18, oracledb.DB_TYPE_VARCHAR),
    ],
)
def test_values_are_bound_with_the_columns_type(
    type_name: str, value: object, expression: str, bound: object, db_type: object
) -> None:
    query = a_query(type_name, {"gte": [value]})
    assert where(query) == f't."F" >= {expression}'
    assert query.values == (bound,)
    assert type(query.values[0]) is type(bound)
    assert query.bind_types == (db_type,)


@pytest.mark.parametrize(
    ("type_name", "condition", "text", "values"),
    [
        (
            "TIMESTAMP(6)",
            ["2031-03-01", "2031-03-31"],
            f't."F" >= {TS} AND t."F" < {TS.replace(":1", ":2")}',
            ("2031-03-01 00:00:00.000000000", "2031-04-01 00:00:00.000000000"),
        ),
        (
            "DATE",
            ["2031-03-01", "2031-03-31"],
            't."F" >= :1 AND t."F" < :2',
            (datetime(2031, 3, 1), datetime(2031, 4, 1)),  # noqa: DTZ001
        ),
        (
            "DATE",
            ["2031-03-01", "9999-12-31"],
            't."F" >= :1 AND t."F" IS NOT NULL',
            (datetime(2031, 3, 1),),  # noqa: DTZ001
        ),
        (
            "DATE",
            ["2031-03-01T00:00:00Z", "2031-03-31T00:00:00Z"],
            't."F" >= :1 AND t."F" <= :2',
            (datetime(2031, 3, 1), datetime(2031, 3, 31)),  # noqa: DTZ001
        ),
        (
            "VARCHAR2",
            ["2031-03-01", "2031-03-31"],
            't."F" >= :1 AND t."F" <= :2',
            ("2031-03-01", "2031-03-31"),
        ),
    ],
)
def test_a_date_as_the_upper_end_includes_its_day(
    type_name: str, condition: list[str], text: str, values: tuple[object, ...]
) -> None:
    query = a_query(type_name, {"between": condition})
    assert where(query) == f"({text})"
    assert query.values == values


def test_large_texts_are_compared_by_function() -> None:
    query = a_query("CLOB", {"in": ["a", "b"], "like": ["a%"]})
    compare = 'DBMS_LOB.COMPARE(t."F", TO_CLOB(:{})) = 0'
    assert where(query) == (
        f"({compare.format(1)} OR {compare.format(2)}) AND (t.\"F\" LIKE :3 ESCAPE '\\')"
    )


def test_a_truth_fits_only_a_number_of_one_digit() -> None:
    assert a_query("NUMBER", {"eq": [True]}, precision=1, scale=0).values == (1,)
    with pytest.raises(SourceFailure, match="invalid_filter_value"):
        a_query("NUMBER", {"eq": [True]}, precision=2, scale=0)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("NUMBER", "canary"),
        ("NUMBER", "NaN"),
        ("NUMBER", 10**130),
        ("NUMBER", int("1" * 39)),
        ("BINARY_DOUBLE", 10**400),
        ("BINARY_FLOAT", 10**39),
        ("VARCHAR2", True),
        ("VARCHAR2", "a\0"),
        ("VARCHAR2", "\ud800"),
        ("VARCHAR2", "x" * 32768),
        ("BOOLEAN", "maybe"),
        ("RAW", "canary!"),
        ("DATE", "canary"),
        ("DATE", "2031-02-30"),
        ("DATE", 5),
        ("TIMESTAMP(9)", "2031-04-05T06:07:08.1234567891Z"),
        ("TIMESTAMP(9)", "0001-01-01T00:00:00+02:00"),
        ("ROWID", "canary"),
    ],
)
def test_a_value_that_cannot_be_the_columns_names_the_column(type_name: str, value: object) -> None:
    with pytest.raises(SourceFailure) as caught:
        a_query(type_name, {"gte": [value]})
    failure = caught.value
    assert (failure.stage, failure.reason) == (Stage.QUERY, "invalid_filter_value")
    assert (failure.table, failure.column) == ("T", "F")
    assert failure.__context__ is None


@pytest.mark.parametrize(
    ("type_name", "condition"),
    [
        ("NUMBER", {"like": ["1%"]}),
        ("BLOB", {"eq": ["vu8="]}),
        ("LONG", {"eq": ["a"]}),
        ("JSON", {"eq": ["a"]}),
        ("XMLTYPE", {"gt": ["a"]}),
        ("BFILE", {"eq": ["a"]}),
        ("NUMBER", {"equals": [1]}),
        ("NUMBER", {}),
        ("NUMBER", {"gt": [1, 2]}),
        ("NUMBER", "x = 1"),
    ],
)
def test_what_cannot_be_asked_of_the_column_is_no_filter(type_name: str, condition: object) -> None:
    with pytest.raises(SourceFailure) as caught:
        a_query(type_name, condition)
    assert (caught.value.reason, caught.value.column) == ("invalid_filter", "F")


def test_values_are_in_no_text() -> None:
    query = a_query("VARCHAR2", {"eq": ["x'; DROP TABLE t; --"]})
    assert "DROP" not in query.statement
    assert "DROP" not in repr(query)
