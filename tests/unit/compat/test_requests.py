"""The request's mapping: spec engine 17.1 at its end."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from fetcher.compat import SourceNames, normalized_request
from fetcher_engine import EngineError, ErrorCategory


def test_tables_and_fields_are_named_as_in_the_snapshot() -> None:
    fields, filters = normalized_request(
        {
            "pg": {"public.users": ["id", "Name"], "acct.inv": ["n"]},
            "ora": {"Accounts": ["id", "Bal"]},
            "lite": {"main.x": ["a"]},
            "unlisted": {"t": ["a"]},
        },
        {
            "pg": {"public.users": {"id": {"eq": (1,)}}},
            "ora": {"Accounts": {"bal": {"gt": (2,)}}},
        },
        {
            "pg": SourceNames("POSTGRESQL"),
            "ora": SourceNames("ORACLE"),
            "lite": SourceNames("SQLITE"),
        },
    )
    assert fields == {
        "pg": {"users": ("id", "Name"), "acct.inv": ("n",)},
        "ora": {"ACCOUNTS": ("ID", "BAL")},
        "lite": {"main.x": ("a",)},
        "unlisted": {"t": ("a",)},
    }
    assert filters == {
        "pg": {"users": {"id": {"eq": (1,)}}},
        "ora": {"ACCOUNTS": {"BAL": {"gt": (2,)}}},
    }


def test_tables_that_become_one_join_in_the_order_of_their_requested_names() -> None:
    asked = {
        "users": ["c", "a"],
        "public.users": ["b", "a"],
        "PUBLIC.users": ["a"],
    }
    for order in (asked, dict(reversed(asked.items()))):
        fields, filters = normalized_request(
            {"db": order},
            {
                "db": {
                    "users": {"x": {"eq": (1,)}, "y": {"eq": (2,)}},
                    "public.users": {"x": {"eq": (1,)}, "z": {"eq": (3,)}},
                }
            },
            {"db": SourceNames("POSTGRESQL")},
        )
        assert fields == {"db": {"users": ("a", "b", "c")}}
        assert filters == {
            "db": {"users": {"x": {"eq": (1,)}, "y": {"eq": (2,)}, "z": {"eq": (3,)}}}
        }


def test_fields_that_become_one_are_asked_once() -> None:
    fields, _ = normalized_request(
        {"db": {"t": ["Id", "ID", "n"]}}, {}, {"db": SourceNames("ORACLE")}
    )
    assert fields == {"db": {"T": ("ID", "N")}}


@pytest.mark.parametrize("everything", [["*"], ["*", "*"]])
def test_a_table_that_asks_for_all_fields_asks_for_all_of_what_it_joins(
    everything: list[str],
) -> None:
    """``*`` beside other names would be refused, and nobody asked for that."""
    for tables in ({"t": ["a"], "public.t": everything}, {"t": everything, "public.t": ["a"]}):
        fields, _ = normalized_request({"db": tables}, {}, {"db": SourceNames("POSTGRESQL")})
        assert fields == {"db": {"t": ("*",)}}


def test_a_star_beside_other_fields_of_one_table_stays_for_the_engine_to_refuse() -> None:
    fields, _ = normalized_request({"db": {"t": ["*", "a"]}}, {}, {})
    assert fields == {"db": {"t": ("*", "a")}}


def test_tables_of_two_schemas_stay_two_where_the_connection_names_a_schema() -> None:
    fields, filters = normalized_request(
        {"db": {"ops.runs": ["a"], "public.runs": ["b"], "runs": ["c"]}},
        {"db": {"ops.runs": {"a": {"eq": (1,)}}, "public.runs": {"a": {"eq": (2,)}}}},
        {"db": SourceNames("POSTGRESQL", "ops")},
    )
    assert fields == {"db": {"runs": ("a", "c"), "public.runs": ("b",)}}
    assert filters == {"db": {"runs": {"a": {"eq": (1,)}}, "public.runs": {"a": {"eq": (2,)}}}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"eq": (1,)}, {"eq": (True,)}),
        ({"eq": (1,)}, {"eq": (Decimal("1.0"),)}),
        ({"eq": (Decimal("1.0"),)}, {"eq": (Decimal("1.00"),)}),
        ({"eq": (1,)}, {"in": (1,)}),
        ({"eq": (1,)}, {"eq": (1, 1)}),
        ({"eq": (1,)}, {"eq": (1,), "ne": (2,)}),
        ({"eq": ("1",)}, {"eq": (1,)}),
    ],
)
def test_conditions_that_python_takes_for_equal_may_differ(
    one: dict[str, tuple[object, ...]], other: dict[str, tuple[object, ...]]
) -> None:
    """On a text column they find different rows; the first would win and the other vanish."""
    with pytest.raises(EngineError) as refused:
        normalized_request(
            {"db": {"t": ["f"]}},
            {"db": {"t": {"f": one}, "public.t": {"f": other}}},
            {"db": SourceNames("POSTGRESQL")},
        )
    assert refused.value.category is ErrorCategory.VALIDATION


def test_the_order_of_operators_makes_no_difference() -> None:
    spelled: dict[str, dict[str, dict[str, Sequence[int]]]] = {
        "t": {"f": {"gt": (1,), "lt": (9,)}},
        "public.t": {"f": {"lt": [9], "gt": [1]}},
    }
    _, filters = normalized_request({}, {"db": spelled}, {"db": SourceNames("POSTGRESQL")})
    assert filters == {"db": {"t": {"f": {"lt": [9], "gt": [1]}}}}


@pytest.mark.parametrize(
    ("source_type", "tables"),
    [
        ("POSTGRESQL", {"t": {"f": {"eq": (1,)}}, "public.t": {"f": {"eq": (2,)}}}),
        ("ORACLE", {"t": {"f": {"eq": (1,)}, "F": {"ne": (1,)}}}),
    ],
)
def test_two_different_conditions_on_one_field_are_refused(
    source_type: str, tables: dict[str, dict[str, dict[str, tuple[int, ...]]]]
) -> None:
    with pytest.raises(EngineError) as refused:
        normalized_request({"db": {"t": ["f"]}}, {"db": tables}, {"db": SourceNames(source_type)})
    error = refused.value
    assert (error.category, error.source) == (ErrorCategory.VALIDATION, "db")
    assert (error.table, error.column) in {("t", "f"), ("T", "F")}
