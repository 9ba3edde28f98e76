"""Try a job without making one: its plan, or what stands in its way."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.memory.schema_cache import MemorySchemaCache
from fetcher.api.services import HttpSettings
from fetcher.domain.connections import SourceType
from fetcher.domain.json_values import JsonValue
from fetcher_engine import (
    AmbiguousTable,
    ColumnSnapshot,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TableSnapshot,
)
from tests.unit.api.harness import JOBS, Answered, Api, a_connection, a_request, an_api
from tests.unit.api.test_internal_connections_http import an_api_with as an_api_with_internal

LIMITS = {
    "maxDatasources": 10,
    "maxTablesPerDatasource": 20,
    "maxFieldsPerTable": 50,
    "maxConcurrency": 4,
    "timeout": 300,
    "maxResultBytes": 268435456,
}
SALES = SchemaSnapshot(
    "",
    (
        TableSnapshot.of_columns("customers", ["name", "id"]),
        TableSnapshot(
            "orders",
            ("total", "id", "status"),
            tuple(ColumnSnapshot(name, "int") for name in ("total", "id", "status")),
            estimated_rows=1000,
        ),
    ),
    ignores_case=True,
)


async def an_api_over(
    schemas: Mapping[str, SchemaSnapshot] | None = None,
    types: Mapping[str, str] | None = None,
    **options: Any,
) -> Api:
    api = an_api(**options)
    for name, schema in (schemas or {"sales_db": SALES}).items():
        source_type = SourceType((types or {}).get(name, "POSTGRESQL"))
        await api.records.connections.insert(a_connection(config_name=name, type=source_type))
        api.engines.source(name).schema = schema
    return api


async def try_job(api: Api, body: object) -> Answered:
    return await api.call("POST", f"{JOBS}/validate", body)


def errors(answered: Answered) -> list[dict[str, object]]:
    assert answered.problem == (422, "FET-1060", "Schema validation failed"), answered.raw
    found: list[dict[str, object]] = answered.json["errors"]
    return found


# --- what fits ---------------------------------------------------------------------------------


async def test_plan_is_told_with_expanded_fields_in_the_results_order_and_estimates() -> None:
    api = await an_api_over({"sales_db": SALES, "a_db": SALES}, {"a_db": "MYSQL"})
    mapped: JsonValue = {
        "sales_db": {"public.orders": ["total", "ID"], "customers": ["*"]},
        "a_db": {"orders": ["*"]},
    }
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert answered.status == 200, answered.raw
    body = answered.json
    assert body == {
        "valid": True,
        "sources": {
            "a_db": {
                "type": "MYSQL",
                "tables": {"orders": {"fields": ["id", "status", "total"], "estimatedRows": 1000}},
            },
            "sales_db": {
                "type": "POSTGRESQL",
                "tables": {
                    "customers": {"fields": ["id", "name"]},
                    "public.orders": {"fields": ["id", "total"], "estimatedRows": 1000},
                },
            },
        },
        "limits": LIMITS,
        "requestHash": body["requestHash"],
    }
    assert list(body["sources"]) == ["a_db", "sales_db"]
    assert list(body["sources"]["sales_db"]["tables"]) == ["customers", "public.orders"]


async def test_two_spellings_of_a_table_show_what_both_read() -> None:
    mapped: JsonValue = {"sales_db": {"public.orders": ["total"], "orders": ["id"]}}
    answered = await try_job(await an_api_over(), a_request(mappedFields=mapped))
    both = {"fields": ["id", "total"], "estimatedRows": 1000}
    assert answered.json["sources"]["sales_db"]["tables"] == {
        "orders": both,
        "public.orders": both,
    }


async def test_hash_and_limits_are_those_of_the_job_that_the_request_makes() -> None:
    api = await an_api_over()
    body = a_request(
        filters={"sales_db": {"orders": {"total": {"gte": [100]}}}},
        options={"limits": {"timeout": 25, "maxResultBytes": 1000}},
    )
    tried = await try_job(api, body)
    assert tried.status == 200, tried.raw
    assert tried.json["limits"] == LIMITS | {"timeout": 25, "maxResultBytes": 1000}
    created = await api.ask(body)
    job = await api.get(f"{JOBS}/{created.json['jobId']}")
    assert tried.json["requestHash"] == job.json["requestHash"]


async def test_nothing_is_stored_and_nobody_is_hinted() -> None:
    api = await an_api_over()
    for _ in range(2):
        assert (await try_job(api, a_request())).status == 200
    assert (await api.get(JOBS)).json["items"] == []
    assert (api.hints, api.event_hints) == ([], [])
    # and a job of the same request is new
    assert (await api.ask(a_request())).status == 202


async def test_a_job_that_runs_is_no_reason_not_to_try() -> None:
    api = await an_api_over(settings=HttpSettings(jobs_max_pending=1))
    assert (await api.ask(a_request())).status == 202
    assert (await try_job(api, a_request())).status == 200


async def test_sources_look_for_the_asked_tables_and_filtered_fields_once() -> None:
    """No test of the connection goes before: its schema is read anyway."""
    api = await an_api_over()
    tests: list[str] = []

    async def note() -> None:
        await trio.lowlevel.checkpoint()
        tests.append("sales_db")

    api.engines.source("sales_db").before_test = note
    api.engines.cache = MemorySchemaCache()
    assert (await try_job(api, a_request())).status == 200
    assert tests == []
    assert api.engines.requested == [{"sales_db": {"orders": ("id", "total")}}]
    # a schema that is remembered is as good as for validate-schema, its estimates too
    api.engines.source("sales_db").discovery_error = SourceFailure(Stage.TCP, "refused")
    tables = (await try_job(api, a_request())).json["sources"]["sales_db"]["tables"]
    assert tables == {"orders": {"fields": ["id", "total"], "estimatedRows": 1000}}


async def test_internal_source_is_planned_without_a_product() -> None:
    api = await an_api_with_internal(["plugin_crm"])
    api.engines.source("plugin_crm").schema = SchemaSnapshot(
        "", (TableSnapshot("holders", ("name", "document"), (), 7),)
    )
    mapped: JsonValue = {"plugin_crm": {"holders": ["name"]}}
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert answered.json["sources"] == {
        "plugin_crm": {
            "type": "MONGODB",
            "tables": {"holders": {"fields": ["name"], "estimatedRows": 7}},
        }
    }


# --- what does not fit -------------------------------------------------------------------------


async def test_everything_that_is_missing_is_told_sorted_and_what_is_down_beside_it() -> None:
    api = await an_api_over({"sales_db": SALES, "hr_db": SALES, "z_db": SALES})
    api.engines.source("hr_db").discovery_error = SourceFailure(Stage.TCP, "refused")
    api.engines.source("z_db").discovery_error = RuntimeError("driver text")
    answered = await try_job(
        api,
        a_request(
            mappedFields={
                "z_db": {"orders": ["id"]},
                "sales_db": {"users": ["id"], "orders": ["totl", "id", "price"]},
                "hr_db": {"orders": ["id"]},
            },
            filters={
                "sales_db": {
                    "orders": {"price": {"eq": [1]}, "colour": {"eq": [1]}, "id": {"eq": [1]}},
                    "users": {"name": {"eq": ["x"]}},
                }
            },
        ),
    )
    place = {"type": "FIELD_NOT_FOUND", "dataSourceId": "sales_db", "table": "orders"}
    assert errors(answered) == [
        {
            "type": "DATA_SOURCE_DOWN",
            "dataSourceId": "hr_db",
            "stage": "tcp",
            "reason": "refused",
        },
        place | {"field": "totl"},
        place | {"field": "price"},
        place | {"field": "colour"},
        {"type": "TABLE_NOT_FOUND", "dataSourceId": "sales_db", "table": "users"},
        {"type": "DATA_SOURCE_DOWN", "dataSourceId": "z_db", "reason": "unavailable"},
    ]
    assert answered.json["errorCode"] == "FET-1060"
    assert b"driver text" not in answered.raw


async def test_filter_in_another_spelling_of_its_table_is_told_in_that_spelling() -> None:
    filters: JsonValue = {"sales_db": {"public.orders": {"no": {"eq": [1]}}}}
    answered = await try_job(await an_api_over(), a_request(filters=filters))
    assert errors(answered) == [
        {
            "type": "FIELD_NOT_FOUND",
            "dataSourceId": "sales_db",
            "table": "public.orders",
            "field": "no",
        }
    ]


async def test_ambiguous_names_have_a_type_of_their_own() -> None:
    schema = SchemaSnapshot(
        "",
        (TableSnapshot.of_columns("runs", ["Id", "ID"]),),
        ignores_case=True,
        ambiguous=(AmbiguousTable("orders", ("Orders", "ORDERS")),),
    )
    api = await an_api_over({"sales_db": schema})
    mapped: JsonValue = {"sales_db": {"runs": ["id"], "orders": ["id"]}}
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert answered.json["message"] == "2 of what was asked for may mean several things"
    place = {"type": "AMBIGUOUS_NAME", "dataSourceId": "sales_db"}
    assert errors(answered) == [
        place | {"table": "orders", "candidates": ["ORDERS", "Orders"]},
        place | {"table": "runs", "field": "id", "candidates": ["ID", "Id"]},
    ]


async def test_source_that_does_not_answer_is_down_after_30_seconds(
    autojump_clock: MockClock,
) -> None:
    api = await an_api_over({"sales_db": SALES, "slow_db": SALES})
    api.engines.source("slow_db").before_discovery = trio.sleep_forever
    mapped: JsonValue = {name: {"orders": ["id"]} for name in ("sales_db", "slow_db")}
    began = trio.current_time()
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert trio.current_time() - began == pytest.approx(30)
    assert errors(answered) == [
        {"type": "DATA_SOURCE_DOWN", "dataSourceId": "slow_db", "reason": "timeout"}
    ]


async def test_at_most_four_sources_are_asked_at_once(autojump_clock: MockClock) -> None:
    names = [f"db_{number}" for number in range(10)]
    api = await an_api_over(dict.fromkeys(names, SALES))
    now, most = 0, 0

    async def dwell() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await trio.sleep(1)
        now -= 1

    for name in names:
        api.engines.source(name).before_discovery = dwell
    began = trio.current_time()
    mapped: JsonValue = {name: {"orders": ["id"]} for name in names}
    assert (await try_job(api, a_request(mappedFields=mapped))).status == 200
    assert most == 4
    assert trio.current_time() - began == pytest.approx(3)
