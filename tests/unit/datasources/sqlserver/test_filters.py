"""Conditions as T-SQL: what is compared, and what is bound."""

import json
from decimal import Decimal

import pytest

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.predicates import predicates_of
from fetcher.datasources.sqlserver.filters import Values, like_pattern, predicate_sql
from fetcher.datasources.sqlserver.types import Column


def a_column(
    base_type: str | None, *, max_bytes: int = 100, collation: str | None = None
) -> Column:
    return Column(
        name="c",
        base_type=base_type,
        type=base_type or "geometry",
        max_bytes=max_bytes,
        is_nullable=True,
        is_primary_key=False,
        collation=collation,
    )


def sql(base_type: str | None, condition: object) -> tuple[str, list[object]]:
    values = Values()
    column = a_column(base_type)
    parts = [predicate_sql("c", column, each, values) for each in predicates_of(condition)]
    return " AND ".join(parts), list(values.bound)


CASES: list[tuple[str | None, object, str, list[object]]] = [
    ("int", {"eq": [5]}, "(c IN (CONVERT(bigint, @P1)))", ["5"]),
    ("bigint", {"eq": [9007199254740993]}, "(c IN (CONVERT(bigint, @P1)))", ["9007199254740993"]),
    ("int", {"gt": ["1.5"]}, "c > CONVERT(decimal(38, 1), @P1)", ["1.5"]),
    ("decimal", {"lt": [2**63]}, "c < CONVERT(decimal(38, 0), @P1)", ["9223372036854775808"]),
    ("decimal", {"eq": ["1.50", 2]},
     "(c IN (CONVERT(decimal(38, 1), @P1)) OR c IN (CONVERT(bigint, @P2)))", ["1.5", "2"]),
    ("money", {"gte": ["-0.0001"]}, "c >= CONVERT(decimal(38, 4), @P1)", ["-0.0001"]),
    ("bit", {"eq": [True]}, "(c IN (CONVERT(bit, @P1)))", ["1"]),
    ("float", {"eq": ["0.1"]}, "(c IN (@P1))", [0.1]),
    ("real", {"gt": ["0.1"]}, "c > CONVERT(real, @P1)", [0.1]),
    ("nvarchar", {"eq": ["O'Hara \"x\"; DROP"]}, "(c IN (@P1))", ["O'Hara \"x\"; DROP"]),
    ("varchar", {"eq": [5]}, "(c IN (@P1))", ["5"]),
    ("ntext", {"ne": ["a"]}, "(CONVERT(nvarchar(max), c) NOT IN (@P1))", ["a"]),
    ("uniqueidentifier", {"eq": ["{6F9619FF8B86D011B42D00C04FC964FF}"]},
     "(c IN (CONVERT(uniqueidentifier, @P1)))", ["6f9619ff-8b86-d011-b42d-00c04fc964ff"]),
    ("varbinary", {"eq": ["3q2+7w=="]}, "(c IN (CONVERT(varbinary(8000), @P1, 2)))", ["deadbeef"]),
    ("date", {"between": ["2031-03-01", "2031-03-31"]},
     "(c >= CONVERT(date, @P1, 23) AND c <= CONVERT(date, @P2, 23))", ["2031-03-01", "2031-03-31"]),
    ("date", {"lt": ["2031-03-01T00:00:01Z"]}, "c < CONVERT(datetime2(7), @P1, 126)",
     ["2031-03-01T00:00:01"]),
    ("datetime2", {"between": ["2031-03-01", "2031-03-31"]},
     "(c >= CONVERT(datetime2(7), @P1, 126) AND c < CONVERT(datetime2(7), @P2, 126))",
     ["2031-03-01T00:00:00", "2031-04-01T00:00:00"]),
    ("datetime2", {"between": ["2031-03-01", "9999-12-31"]},
     "(c >= CONVERT(datetime2(7), @P1, 126))", ["2031-03-01T00:00:00"]),
    ("datetime2", {"lte": ["2031-03-01T01:00:00.1234567+02:00"]},
     "c <= CONVERT(datetime2(7), @P1, 126)", ["2031-02-28T23:00:00.1234567"]),
    ("datetime", {"eq": ["2031-03-01T00:00:00.123Z"]}, "(c IN (CONVERT(datetime, @P1, 126)))",
     ["2031-03-01T00:00:00.123"]),
    ("datetime", {"lt": ["2031-03-01T00:00:00.5Z"]}, "c < CONVERT(datetime, @P1, 126)",
     ["2031-03-01T00:00:00.500"]),
    ("datetime", {"gte": ["2031-03-01T00:00:00.001Z"]},
     "CONVERT(datetime2(3), c) >= CONVERT(datetime2(7), @P1, 126)", ["2031-03-01T00:00:00.001"]),
    ("datetime", {"lt": ["1700-01-01"]},
     "CONVERT(datetime2(3), c) < CONVERT(datetime2(7), @P1, 126)", ["1700-01-01T00:00:00"]),
    ("datetimeoffset", {"eq": ["2031-03-01T02:00:00.5+02:00"]},
     "(c IN (CONVERT(datetimeoffset(7), @P1, 127)))", ["2031-03-01T00:00:00.5Z"]),
    ("time", {"eq": ["06:07:08.50"]}, "(c IN (CONVERT(time(7), @P1)))", ["06:07:08.5"]),
    ("nvarchar", {"like": ["a[b]%", "x\\%"]},
     "(c LIKE @P1 ESCAPE N'\\' OR c LIKE @P2 ESCAPE N'\\')", ["a\\[b]%", "x\\%"]),
    ("int", {"in": []}, "1 = 0", []),
    ("int", {"nin": []}, "1 = 1", []),
    ("int", {"in": [1, None]}, "(c IN (CONVERT(bigint, @P1)) OR c IS NULL)", ["1"]),
    ("int", {"nin": [1, None]}, "(c NOT IN (CONVERT(bigint, @P1)) AND c IS NOT NULL)", ["1"]),
    ("xml", {"is_null": [True]}, "c IS NULL", []),
    (None, {"not_null": [True]}, "c IS NOT NULL", []),
]  # fmt: skip


