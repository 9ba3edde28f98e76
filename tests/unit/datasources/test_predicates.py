"""What a condition means, before any database's words (spec datasources 9.2)."""

from collections.abc import Mapping
from decimal import Decimal

import pytest
from psycopg import sql

from fetcher.datasources.postgresql.filters import predicate_sql
from fetcher.datasources.postgresql.types import ColumnType, Kind
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    MalformedCondition,
    Membership,
    NullCheck,
    Predicate,
    predicates_of,
)


@pytest.mark.parametrize(
    ("condition", "predicates"),
    [
        ({"eq": ["a"]}, (Membership(("a",), with_null=False, negated=False),)),
        ({"eq": [None]}, (Membership((), with_null=True, negated=False),)),
        ({"in": []}, (Membership((), with_null=False, negated=False),)),
        ({"nin": ["a", None]}, (Membership(("a",), with_null=True, negated=True),)),
        ({"ne": ["a", "b"]}, (Membership(("a", "b"), with_null=False, negated=True),)),
        (
            {"gt": [1], "lte": [Decimal("2.5")]},
            (Comparison(">", 1), Comparison("<=", Decimal("2.5"))),
        ),
        ({"lte": [2], "gt": [1]}, (Comparison(">", 1), Comparison("<=", 2))),
        ({"between": [1, 2]}, (Between(1, 2),)),
        ({"like": ["a%", "b\\"]}, (Like(("a%", "b\\\\")),)),
        ({"like": ["b\\\\"]}, (Like(("b\\\\",)),)),
        ({"is_null": [True]}, (NullCheck(is_null=True),)),
        ({"is_null": [False]}, (NullCheck(is_null=False),)),
        ({"not_null": [True]}, (NullCheck(is_null=False),)),
    ],
)
def test_operators_become_predicates_in_a_fixed_order(
    condition: Mapping[str, list[object]], predicates: tuple[Predicate, ...]
) -> None:
    assert predicates_of(condition) == predicates


@pytest.mark.parametrize(
    "condition",
    [
        None,
        {},
        "eq",
        {"equals": [1]},
        {"eq": 1},
        {"eq": "text"},
        {"gt": []},
        {"gt": [1, 2]},
        {"gt": [None]},
        {"between": [10]},
        {"between": [1, 2, 3]},
        {"between": [1, None]},
        {"like": []},
        {"like": [5]},
        {"is_null": []},
        {"is_null": ["yes"]},
    ],
)
def test_what_is_no_condition_is_refused(condition: object) -> None:
    with pytest.raises(MalformedCondition):
        predicates_of(condition)


def test_values_do_not_show_in_a_representation() -> None:
    (predicate,) = predicates_of({"eq": ["canary"]})
    assert "canary" not in repr(predicate)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"in": []}, "false"),
        ({"nin": []}, "true"),
        ({"nin": ["a", None]}, """("x" NOT IN ('a') AND "x" IS NOT NULL)"""),
        ({"in": ["a", None]}, """("x" IN ('a') OR "x" IS NULL)"""),
        ({"eq": ["open"]}, """("x" IN ('open'))"""),
        ({"eq": ["open", "late"]}, """("x" IN ('open', 'late'))"""),
        ({"eq": [None]}, """("x" IS NULL)"""),
        ({"ne": [None]}, """("x" IS NOT NULL)"""),
        ({"ne": ["a", "b"]}, """("x" NOT IN ('a', 'b'))"""),
        ({"nin": ["a"]}, """("x" NOT IN ('a'))"""),
        ({"between": ["10", "20"]}, """("x" >= '10' AND "x" <= '20')"""),
        ({"gt": ["100"], "lte": ["500"]}, """"x" > '100' AND "x" <= '500'"""),
        ({"like": ["%ana%"]}, """("x" LIKE '%ana%' ESCAPE '\\')"""),
        ({"eq": ['O\'Hara "x"; DROP']}, """("x" IN ('O''Hara "x"; DROP'))"""),
    ],
)
def test_conditions_become_sql(condition: Mapping[str, list[object]], text: str) -> None:
    column = sql.Identifier("x")
    found = [
        predicate_sql(column, ColumnType(Kind.TEXT), each).as_string()
        for each in predicates_of(condition)
    ]
    assert " AND ".join(found) == text
