"""From a request to a plan (spec 21.8, as amended by the design, sections 5 and 7)."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    ColumnSnapshot,
    ErrorCategory,
    ExtractionPlan,
    ExtractionRequest,
    FailureType,
    Limits,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectorFactory,
    MemorySchemaCache,
    MemorySource,
    run_trampoline,
)

from .hosts import TENANT, Host
from .refusals import SENTINEL, leaky, refuses

VALIDATION, NOT_FOUND = ErrorCategory.VALIDATION, ErrorCategory.NOT_FOUND
UNKNOWN = "extraction references an unknown datasource connection"
SCHEMA = SchemaSnapshot(
    "",
    (
        TableSnapshot("t1", ("a", "b", "c")),
        TableSnapshot("t2", ("a",)),
        TableSnapshot("docs", ("_id", "profile.name", "profile.mail")),
        TableSnapshot("sql", ("plain", "dotted.name"), (ColumnSnapshot("dotted.name", "text"),)),
    ),
)


def a_host(*names: str, cache: MemorySchemaCache | None = None, **options: Any) -> Host:
    sources = {name: MemorySource(schema=SCHEMA) for name in names or ("a", "z")}
    return Host(sources, options=options, cache=cache)


def plan(host: Host, mapped_fields: Any, **rest: Any) -> ExtractionPlan:
    request = ExtractionRequest(mapped_fields=mapped_fields, **rest)
    return run_trampoline(host.engine.plan_extraction(TENANT, request))


def test_steps_tables_and_fields_are_in_byte_order() -> None:
    planned = plan(a_host(), {"z": {"t2": ["a"], "t1": ["c", "a", "b"]}, "a": {"t1": ["a"]}})
    assert [(s.ordinal, s.config_name, s.tables) for s in planned.steps] == [
        (0, "a", ("t1",)),
        (1, "z", ("t1", "t2")),
    ]
    assert planned.steps[1].fields == {"t1": ("a", "b", "c"), "t2": ("a",)}


def test_byte_order_is_that_of_utf_8() -> None:
    names = ("z", "é", "A", "\U0001f600", "\uffee")
    schema = SchemaSnapshot("", (TableSnapshot("t", names),))
    planned = plan(Host({"s": MemorySource(schema=schema)}), {"s": {"t": list(names)}})
    assert planned.steps[0].fields["t"] == ("A", "z", "é", "\uffee", "\U0001f600")
    assert list(planned.steps[0].fields["t"]) == sorted(names, key=str.encode)


def shuffled(mapping: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    items = list(mapping.items())
    rng.shuffle(items)
    return {k: shuffled(v, rng) if isinstance(v, Mapping) else v for k, v in items}


@pytest.mark.parametrize("seed", range(50))
def test_equal_requests_give_equal_plans(seed: int) -> None:
    fields = {"z": {"t2": ["a"], "t1": ["c", "a"]}, "a": {"t1": ["b"], "docs": ["*"]}}
    filters = {"z": {"t1": {"a": {"eq": [1]}, "b": {"in": [2]}}}, "a": {"t1": {"c": {"ne": [3]}}}}
    rng = random.Random(seed)  # noqa: S311 - an order, no secret
    other = plan(a_host(), shuffled(fields, rng), filters=shuffled(filters, rng))
    one = plan(a_host(), fields, filters=filters)
    assert other == one
    assert json.dumps(other.to_public_dict()["steps"], sort_keys=True) == json.dumps(
        one.to_public_dict()["steps"], sort_keys=True
    )


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


def test_field_asked_for_twice_is_read_once() -> None:
    limits = Limits(max_fields_per_table=2)
    planned = plan(a_host(limits=limits), {"a": {"t1": ["b", "a", "b"]}})
    assert planned.steps[0].fields == {"t1": ("a", "b")}


@pytest.mark.parametrize(
    ("table", "expanded"),
    [
        ("t1", ("a", "b", "c")),
        ("docs", ("_id", "profile")),
        ("sql", ("dotted.name", "plain")),
    ],
)
def test_wildcard_is_expanded_from_the_schema(table: str, expanded: tuple[str, ...]) -> None:
    """Design section 5 replaces spec 21.8, where the wildcard was refused."""
    assert plan(a_host(), {"a": {table: ["*"]}}).steps[0].fields[table] == expanded


def test_wildcard_is_limited_by_what_it_stands_for() -> None:
    with refuses(VALIDATION, "extraction request failed schema validation") as caught:
        plan(a_host(limits=Limits(max_fields_per_table=2)), {"a": {"t1": ["*"]}})
    assert [f.type for f in caught.value.failures] == [FailureType.LIMIT_EXCEEDED]


def test_metadata_is_kept_and_no_longer_the_callers() -> None:
    metadata = {"source": "billing"}
    fields: dict[str, dict[str, Sequence[str]]] = {"a": {"t1": ["a"]}}
    request = ExtractionRequest(mapped_fields=fields, metadata=metadata)
    metadata["source"] = "other"
    fields["a"]["t2"] = ["a"]
    planned = run_trampoline(a_host().engine.plan_extraction(TENANT, request))
    assert planned.metadata == {"source": "billing"}
    assert planned.steps[0].tables == ("t1",)


def test_plan_carries_tenant_and_request_id() -> None:
    tenant = TENANT.with_request_id("r1")
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}})
    planned = run_trampoline(a_host().engine.plan_extraction(tenant, request))
    assert (planned.tenant_id, planned.request_id) == ("acme", "r1")


def test_json_of_a_plan() -> None:
    planned = plan(
        a_host(limits=Limits(timeout=5)),
        {"a": {"t1": ["a"]}},
        filters={"a": {"t1": {"b": {"eq": [1]}}}},
        metadata={"source": "billing"},
    )
    assert replace(planned, request_id="job").to_public_dict() == {
        "tenantId": "acme",
        "requestId": "job",
        "steps": [
            {
                "ordinal": 0,
                "configName": "a",
                "tables": ["t1"],
                "fields": {"t1": ["a"]},
                "filters": {"t1": {"b": {"eq": [1]}}},
            }
        ],
        "metadata": {"source": "billing"},
        "limits": {
            "maxDatasources": 10,
            "maxTablesPerDatasource": 20,
            "maxFieldsPerTable": 50,
            "maxConcurrency": 4,
            "timeout": 5,
            "maxResultBytes": 268435456,
        },
    }


def test_json_of_a_request() -> None:
    request = ExtractionRequest(
        mapped_fields={"ledger-pg": {"accounts": ["id", "status"]}},
        filters={"ledger-pg": {"accounts": {"status": {"in": ["open"]}}}},
        metadata={"source": "billing"},
        overrides=Limits(max_result_bytes=1048576),
    )
    assert request.to_public_dict() == {
        "mappedFields": {"ledger-pg": {"accounts": ["id", "status"]}},
        "filters": {"ledger-pg": {"accounts": {"status": {"in": ["open"]}}}},
        "metadata": {"source": "billing"},
        "overrides": {"maxResultBytes": 1048576},
    }


def test_filter_values_do_not_show_in_a_repr() -> None:
    filters = {"a": {"t1": {"b": {"eq": [SENTINEL]}}}}
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}}, filters=filters)
    planned = run_trampoline(a_host().engine.plan_extraction(TENANT, request))
    assert SENTINEL not in repr(request) + repr(planned)


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
    texts = set()
    for name in ("gone", "theirs"):
        with refuses(NOT_FOUND, UNKNOWN) as caught:
            plan(host, {name: {"t1": ["a"]}})
        texts.add((str(caught.value), caught.value.source))
    assert len(texts) == 1


def test_whose_a_name_is_comes_before_how_many_there_are() -> None:
    host = a_host("a", "b", "c", limits=Limits(max_datasources=1))
    host.add("aa", TenantContext.new("other"))
    with refuses(NOT_FOUND, UNKNOWN):
        plan(host, {name: {"t1": ["a"]} for name in ("a", "aa", "b")})


def test_oversized_request_costs_no_more_look_ups_than_its_limit_and_one() -> None:
    names = [f"c{index:02}" for index in range(12)]
    host = a_host(*names, limits=Limits(max_datasources=2))
    with refuses(
        VALIDATION, "datasource count exceeds the configured maximum: limits.maxDatasources"
    ):
        plan(host, {name: {"t1": ["a"]} for name in names})
    assert host.store.calls == ["find_connection"] * 3


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


def test_override_above_a_ceiling_is_refused_before_anything_is_asked() -> None:
    host = a_host()
    with refuses(VALIDATION, "limit override exceeds the configured maximum: limits.timeout"):
        plan(host, {"a": {"t1": ["a"]}}, overrides=Limits(timeout=301))
    assert (host.store.calls, host.close_counts()) == ([], [])
    assert host.engine.limits == Limits.defaults()


def test_override_lowers_the_plans_limits_alone() -> None:
    host = a_host()
    planned = plan(host, {"a": {"t1": ["a"]}}, overrides=Limits(max_result_bytes=1024, timeout=5))
    assert planned.limits == replace(Limits.defaults(), max_result_bytes=1024, timeout=5)
    assert host.engine.limits == Limits.defaults()


def test_override_of_a_count_is_enforced() -> None:
    with refuses(VALIDATION, "extraction request failed schema validation"):
        plan(a_host(), {"a": {"t1": ["a", "b"]}}, overrides=Limits(max_fields_per_table=1))


def test_cached_schema_plans_without_a_connector() -> None:
    host = a_host(cache=MemorySchemaCache())
    plan(host, {"a": {"t1": ["a"]}})
    plan(host, {"a": {"t2": ["a"]}})
    assert host.close_counts() == [1]


def test_source_that_fails_fails_the_plan_redacted() -> None:
    host = a_host()
    host.factories["a"].source.discovery_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to discover datasource schema"):
        plan(host, {"a": {"t1": ["a"]}})
    host.factories["a"].source.discovery_error = SourceFailure(Stage.AUTH, "auth")
    with refuses(ErrorCategory.CONNECT, "failed to connect to datasource") as caught:
        plan(host, {"a": {"t1": ["a"]}})
    assert (caught.value.source, caught.value.stage) == ("a", Stage.AUTH)
    host.factories["a"].build_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        plan(host, {"a": {"t1": ["a"]}})
    assert host.close_counts() == [1, 1]


def test_cancel_signal_ends_planning() -> None:
    class Cancelled:
        def is_cancelled(self) -> bool:
            return True

    host = a_host()
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}})
    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        run_trampoline(host.engine.plan_extraction(TENANT, request, cancel=Cancelled()))
    assert host.close_counts() == []
