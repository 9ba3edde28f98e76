"""Filters: what a value can be in BSON, and patterns (spec datasources 9.3)."""

import re
from decimal import Decimal

import pytest
from bson import DatetimeMS, Decimal128, Int64, ObjectId

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.mongodb.filters import clause_of, like_pattern
from fetcher.datasources.predicates import Between, Comparison, Like, Membership, NullCheck

NOTHING: frozenset[str] = frozenset()


def forms(value: object, *types: str) -> list[object]:
    wanted = Membership((value,), with_null=False, negated=False)  # type: ignore[arg-type]
    clause = clause_of("f", frozenset(types), wanted)
    assert clause is not None
    found: list[object] = clause["f"]["$in"]
    return found


@pytest.mark.parametrize(
    ("pattern", "expression"),
    [
        ("%x%", "x"),
        ("x%", "^x"),
        ("%x", r"x$(?!\n)"),
        ("x", r"^x$(?!\n)"),
        ("a_b", r"^a.b$(?!\n)"),
        ("%", ""),
        ("%%", ""),
        ("a%%b", r"^a.*b$(?!\n)"),
        ("%%%a%_%%", "a.*."),
        ("a.b%", r"^a\.b"),
        (r"\%\_\\", r"^\%\_\\$(?!\n)"),
        (r"\%%", r"^\%"),
        (r"%\%", r"\%$(?!\n)"),
        ("é\0", r"^é\x00$(?!\n)"),
        ("", r"^$(?!\n)"),
    ],
)
def test_like_is_an_escaped_anchored_expression(pattern: str, expression: str) -> None:
    assert like_pattern(pattern) == expression


def test_a_newline_at_the_end_is_a_character() -> None:
    assert re.search(like_pattern("x"), "x\n", re.DOTALL) is None
    assert re.search(like_pattern("x_"), "x\n", re.DOTALL)


def test_a_value_stands_for_every_type_it_can_have() -> None:
    hexadecimal = "64b7f0c2a1d3e4f5a6b7c8d9"
    assert forms(hexadecimal)[:2] == [hexadecimal, ObjectId(hexadecimal)]
    assert forms("2031-01-01", "date") == ["2031-01-01", DatetimeMS(1_924_992_000_000)]
    assert forms("2031-01-01T01:00:00.5+01:00", "date")[1] == DatetimeMS(1_924_992_000_500)
    assert len(forms("00010203-0405-0607-0809-0a0b0c0d0e0f", "binData")) == 5
    assert forms(Decimal("0.1")) == [0.1, Decimal128("0.1")]
    assert forms(Decimal("7.0"), "decimal") == [Int64(7)]
    assert forms(2**63) == [2.0**63, Decimal128(str(2**63))]
    assert forms(-(2**63) - 1) == [Decimal128(str(-(2**63) - 1))]
    assert forms(2**100) == [2.0**100, Decimal128(str(2**100))]
    assert forms(Decimal("9007199254740992.5")) == [Decimal128("9007199254740992.5")]
    assert forms(5, "string") == ["5"]
    assert forms(1, "boolean") == forms("true", "boolean") == [True]
    assert forms("12.50", "number") == ["12.50", 12.5, Decimal128("12.50")]
    assert forms("12.50", "number", "string") == ["12.50"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "number"),
        (True, "string"),
        (True, "number"),
        (2, "boolean"),
        ("perhaps", "boolean"),
        (Decimal("1e400"), "number"),
        ("2031-02-30", "date"),
        ("2031-01-01T00:00:00.0001Z", "date"),
        ("zz", "objectId"),
        ("\ud800", "string"),
        (10**40 + 1, "number"),
        (2**1024 - 2**970, "number"),
        (2**1024 - 2**970, "decimal"),
    ],
)
def test_a_value_that_the_field_cannot_hold_is_unfit(value: object, kind: str) -> None:
    with pytest.raises(UnfitValue):
        forms(value, kind)


def test_the_last_day_of_a_range_of_dates_is_whole() -> None:
    clause = clause_of("f", frozenset({"date"}), Between("2031-01-01", "2031-01-01"))
    assert clause is not None
    lower, upper = clause["$and"]
    assert {"f": {"$gte": DatetimeMS(1_924_992_000_000)}} in lower["$or"]
    assert {"f": {"$lte": DatetimeMS(1_924_992_000_000 + 86_399_999)}} in upper["$or"]


def test_nulls_and_nothing() -> None:
    assert clause_of("f", NOTHING, NullCheck(is_null=True)) == {"f": {"$eq": None}}
    assert clause_of("f", NOTHING, NullCheck(is_null=False)) == {"f": {"$ne": None}}
    nothing = Membership((), with_null=False, negated=False)
    assert clause_of("f", NOTHING, nothing) == {"f": {"$in": []}}
    mixed = Membership(("s", 1, True), with_null=True, negated=False)
    assert clause_of("f", NOTHING, mixed) == {"f": {"$in": ["s", 1, True, None]}}
    everything = Membership((), with_null=False, negated=True)
    assert clause_of("f", NOTHING, everything) is None
    assert clause_of("f", NOTHING, Membership(("a",), with_null=True, negated=True)) == {
        "f": {"$nin": ["a", None]}
    }


def test_what_has_no_order_or_no_text_is_unfit() -> None:
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    with pytest.raises(UnfitValue):
        clause_of("f", frozenset({"number"}), Like(("1%",)))
    with pytest.raises(UnfitValue):
        clause_of("f", frozenset({"binData"}), Comparison(">", uuid))


def test_a_fraction_between_doubles_bounds_the_integers_beside_it() -> None:
    fraction = Decimal("9007199254740992.5")
    clause = clause_of("f", frozenset({"number"}), Comparison("<", fraction))
    assert clause is not None
    integers, decimals = clause["$or"]
    assert integers == {"f": {"$lt": Int64(9007199254740993), "$not": {"$type": "decimal"}}}
    assert decimals == {"f": {"$lt": Decimal128(fraction), "$type": "decimal"}}


@pytest.mark.parametrize("negated", [False, True])
def test_a_decimal_does_not_equal_the_double_of_another_number(*, negated: bool) -> None:
    """MongoDB compares exactly: 10.5 the double with 10.50 the decimal."""
    close = "10.50000000000000000000000000001"
    wanted = Membership((Decimal(close), Decimal("0.1"), 7), with_null=False, negated=negated)
    clause = clause_of("f", frozenset({"number", "decimal"}), wanted)
    exact = [Decimal128(close), 0.1, Decimal128("0.1"), Int64(7)]
    assert clause == {
        "$nor" if negated else "$or": [
            {"f": {"$in": exact}},
            {"f": {"$in": [10.5], "$not": {"$type": "decimal"}}},
        ]
    }
    assert forms("10.5", "number") == ["10.5", 10.5, Decimal128("10.5")]
    assert forms("NaN", "number") == ["NaN", pytest.approx(float("nan"), nan_ok=True)]
