"""From a request to a plan (spec 21.8, as amended by the design, sections 5 and 7)."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    ErrorCategory,
    ExtractionPlan,
    ExtractionRequest,
    FailureType,
    Limits,
    ProtectedCredential,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TableSnapshot,
)
from fetcher_engine.memory import MemorySchemaCache, MemorySource

from .hosts import TENANT, Host
from .loops import every_loop, run
from .planning import a_host, plan
from .refusals import SENTINEL, leaky, refuses

pytestmark = every_loop

VALIDATION = ErrorCategory.VALIDATION


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


def estimated(first: int | None, second: int | None) -> SchemaSnapshot:
    tables = (TableSnapshot("t1", ("a",), (), first), TableSnapshot("t2", ("a",), (), second))
    return SchemaSnapshot("", tables)


def test_plan_shows_the_rows_that_a_source_estimates() -> None:
    source = MemorySource(schema=estimated(0, None))
    wanted = {"s": {"t1": ["a"], "t2": ["a"]}}
    planned = plan(Host({"s": source}), wanted)
    assert planned.steps[0].estimated_rows == {"t1": 0}
    source.schema = estimated(12, 7)
    later = plan(Host({"s": source}), wanted)
    assert later.steps[0].estimated_rows == {"t1": 12, "t2": 7}
    # a guess is no part of what is asked for
    assert later == planned
    assert later.to_public_dict() == planned.to_public_dict()


def test_estimates_are_no_part_of_what_a_table_is() -> None:
    assert estimated(1, 2) == estimated(None, 0)
    assert hash(estimated(1, 2)) == hash(estimated(None, 0))


@pytest.mark.parametrize("estimate", [-1, True, 1.0, "1"])
def test_estimate_that_is_no_count_is_refused(estimate: Any) -> None:
    with refuses(VALIDATION, "table estimate is not a count of rows"):
        TableSnapshot("t", ("a",), (), estimate)


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
    planned = run(a_host().engine.plan_extraction(TENANT, request))
    assert planned.metadata == {"source": "billing"}
    assert planned.steps[0].tables == ("t1",)


def test_plan_carries_tenant_and_request_id() -> None:
    tenant = TENANT.with_request_id("r1")
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}})
    planned = run(a_host().engine.plan_extraction(tenant, request))
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


def test_filter_values_do_not_show_in_a_repr() -> None:
    filters = {"a": {"t1": {"b": {"eq": [SENTINEL]}}}}
    request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}}, filters=filters)
    planned = run(a_host().engine.plan_extraction(TENANT, request))
    assert SENTINEL not in repr(request) + repr(planned)


def test_plan_shows_no_secret_and_knows_no_organization_or_product() -> None:
    host = a_host()
    sealed = ProtectedCredential(SENTINEL.encode(), "7")
    attributes = {"record": SENTINEL}
    descriptor = ConnectionDescriptor(
        config_name="a", type="A", username=SENTINEL, key_version="7", host_attributes=attributes
    )

    async def main() -> ExtractionPlan:
        await host.store.delete(TENANT, "a")
        await host.store.create(TENANT, descriptor, sealed)
        request = ExtractionRequest(mapped_fields={"a": {"t1": ["a"]}})
        return await host.engine.plan_extraction(TENANT, request)

    planned = run(main)
    shown = repr(planned) + str(planned) + json.dumps(planned.to_public_dict())
    assert SENTINEL not in shown
    assert not re.search(
        "password|secret|cipher|credential|organi[sz]ation|product", shown, re.IGNORECASE
    )


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
        run(host.engine.plan_extraction(TENANT, request, cancel=Cancelled()))
    assert host.close_counts() == []
