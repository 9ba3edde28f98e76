"""The request's mapping: spec engine 17.1 at its end."""

import pytest

from fetcher.compat import normalized_request
from fetcher_engine.errors import EngineError, ErrorCategory


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
        {"pg": "POSTGRESQL", "ora": "ORACLE", "lite": "SQLITE"},
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
            {"db": "POSTGRESQL"},
        )
        assert fields == {"db": {"users": ("a", "b", "c")}}
        assert filters == {
            "db": {"users": {"x": {"eq": (1,)}, "y": {"eq": (2,)}, "z": {"eq": (3,)}}}
        }


def test_fields_that_become_one_are_asked_once() -> None:
    fields, _ = normalized_request({"db": {"t": ["Id", "ID", "n"]}}, {}, {"db": "ORACLE"})
    assert fields == {"db": {"T": ("ID", "N")}}


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
        normalized_request({"db": {"t": ["f"]}}, {"db": tables}, {"db": source_type})
    error = refused.value
    assert (error.category, error.source) == (ErrorCategory.VALIDATION, "db")
    assert (error.table, error.column) in {("t", "f"), ("T", "F")}
