"""Ceilings that a host may set on what strangers send (spec 7)."""

from typing import Any

import pytest

from fetcher_engine import (
    Engine,
    ErrorCategory,
    ExtractionRequest,
    RequestCeilings,
)
from fetcher_engine.memory import MemoryRegistry

from .hosts import TENANT, Host, host_of
from .loops import every_loop, run
from .refusals import refuses

VALIDATION = ErrorCategory.VALIDATION
FIELDS = {"a": {"t": ["x"]}}


def plan(ceilings: RequestCeilings | None, request: dict[str, Any]) -> Host:
    host = host_of({"a": {"t": [{"x": 1, "y": 1}]}}, request_ceilings=ceilings)
    wanted = ExtractionRequest(**{"mapped_fields": FIELDS, **request})
    run(host.engine.plan_extraction(TENANT, wanted))
    return host


@every_loop
@pytest.mark.parametrize(
    ("name", "path", "at", "above"),
    [
        (
            "max_filter_values",
            "limits.maxFilterValues",
            {"filters": {"a": {"t": {"x": {"in": [1, 2]}, "y": {"eq": [1]}}}}},
            {"filters": {"a": {"t": {"x": {"in": [1], "gt": [1], "lt": [2]}}}}},
        ),
        (
            "max_filter_fields",
            "limits.maxFilterFields",
            {"filters": {"a": {"t": {"x": {"eq": [1]}, "y": {"eq": [1]}}}}},
            {"filters": {"a": {"t": {"x": {"eq": [1]}, "y": {"eq": [1]}, "z": {"eq": [1]}}}}},
        ),
        (
            "max_metadata_keys",
            "limits.maxMetadataKeys",
            {"metadata": {"source": "b", "k": 1}},
            {"metadata": {"source": "b", "k": 1, "l": 1}},
        ),
    ],
)
def test_what_is_above_a_ceiling_is_refused_and_named(
    name: str, path: str, at: dict[str, Any], above: dict[str, Any]
) -> None:
    ceilings = RequestCeilings(**{name: 2})
    plan(ceilings, at)
    with refuses(VALIDATION, f"extraction request exceeds the configured maximum: {path}"):
        plan(ceilings, above)


@every_loop
@pytest.mark.parametrize(
    "request_",
    [
        {"mapped_fields": {"a" * 9: {"t": ["x"]}}},
        {"mapped_fields": {"a": {"t" * 9: ["x"]}}},
        {"mapped_fields": {"a": {"t": ["x", "x" * 9]}}},
        {"filters": {"a": {"t": {"x" * 9: {"eq": [1]}}}}},
    ],
    ids=["config name", "table", "field", "filtered field"],
)
def test_name_that_is_too_long_is_refused_before_the_store_is_asked(
    request_: dict[str, Any],
) -> None:
    host = host_of({"a": {"t": [{"x": 1}]}}, request_ceilings=RequestCeilings(max_name_length=8))
    request = ExtractionRequest(**{"mapped_fields": FIELDS, **request_})
    text = "extraction request exceeds the configured maximum: limits.maxNameLength"
    with refuses(VALIDATION, text) as caught:
        run(host.engine.plan_extraction(TENANT, request))
    assert host.store.calls == []
    assert caught.value.source in (None, "a")
    assert caught.value.table in (None, "t")


@every_loop
@pytest.mark.parametrize("ceilings", [None, RequestCeilings()])
def test_without_ceilings_nothing_is_counted(ceilings: RequestCeilings | None) -> None:
    values = list(range(5000))
    host = plan(
        ceilings,
        {
            "filters": {"a": {"t": {"x": {"in": values}}}},
            "metadata": {f"k{n}": n for n in range(200)},
        },
    )
    assert host.store.calls == ["find_connection"]


def test_recommended_ceilings() -> None:
    assert RequestCeilings.recommended() == RequestCeilings(
        max_filter_values=1000, max_filter_fields=1000, max_name_length=512, max_metadata_keys=64
    )


@pytest.mark.parametrize("value", [-1, True, 1.5, "8", None])
def test_ceiling_that_is_no_count_is_refused(value: Any) -> None:
    with refuses(VALIDATION, "limit is not a number: limits.maxFilterValues"):
        RequestCeilings(max_filter_values=value)


def test_other_object_in_the_place_of_ceilings_is_refused() -> None:
    with refuses(VALIDATION, "request ceilings is invalid"):
        Engine(MemoryRegistry(), request_ceilings={"max_filter_values": 1})  # type: ignore[arg-type]
