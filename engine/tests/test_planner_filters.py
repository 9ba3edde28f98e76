"""Filters never vanish (spec 21.8, as amended by design section 7)."""

from typing import Any

import pytest

from fetcher_engine import ErrorCategory

from .loops import every_loop
from .planning import a_host, plan
from .refusals import refuses

pytestmark = every_loop

VALIDATION = ErrorCategory.VALIDATION


def test_filters_go_to_their_step() -> None:
    leaf = {"in": ["open"]}
    planned = plan(
        a_host(), {"a": {"t1": ["a"]}, "z": {"t1": ["a"]}}, filters={"a": {"t1": {"b": leaf}}}
    )
    assert planned.steps[0].filters == {"t1": {"b": leaf}}
    assert planned.steps[0].filters["t1"]["b"] is leaf
    assert "filters" not in planned.steps[1].to_public_dict()


@pytest.mark.parametrize(
    "filters",
    [
        "oops",
        {"a": "oops"},
        {"a": None},
        {"a": {"t1": "oops"}},
        {"a": {"t1": ["b"]}},
        {"a": {"t1": {7: {"eq": [1]}}}},
        {"a": {"t1": {"b": None}}},
        {"a": {"t1": {"b": {}}}},
        {"a": {"t1": {"b": []}}},
        {"a": {"t1": {"b": {"in": []}}}},
        {"a": {"t1": {"b": {"eq": [1], "in": ()}}}},
    ],
)
def test_malformed_filter_is_refused_and_never_dropped(filters: Any) -> None:
    """Design section 7; the reference extracted unfiltered."""
    with refuses(VALIDATION, "extraction request has malformed filters"):
        plan(a_host(), {"a": {"t1": ["a"]}}, filters=filters)


@pytest.mark.parametrize("filters", [{"a": {"t9": {"b": 1}}}, {"q": {"t1": {"b": 1}}}])
def test_filter_on_what_is_not_asked_for_is_refused(filters: Any) -> None:
    """Design section 7 replaces spec 21.8, where such a filter was stripped."""
    host = a_host()
    with refuses(VALIDATION, "extraction request filters a table that is not requested"):
        plan(host, {"a": {"t1": ["a"]}}, filters=filters)
    assert host.store.calls == []


def test_table_whose_filters_hold_nothing_has_none() -> None:
    planned = plan(a_host(), {"a": {"t1": ["a"]}}, filters={"a": {"t1": {}}})
    assert planned.steps[0].filters == {}
