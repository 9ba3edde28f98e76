"""Requests that make no plan (spec 21.8, as amended by design section 7)."""

from typing import Any

import pytest

from fetcher_engine import Engine, ErrorCategory, ExtractionRequest, Limits, TenantContext
from fetcher_engine.memory import MemoryConnectorFactory, MemoryRegistry, MemorySource

from .hosts import TENANT
from .loops import concurrency_of_the_round, every_loop, run
from .planning import SCHEMA, a_host, plan
from .refusals import refuses

pytestmark = every_loop

VALIDATION = ErrorCategory.VALIDATION


NOT_FOUND = ErrorCategory.NOT_FOUND
UNKNOWN = "extraction references an unknown datasource connection"


@pytest.mark.parametrize(
    "fields",
    [
        "text",
        {"a": "text"},
        {"a": {"t1": "text"}},
        {"a": {"t1": [1]}},
        {"a": {"t1": None}},
        {1: {}},
    ],
)
def test_malformed_fields_are_refused(fields: Any) -> None:
    with refuses(VALIDATION, "extraction request has malformed fields"):
        plan(a_host(), fields)


def test_empty_list_of_fields_is_refused() -> None:
    """Design section 7."""
    host = a_host()
    with refuses(VALIDATION, "extraction table selects no fields") as caught:
        plan(host, {"a": {"t2": ["a"], "t1": []}})
    assert (caught.value.source, caught.value.table) == ("a", "t1")
    assert host.close_counts() == []


def test_empty_list_of_fields_passes_where_the_source_gives_whole_documents() -> None:
    host = a_host()
    documents = MemoryConnectorFactory(MemorySource(schema=SCHEMA), requires_fields=False)
    host.registry.register("A", documents)
    assert plan(host, {"a": {"docs": []}}).steps[0].fields == {"docs": ()}


def test_engine_without_a_store_plans_nothing() -> None:
    engine = Engine(MemoryRegistry(), concurrency=concurrency_of_the_round())
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}})
    with refuses(VALIDATION, "connection store is not configured"):
        run(engine.plan_extraction(TENANT, request))


def test_request_without_fields() -> None:
    with refuses(VALIDATION, "extraction request has no mapped fields"):
        plan(a_host(), {})


def test_source_without_tables() -> None:
    with refuses(VALIDATION, "extraction datasource selects no tables") as caught:
        plan(a_host(), {"a": {}})
    assert caught.value.source == "a"


def test_blank_config_name_is_refused_before_any_look_up() -> None:
    host = a_host()
    with refuses(VALIDATION, "extraction request has a blank datasource config name"):
        plan(host, {" ": {"t1": ["a"]}, "a": {"t1": ["a"]}})
    assert host.store.calls == []


def test_unknown_name_and_another_tenants_name_give_the_same_error() -> None:
    host = a_host()
    host.add("theirs", TenantContext.new("other"))
    for name in ("gone", "theirs"):
        with refuses(NOT_FOUND, UNKNOWN) as caught:
            plan(host, {name: {"t1": ["a"]}})
        # the caller's own word, and nothing else
        assert {n: v for n, v in vars(caught.value).items() if v} == {
            "category": NOT_FOUND,
            "message": UNKNOWN,
            "source": name,
        }


def test_whose_a_name_is_comes_before_how_many_there_are() -> None:
    host = a_host("a", "b", "c", limits=Limits(max_datasources=1))
    host.add("aa", TenantContext.new("other"))
    with refuses(NOT_FOUND, UNKNOWN):
        plan(host, {name: {"t1": ["a"]} for name in ("a", "aa", "b")})


def test_each_name_is_looked_up_once() -> None:
    host = a_host()
    plan(host, {"a": {"t1": ["a"]}, "z": {"t1": ["a"]}})
    assert host.store.calls == ["find_connection"] * 2


@pytest.mark.parametrize(
    ("fields", "filters", "failure"),
    [
        ({"a": {"t9": ["a"]}}, {}, ("t9", "", "table_not_found")),
        ({"a": {"t1": ["nope"]}}, {}, ("t1", "nope", "field_not_found")),
        ({"a": {"t1": ["a"]}}, {"a": {"t1": {"nope": 1}}}, ("t1", "nope", "invalid_filter")),
    ],
)
def test_what_the_schema_lacks_fails_the_plan_and_is_named(
    fields: Any, filters: Any, failure: tuple[str, str, str]
) -> None:
    with refuses(VALIDATION, "extraction request failed schema validation") as caught:
        plan(a_host(), fields, filters=filters)
    assert [(f.table, f.field, str(f.type)) for f in caught.value.failures] == [failure]
    assert caught.value.source == "a"
