"""Which table a name means, and how names are written (spec datasources 7, 19.1; cases 10, 11)."""

import re

import hypothesis
import pytest
from hypothesis import strategies as st

from fetcher.datasources.mysql.names import identifier, meant_tables, normalized

TABLES = ("Users", "users", "runs", "a.b", "shop.orders", 'we"ird', "Über")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("runs", ("runs",)),
        ("Runs", ("runs",)),
        ("users", ("users",)),
        ("USERS", ("Users", "users")),
        ("shop.runs", ("runs",)),
        ("SHOP.RUNS", ("runs",)),
        ("other.runs", ()),
        ("shop.orders", ("shop.orders",)),
        ("orders", ()),
        ("a.b", ("a.b",)),
        ("shop.a.b", ("a.b",)),
        ("b", ()),
        ('WE"IRD', ('we"ird',)),
        ("über", ("Über",)),
        ("", ()),
        ("missing", ()),
    ],
)
def test_exact_wins_then_what_differs_in_case_alone(name: str, meant: tuple[str, ...]) -> None:
    assert meant_tables(name, "shop", TABLES) == meant


@hypothesis.given(st.text(max_size=20), st.text(max_size=20))
def test_no_name_ends_its_quotes(first: str, second: str) -> None:
    found = re.fullmatch(r"`((?:[^`]|``)*)`\.`((?:[^`]|``)*)`", identifier(first, second))
    assert found is not None
    assert [part.replace("``", "`") for part in found.groups()] == [first, second]


def test_requested_names_are_sorted_and_once() -> None:
    assert normalized(None) is None
    assert normalized(["b", "a", "b"]) == ("a", "b")
