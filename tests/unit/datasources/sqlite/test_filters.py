"""SQLite filters by what a column is declared as, whatever form its values are stored in."""

import sqlite3
from contextlib import closing

import pytest

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.predicates import predicates_of
from fetcher.datasources.sqlite.filters import add_functions, condition_of
from fetcher.datasources.sqlite.types import Kind, kind_of
from fetcher_engine import ColumnSnapshot


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("INTEGER", Kind.INTEGER),
        ("unsigned big int", Kind.INTEGER),
        ("INT8", Kind.INTEGER),
        ("bigint(20)", Kind.INTEGER),
        ("tinyint(1)", Kind.BOOLEAN),
        ("boolean", Kind.BOOLEAN),
        ("DATETIME", Kind.MOMENT),
        ("timestamp with time zone", Kind.MOMENT),
        ("date", Kind.DAY),
        ("varchar(20)", Kind.TEXT),
        ("BLOB", Kind.BYTES),
        ("double precision", Kind.FLOAT),
        ("DECIMAL(10,2)", Kind.NUMBER),
        ("POINT", Kind.ANY),
        ("INTERVAL", Kind.ANY),
        ("", Kind.ANY),
    ],
)
def test_a_declaration_says_what_is_compared(declared: str, kind: Kind) -> None:
    assert kind_of(declared) is kind


def matching(declared: str, stored: list[object], condition: object) -> list[object]:
    column = ColumnSnapshot("c", declared, nullable=True, primary_key=False)
    with closing(sqlite3.connect(":memory:")) as database:
        add_functions(database)
        database.execute(f"CREATE TABLE t (c {declared})")
        database.executemany("INSERT INTO t VALUES (?)", [(value,) for value in stored])
        found = [condition_of("t.c", column, each) for each in predicates_of(condition)]
        where = " AND ".join(text for text, _ in found)
        bound = [value for _, values in found for value in values]
        rows = database.execute(f"SELECT c FROM t WHERE {where}", bound).fetchall()
    return [value for (value,) in rows]


FORMS: list[object] = [
    "2031-03-31 23:59:59.9999",
    "2031-04-01",
    "2031-04-01T00:00:00Z",
    "2031-04-01 05:45:00+05:45",
    "2031-04-01 00:00:00.000",
]


def test_one_moment_in_any_form_is_one_moment() -> None:
    assert matching("DATETIME", FORMS, {"eq": ["2031-04-01"]}) == FORMS[1:]
    assert matching("DATETIME", FORMS, {"ne": ["2031-04-01"]}) == FORMS[:1]
    assert matching("DATETIME", FORMS, {"between": ["2031-03-01", "2031-03-31"]}) == FORMS[:1]


def test_numbers_and_texts_are_not_compared_in_a_column_of_moments() -> None:
    stored = [1_930_000_000, "2031-04-01", None, b"2031"]
    assert matching("TIMESTAMP", stored, {"gt": [5]}) == [1_930_000_000]
    assert matching("TIMESTAMP", stored, {"gt": ["2031-01-01"]}) == ["2031-04-01"]


def test_a_column_without_a_declaration_takes_values_as_they_are() -> None:
    stored: list[object] = [5, "5", 2**53 + 1]
    assert matching("", stored, {"eq": [5]}) == [5]
    assert matching("", stored, {"eq": ["5"]}) == ["5"]
    assert matching("", stored, {"gte": [2**53 + 1], "lt": [2**60]}) == [2**53 + 1]


@pytest.mark.parametrize(
    ("declared", "value"),
    [("INTEGER", "zz"), ("INTEGER", True), ("INTEGER", 2**63), ("DATE", "2031-02-30"),
     ("REAL", "much"), ("BOOLEAN", 2), ("TEXT", True), ("BLOB", "***"), ("DECIMAL(5,2)", "")],
)  # fmt: skip
def test_what_the_declaration_excludes_is_refused(declared: str, value: object) -> None:
    with pytest.raises(UnfitValue):
        matching(declared, [], {"eq": [value]})


def test_a_pattern_that_would_end_early_is_unfit() -> None:
    """SQLite reads ``%`` out of ``%\\0x``, and the empty text out of ``\\0``."""
    assert matching("TEXT", ["", "a"], {"like": ["a"]}) == ["a"]
    for pattern in ("\0", "%\0x"):
        with pytest.raises(UnfitValue):
            matching("TEXT", ["", "a"], {"like": [pattern]})


def test_a_pattern_is_not_so_long_that_one_cell_takes_minutes() -> None:
    text = "a" * 999
    assert matching("TEXT", [text], {"like": [f"{text}%"]}) == [text]
    with pytest.raises(UnfitValue):
        matching("TEXT", [text], {"like": [f"{text}a%"]})
