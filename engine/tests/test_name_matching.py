"""Names are meant exactly first, then by the only one that ignores case."""

from typing import Any

import pytest

from fetcher_engine import (
    AmbiguousTable,
    EngineError,
    ErrorCategory,
    ExtractionPlan,
    ExtractionRequest,
    SchemaSnapshot,
    TableSnapshot,
)
from fetcher_engine.memory import MemorySource

from .hosts import TENANT, Host
from .loops import every_loop, run
from .refusals import refuses

pytestmark = every_loop

TABLES = (
    TableSnapshot("Users", ("Id", "name", "NAME")),
    TableSnapshot("users", ("id",)),
    TableSnapshot("Orders", ("Total", "Straße")),
)


def plan(request: dict[str, Any], *, ignores_case: bool = True, **rest: Any) -> ExtractionPlan:
    source = MemorySource(schema=SchemaSnapshot("", TABLES, ignores_case=ignores_case))
    wanted = ExtractionRequest(mapped_fields={"a": request}, **rest)
    return run(Host({"a": source}).engine.plan_extraction(TENANT, wanted))


def failure_of(request: dict[str, Any], **rest: Any) -> tuple[str, str, str, str, tuple[str, ...]]:
    with refuses(ErrorCategory.VALIDATION, "extraction request failed schema validation") as caught:
        plan(request, **rest)
    (failure,) = caught.value.failures
    return (
        str(failure.type),
        failure.table,
        failure.field,
        failure.detail,
        failure.candidates,
    )


def test_exact_match_wins() -> None:
    made = plan({"Users": ["name"], "users": ["id"]})
    assert dict(made.steps[0].fields) == {"Users": ("name",), "users": ("id",)}


def test_unique_match_keeps_the_requests_table_and_takes_the_sources_field() -> None:
    made = plan({"ORDERS": ["TOTAL", "STRASSE", "total"]})
    assert dict(made.steps[0].fields) == {"ORDERS": ("Straße", "Total")}


def test_ambiguous_table_is_an_error() -> None:
    assert failure_of({"USERS": ["id"]}) == (
        "table_not_found",
        "USERS",
        "",
        "table name is ambiguous in datasource schema",
        ("Users", "users"),
    )


def test_connector_that_knows_more_tells_what_is_ambiguous() -> None:
    schema = SchemaSnapshot(
        "", TABLES, ignores_case=True, ambiguous=(AmbiguousTable("a.b", ("A.b", "a.B")),)
    )
    with refuses(ErrorCategory.VALIDATION, "extraction request failed schema validation") as caught:
        run(
            Host({"a": MemorySource(schema=schema)}).engine.plan_extraction(
                TENANT, ExtractionRequest(mapped_fields={"a": {"a.b": ["v"]}})
            )
        )
    assert [failure.to_public_dict() for failure in caught.value.failures] == [
        {
            "type": "table_not_found",
            "configName": "a",
            "table": "a.b",
            "detail": "table name is ambiguous in datasource schema",
            "candidates": ["A.b", "a.B"],
        }
    ]


def test_ambiguous_field_is_an_error() -> None:
    detail = "field name is ambiguous in table schema"
    assert failure_of({"Users": ["Name"]}) == (
        "field_not_found",
        "Users",
        "Name",
        detail,
        ("NAME", "name"),
    )
    filters = {"a": {"Users": {"Name": {"eq": [1]}}}}
    assert failure_of({"Users": ["Id"]}, filters=filters) == (
        "invalid_filter",
        "Users",
        "Name",
        detail,
        ("NAME", "name"),
    )


def test_filters_take_the_sources_spelling_too() -> None:
    made = plan({"orders": ["Total"]}, filters={"a": {"orders": {"TOTAL": {"gt": [1]}}}})
    assert {t: dict(leaves) for t, leaves in made.steps[0].filters.items()} == {
        "orders": {"Total": {"gt": [1]}}
    }


def test_two_conditions_on_one_field_in_two_spellings_are_refused() -> None:
    filters = {"a": {"Orders": {"TOTAL": {"gt": [1]}, "total": {"lt": [9]}}}}
    with refuses(ErrorCategory.VALIDATION, "extraction request has malformed filters") as caught:
        plan({"Orders": ["Total"]}, filters=filters)
    assert (caught.value.source, caught.value.table) == ("a", "Orders")


@pytest.mark.parametrize("request_", [{"ORDERS": ["Total"]}, {"Orders": ["total"]}])
def test_source_that_minds_case_is_asked_exactly(request_: dict[str, Any]) -> None:
    with pytest.raises(EngineError) as caught:
        plan(request_, ignores_case=False)
    assert caught.value.category is ErrorCategory.VALIDATION


def test_wildcard_of_a_table_in_another_case_is_expanded() -> None:
    assert dict(plan({"oRDERS": ["*"]}).steps[0].fields) == {"oRDERS": ("Straße", "Total")}
