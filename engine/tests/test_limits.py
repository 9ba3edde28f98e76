"""Limits (spec 7, 21.1, 21.8)."""

from typing import Any

import pytest

from fetcher_engine import ErrorCategory, Limits

from .refusals import refuses

FIELDS = {
    "max_datasources": "maxDatasources",
    "max_tables_per_datasource": "maxTablesPerDatasource",
    "max_fields_per_table": "maxFieldsPerTable",
    "max_concurrency": "maxConcurrency",
    "timeout": "timeout",
    "max_result_bytes": "maxResultBytes",
}


def limits_with(name: str, value: Any) -> Limits:
    return Limits(**{name: value})


def test_defaults() -> None:
    assert Limits.defaults() == Limits(
        max_datasources=10,
        max_tables_per_datasource=20,
        max_fields_per_table=50,
        max_concurrency=4,
        timeout=300,
        max_result_bytes=268_435_456,
    )


def test_zero_is_told_from_hard_limits_alone() -> None:
    assert Limits().is_zero
    assert not Limits(connector_hard_limits={"POSTGRESQL": 1000}).is_zero


def test_partial_limits_are_merged_over_the_defaults() -> None:
    merged = Limits(max_result_bytes=10, max_concurrency=-1).merged_over_defaults()
    assert merged.max_result_bytes == 10
    assert merged.max_concurrency == 4
    assert merged.max_datasources == 10


def test_hard_limits_are_copied_and_cannot_be_changed() -> None:
    given = {"POSTGRESQL": 1000}
    limits = Limits(connector_hard_limits=given).merged_over_defaults()
    given["POSTGRESQL"] = 1
    assert dict(limits.effective(Limits(timeout=5)).connector_hard_limits) == {"POSTGRESQL": 1000}
    with pytest.raises(TypeError):
        limits.connector_hard_limits["POSTGRESQL"] = 2  # type: ignore[index]  # the point of the test


@pytest.mark.parametrize(("name", "path"), FIELDS.items())
def test_override_above_the_ceiling_is_refused_by_name(name: str, path: str) -> None:
    ceiling = getattr(Limits.defaults(), name)
    with refuses(
        ErrorCategory.VALIDATION,
        f"limit override exceeds the configured maximum: limits.{path}",
    ):
        Limits.defaults().effective(limits_with(name, ceiling + 1))


def test_first_field_in_order_is_the_one_reported() -> None:
    overrides = Limits(max_result_bytes=10**12, max_fields_per_table=51)
    with refuses(ErrorCategory.VALIDATION) as caught:
        Limits.defaults().effective(overrides)
    assert caught.value.message.endswith("limits.maxFieldsPerTable")


@pytest.mark.parametrize("name", FIELDS)
def test_override_equal_to_the_ceiling_is_taken_and_a_lower_one_lowers(name: str) -> None:
    defaults = Limits.defaults()
    ceiling = getattr(defaults, name)
    assert defaults.effective(limits_with(name, ceiling)) == defaults
    assert getattr(defaults.effective(limits_with(name, 1)), name) == 1


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", FIELDS)
def test_override_of_zero_or_less_inherits(name: str, value: int) -> None:
    assert Limits.defaults().effective(limits_with(name, value)) == Limits.defaults()


def test_no_override_changes_nothing() -> None:
    assert Limits.defaults().effective(None) == Limits.defaults()


@pytest.mark.parametrize("value", [True, "10", 1.5, None])
def test_count_that_is_no_integer_is_refused(value: object) -> None:
    with refuses(ErrorCategory.VALIDATION, "limit is not a number: limits.maxDatasources"):
        limits_with("max_datasources", value)


@pytest.mark.parametrize("value", [True, "5", float("nan"), float("inf")])
def test_timeout_that_is_no_finite_number_is_refused(value: object) -> None:
    with refuses(ErrorCategory.VALIDATION, "limit is not a number: limits.timeout"):
        limits_with("timeout", value)


def test_json_names() -> None:
    limits = Limits(timeout=5, max_result_bytes=9, connector_hard_limits={"B": 2, "A": 1})
    assert limits.to_public_dict() == {
        "timeout": 5,
        "maxResultBytes": 9,
        "connectorHardLimits": {"A": 1, "B": 2},
    }
