"""Limits of a plan, and what a request may lower (spec 21.8, 7)."""

from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import ErrorCategory, FailureType, Limits

from .loops import every_loop
from .planning import a_host, plan
from .refusals import refuses

pytestmark = every_loop

VALIDATION = ErrorCategory.VALIDATION


def test_oversized_request_costs_no_more_look_ups_than_its_limit_and_one() -> None:
    names = [f"c{index:02}" for index in range(12)]
    host = a_host(*names, limits=Limits(max_datasources=2))
    with refuses(
        VALIDATION, "datasource count exceeds the configured maximum: limits.maxDatasources"
    ):
        plan(host, {name: {"t1": ["a"]} for name in names})
    assert host.store.calls == ["find_connection"] * 3


LIMITS = Limits(max_tables_per_datasource=1, max_fields_per_table=2)


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"a": {"t1": ["a"], "t2": ["a"]}}, {}),
        ({"a": {"t1": ["a", "b", "c"]}}, {}),
        ({"a": {"t1": ["a"]}}, {"a": {"t1": {"a": 1, "b": 1, "c": 1}}}),
    ],
)
def test_count_above_a_limit_fails_the_plan(fields: Any, filters: Any) -> None:
    with refuses(VALIDATION, "extraction request failed schema validation") as caught:
        plan(a_host(limits=LIMITS), fields, filters=filters)
    assert {f.type for f in caught.value.failures} == {FailureType.LIMIT_EXCEEDED}


def test_counts_exactly_at_their_limits_plan() -> None:
    filters = {"a": {"t1": {"a": 1, "b": 1}}}
    planned = plan(
        a_host(limits=replace(LIMITS, max_datasources=1)),
        {"a": {"t1": ["a", "b"]}},
        filters=filters,
    )
    assert len(planned.steps) == 1


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("max_datasources", "maxDatasources"),
        ("max_tables_per_datasource", "maxTablesPerDatasource"),
        ("max_fields_per_table", "maxFieldsPerTable"),
        ("max_concurrency", "maxConcurrency"),
        ("timeout", "timeout"),
        ("max_result_bytes", "maxResultBytes"),
    ],
)
def test_override_above_a_ceiling_is_refused_before_anything_is_asked(name: str, path: str) -> None:
    host = a_host()
    raised: dict[str, Any] = {name: getattr(Limits.defaults(), name) + 1}
    with refuses(VALIDATION, f"limit override exceeds the configured maximum: limits.{path}"):
        plan(host, {"a": {"t1": ["a"]}}, overrides=Limits(**raised))
    assert (host.store.calls, host.close_counts()) == ([], [])
    assert host.engine.limits == Limits.defaults()


@pytest.mark.parametrize("value", [0, -1])
def test_override_of_zero_or_less_inherits(value: int) -> None:
    overrides = Limits(max_result_bytes=value, max_concurrency=value, timeout=value)
    planned = plan(a_host(), {"a": {"t1": ["a"]}}, overrides=overrides)
    assert planned.limits == Limits.defaults()


def test_connectors_hard_limits_reach_the_plan_and_no_override_changes_them() -> None:
    given = {"POSTGRESQL": 1000}
    host = a_host(limits=Limits(connector_hard_limits=given))
    given["POSTGRESQL"] = 1
    overrides = Limits(connector_hard_limits={"POSTGRESQL": 2, "MYSQL": 3})
    planned = plan(host, {"a": {"t1": ["a"]}}, overrides=overrides)
    assert dict(planned.limits.connector_hard_limits) == {"POSTGRESQL": 1000}


def test_override_lowers_the_plans_limits_alone() -> None:
    host = a_host()
    planned = plan(host, {"a": {"t1": ["a"]}}, overrides=Limits(max_result_bytes=1024, timeout=5))
    assert planned.limits == replace(Limits.defaults(), max_result_bytes=1024, timeout=5)
    assert host.engine.limits == Limits.defaults()


def test_override_of_a_count_is_enforced() -> None:
    with refuses(VALIDATION, "extraction request failed schema validation"):
        plan(a_host(), {"a": {"t1": ["a", "b"]}}, overrides=Limits(max_fields_per_table=1))
