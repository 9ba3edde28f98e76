"""Rows of changing shape, so many that the kind of a column is guessed by its first values."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest

from fetcher_engine import EngineError, RowEncoder

from .test_encoding_rows import Ratio, Text, encode, plain_rows


class Size(IntEnum):
    BIG = 3


USUAL: list[list[Any]] = [
    [7, -1, 10**25],
    ["a", 'q"', "東\n", ""],
    [True, False],
    [None],
    [1.0, -0.0, 2.5, 10.05, 100.0, 1e15],
    [Decimal("1.50")],
    [[1, "a"], []],
]
ODD: list[Any] = [
    *(None, True, False, 1, 0, 1.0, 1.5, 1e-7, 1e22, math.nan, math.inf, -math.inf, "x", 'q"'),
    *(Size.BIG, Text("é"), Ratio(2.0), Decimal(1), {"b": 1.0, "a": [None]}, [], (), b"\x00"),
    datetime(2031, 4, 5, tzinfo=UTC),
]


def rows_of(usual: list[Any], rest: list[Any]) -> list[dict[str, Any]]:
    """64 rows, of which each has a gap where another has none."""
    values = [usual[n % len(usual)] for n in range(64 - len(rest))] + rest
    rows = [{"z": n, "m": value, "a": value} for n, value in enumerate(values)]
    for n, row in enumerate(rows):
        if n % 3 == 0:
            del row["m"]
        if n % 4 == 1:
            del row["a"]
    return rows


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("usual", USUAL, ids=repr)
def test_a_value_of_another_kind_than_those_before_it(usual: list[Any], odd: Any) -> None:
    for rest in ([odd, odd], [odd, odd, usual[0], odd, usual[0]]):
        rows = rows_of(usual, rest)
        assert encode(rows) == plain_rows(rows)
        assert encode(rows[::-1]) == plain_rows(rows[::-1])


@pytest.mark.parametrize("usual", USUAL, ids=repr)
def test_a_gap_after_many_values(usual: list[Any]) -> None:
    rows = [{"m": usual[n % len(usual)], "z": n} for n in range(60)]
    for at in (20, 59):
        without = [*rows[:at], {"z": -1}, *rows[at + 1 :]]
        assert encode(without) == plain_rows(without)


@pytest.mark.parametrize("usual", USUAL, ids=repr)
def test_a_column_that_first_comes_after_many_rows(usual: list[Any]) -> None:
    rows: list[dict[str, Any]] = [{"z": n} for n in range(40)]
    rows += [{"z": n, "m": usual[n % len(usual)]} for n in range(40)]
    assert encode(rows) == plain_rows(rows)


def test_columns_come_and_go_between_slices() -> None:
    def shape(first: int) -> list[dict[str, Any]]:
        wanted = [f"c{first + at}" for at in range(6)]
        return [{k: n for k in wanted if (n + int(k[1:])) % 3} for n in range(700)]

    rows = [row for first in (0, 0, 3, 40, 1, 80, 2) for row in shape(first)]
    rows += [{f"only here {n}": n} for n in range(600)]
    rows += shape(0)
    assert encode(rows) == plain_rows(rows)


def test_a_name_that_is_no_plain_text_costs_the_later_rows_nothing() -> None:
    odd: list[dict[str, Any]] = [{Text("b"): 1, "a": 2}, {"c": 1}] * 300
    rows = odd + [{"a": n, "b": 1} if n % 2 else {"b": n} for n in range(900)]
    assert encode(rows) == plain_rows(rows)


def test_a_text_that_is_no_unicode_names_its_column() -> None:
    rows: list[dict[str, Any]] = [{"a": "x", "b": "y"} if n % 3 else {"b": "y"} for n in range(60)]
    for column in ("a", "b"):
        broken = [*rows, {column: "\ud800"}]
        with pytest.raises(EngineError) as caught:
            list(RowEncoder(source="s", table="t").encode(broken))
        assert (caught.value.reason, caught.value.column) == ("invalid_text", column)