@pytest.mark.parametrize(("base_type", "condition", "text", "bound"), CASES)
def test_condition(
    base_type: str | None, condition: object, text: str, bound: list[object]
) -> None:
    assert sql(base_type, condition) == (text, bound)


@pytest.mark.parametrize(
    ("base_type", "value"),
    [
        ("int", "zz"),
        ("int", True),
        ("int", "1e39"),
        ("int", 2**31),
        ("tinyint", -1),
        ("smallint", 2**15),
        ("bigint", 2**63),
        ("real", "1e-46"),
        ("datetime2", "20310301"),
        ("datetime2", "2031-W14-2"),
        ("decimal", "0." + "1" * 39),
        ("bit", 2),
        ("float", "1e999"),
        ("float", "NaN"),
        ("real", "1e39"),
        ("nvarchar", True),
        ("nvarchar", "\ud800"),
        ("uniqueidentifier", "zz"),
        ("varbinary", "no base64"),
        ("date", "2031-02-30"),
        ("date", "yesterday"),
        ("datetime2", "2031-03-01T00:00:00.12345678Z"),
        ("datetime2", "0001-01-01T00:00:00+02:00"),
        ("time", "25:00"),
        ("xml", "<a/>"),
        ("sql_variant", 1),
        (None, "AAE="),
    ],
)
def test_value_that_the_column_cannot_have_is_refused(base_type: str | None, value: object) -> None:
    with pytest.raises(UnfitValue):
        sql(base_type, {"eq": [value]})


def test_pattern_on_a_number_is_refused() -> None:
    with pytest.raises(UnfitValue):
        sql("int", {"like": ["1%"]})


@pytest.mark.parametrize(
    ("pattern", "own"),
    [
        ("%ana%", "%ana%"),
        ("100\\%", "100\\%"),
        ("a\\_b", "a\\_b"),
        ("\\\\", "\\\\"),
        ("[a-z]", "\\[a-z]"),
        ("\\[x", "\\[x"),
        ("\\a", "a"),
    ],
)
def test_pattern_means_the_same_as_everywhere(pattern: str, own: str) -> None:
    assert like_pattern(pattern) == own


@pytest.mark.parametrize(
    ("base_type", "collation", "listed", "item"),
    [
        ("int", None, [1], "CONVERT(bigint, j.value)"),
        ("float", None, [Decimal("0.5")], "CONVERT(float, j.value)"),
        ("nvarchar", "Latin1_General_CI_AS", ["a"], "j.value COLLATE Latin1_General_CI_AS"),
        ("nvarchar", "evil; DROP", ["a"], "j.value"),
    ],
)
def test_long_list_is_one_json_text(
    base_type: str, collation: str | None, listed: list[object], item: str
) -> None:
    values = Values()
    column = a_column(base_type, collation=collation)
    (wanted,) = predicates_of({"in": listed * 2001})
    text = predicate_sql("c", column, wanted, values)
    assert text == f"(c IN (SELECT {item} FROM OPENJSON(@P1) AS j))"
    (bound,) = values.bound
    assert json.loads(str(bound)) == [str(listed[0])] * 2001


def test_lists_share_the_room_for_parameters() -> None:
    values = Values()
    (wanted,) = predicates_of({"in": list(range(1500))})
    first = predicate_sql("a", a_column("int"), wanted, values)
    second = predicate_sql("b", a_column("int"), wanted, values)
    assert "@P1500" in first
    assert second == "(b IN (SELECT CONVERT(bigint, j.value) FROM OPENJSON(@P1501) AS j))"
