"""Compare a request with its data sources' schemas: spec rest-api 8.9, 17.4."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.datasources.host_guard import HostRefused, Rule
from fetcher.domain.connections import SourceType, TlsSettings
from fetcher.domain.errors import PortUnavailable
from fetcher_engine import (
    AmbiguousTable,
    ColumnSnapshot,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    TableSnapshot,
)
from tests.unit.api.harness import CONNECTIONS, Answered, Api, a_connection, an_api
from tests.unit.api.test_internal_connections_http import an_api_with as an_api_with_internal

Fields = Mapping[str, Sequence[str]]
ORDERS: Fields = {"orders": ("id", "total"), "customers": ("id", "name")}


async def an_api_over(
    sources: Mapping[str, Fields], types: Mapping[str, str] | None = None, **options: Any
) -> Api:
    api = an_api(**options)
    for name, tables in sources.items():
        source_type = SourceType((types or {}).get(name, "POSTGRESQL"))
        await api.records.connections.insert(a_connection(config_name=name, type=source_type))
        api.engines.source(name).schema = a_schema(tables)
    return api


def a_schema(tables: Fields) -> SchemaSnapshot:
    return SchemaSnapshot("", tuple(TableSnapshot(n, tuple(f)) for n, f in tables.items()))


async def validate(api: Api, mapped: object) -> Answered:
    return await api.call("POST", f"{CONNECTIONS}/validate-schema", {"mappedFields": mapped})


def errors(answered: Answered) -> list[tuple[str, ...]]:
    """Each entry's members in their order."""
    assert answered.problem == (422, "FET-1060", "Schema validation failed"), answered.raw
    return [tuple(entry.values()) for entry in answered.json["errors"]]


# --- what is there -----------------------------------------------------------------------------


async def test_everything_there_is_a_success() -> None:
    api = await an_api_over({"sales_db": ORDERS, "hr_db": {"staff": ("id",)}})
    mapped = {"sales_db": {"orders": ["total", "id"], "customers": []}, "hr_db": {"staff": ["*"]}}
    answered = await validate(api, mapped)
    assert answered.status == 200
    assert answered.json == {
        "status": "success",
        "message": "All data sources, tables and fields exist",
    }


async def test_each_thing_that_is_missing_is_named_in_the_wires_order() -> None:
    api = await an_api_over({"sales_db": ORDERS, "hr_db": {"staff": ("id",)}})
    api.engines.source("hr_db").discovery_error = SourceFailure(Stage.TCP, "refused")
    answered = await validate(
        api,
        {
            "zoo_db": {"animals": ["id"]},
            "sales_db": {
                "users": ["id"],
                "orders": ["totl", "id", "price"],
                "customers": ["zip", "age"],
            },
            "hr_db": {"staff": ["id"]},
        },
    )
    assert answered.status == 422
    assert answered.json["errors"] == [
        {"type": "DATA_SOURCE_DOWN", "dataSourceId": "hr_db"},
        {
            "type": "FIELD_NOT_FOUND",
            "dataSourceId": "sales_db",
            "table": "customers",
            "field": "zip",
        },
        {
            "type": "FIELD_NOT_FOUND",
            "dataSourceId": "sales_db",
            "table": "customers",
            "field": "age",
        },
        {"type": "FIELD_NOT_FOUND", "dataSourceId": "sales_db", "table": "orders", "field": "totl"},
        {
            "type": "FIELD_NOT_FOUND",
            "dataSourceId": "sales_db",
            "table": "orders",
            "field": "price",
        },
        {"type": "TABLE_NOT_FOUND", "dataSourceId": "sales_db", "table": "users"},
        {"type": "DATA_SOURCE_NOT_FOUND", "dataSourceId": "zoo_db"},
    ]
    assert answered.json["errorCode"] == "FET-1060"
    assert answered.json["message"] == "7 of what was asked for does not exist or cannot be reached"


async def test_source_without_tables_is_only_reached() -> None:
    api = await an_api_over({"a_db": ORDERS, "b_db": ORDERS})
    api.engines.source("b_db").discovery_error = RuntimeError("driver text")
    answered = await validate(api, {"a_db": {}, "b_db": None})
    assert errors(answered) == [("DATA_SOURCE_DOWN", "b_db")]
    assert b"driver text" not in answered.raw


async def test_parent_of_flattened_fields_is_there() -> None:
    api = await an_api_over({"crm": {"people": ("address.city", "id")}}, {"crm": "MONGODB"})
    assert (await validate(api, {"crm": {"people": ["address", "address.city"]}})).status == 200
    assert errors(await validate(api, {"crm": {"people": ["addr", "city"]}})) == [
        ("FIELD_NOT_FOUND", "crm", "people", "addr"),
        ("FIELD_NOT_FOUND", "crm", "people", "city"),
    ]


@pytest.mark.parametrize(
    ("source_type", "there", "asked"),
    [
        ("POSTGRESQL", "orders", "public.orders"),
        ("POSTGRESQL", "orders", "PUBLIC.orders"),
        ("POSTGRESQL", "orders", "orders"),
        ("POSTGRESQL", "audit.orders", "audit.orders"),
        ("SQL_SERVER", "orders", "dbo.orders"),
        ("SQL_SERVER", "orders", "db1.dbo.orders"),
        ("ORACLE", "ORDERS", "orders"),
        ("ORACLE", "HR.ORDERS", "hr.Orders"),
        ("MYSQL", "orders", " orders "),
        ("MONGODB", "a.b.orders", "a.b.orders"),
    ],
)
async def test_names_are_normalized_by_type(source_type: str, there: str, asked: str) -> None:
    fields = ("ID",) if source_type == "ORACLE" else ("id",)
    api = await an_api_over({"db": {there: fields}}, {"db": source_type})
    assert (await validate(api, {"db": {asked: ["id"]}})).status == 200
    assert errors(await validate(api, {"db": {f"{asked.strip()}x": ["id"]}})) == [
        ("TABLE_NOT_FOUND", "db", f"{asked.strip()}x")
    ]


async def test_case_counts_but_for_oracle() -> None:
    tables = {"ORDERS": ("ID",)}
    api = await an_api_over({"pg": tables, "ora": tables}, {"ora": "ORACLE"})
    mapped = {"Orders": ["iD"]}
    assert errors(await validate(api, {"pg": mapped, "ora": mapped})) == [
        ("TABLE_NOT_FOUND", "pg", "Orders")
    ]


async def test_two_spellings_of_a_table_are_judged_apart() -> None:
    api = await an_api_over({"sales_db": ORDERS})
    answered = await validate(api, {"sales_db": {"public.orders": ["no"], "orders": ["id", "ni"]}})
    assert errors(answered) == [
        ("FIELD_NOT_FOUND", "sales_db", "orders", "ni"),
        ("FIELD_NOT_FOUND", "sales_db", "public.orders", "no"),
    ]


async def test_ambiguous_name_is_told_with_what_it_could_mean() -> None:
    api = await an_api_over({"sales_db": {}})
    api.engines.source("sales_db").schema = SchemaSnapshot(
        "", ambiguous=(AmbiguousTable("orders", ("Orders", "ORDERS")),)
    )
    answered = await validate(api, {"sales_db": {"orders": ["id"]}})
    assert answered.json["errors"] == [
        {
            "type": "TABLE_NOT_FOUND",
            "dataSourceId": "sales_db",
            "table": "orders",
            "candidates": ["ORDERS", "Orders"],
        }
    ]


async def test_source_looks_for_the_tables_as_they_were_asked_for() -> None:
    """So a connector reads their schemas, the default one among them (spec engine 17.4)."""
    api = await an_api_over({"sales_db": {"accounting.invoices": ("id",), "users": ("id",)}})
    mapped = {"accounting.invoices": ["id"], "users": ["id"]}
    assert (await validate(api, {"sales_db": mapped})).status == 200
    assert api.engines.requested[-1] == {
        "sales_db": {"accounting.invoices": ("id",), "users": ("id",)}
    }


async def test_plugin_crm_is_asked_for_by_logical_collections() -> None:
    """Its connector projects the schema to them; what it misses is told by the same names."""
    api = await an_api_with_internal(["plugin_crm"])
    api.engines.source("plugin_crm").schema = a_schema({"holders": ("document", "name")})
    mapped = {"plugin_crm": {"holders": ["document"], "owners": ["name"]}}
    assert errors(await validate(api, mapped)) == [("TABLE_NOT_FOUND", "plugin_crm", "owners")]


async def test_internal_source_that_is_not_configured_is_not_found() -> None:
    """Improved row: 500 in the reference."""
    api = await an_api_over({"sales_db": ORDERS})
    await api.records.connections.insert(a_connection(config_name="plugin_crm"))
    mapped = {"plugin_crm": {"holders": ["name"]}, "sales_db": {"orders": ["id"]}}
    assert errors(await validate(api, mapped)) == [("DATA_SOURCE_NOT_FOUND", "plugin_crm")]
    alone = await validate(api, {"plugin_crm": {"holders": ["name"]}})
    assert alone.problem == (400, "FET-1062", "No Connections Found")


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [{}, {"mappedFields": None}, None, {"colour": 1}])
async def test_no_mapped_fields_are_a_missing_field(body: object) -> None:
    answered = await an_api().call(
        "POST",
        f"{CONNECTIONS}/validate-schema",
        headers={"Content-Type": "application/json"},
        data=json.dumps(body).encode(),
    )
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert answered.json["fields"] == {"mappedFields": "is required"}


@pytest.mark.parametrize(
    "body",
    ["[]", '{"mappedFields":[]}', '{"mappedFields":{"a":{"t":"id"}}}', '{"mappedFields":{"a":[]}}'],
)
async def test_wrong_shape_is_an_invalid_payload(body: str) -> None:
    answered = await an_api().call(
        "POST",
        f"{CONNECTIONS}/validate-schema",
        headers={"Content-Type": "application/json"},
        data=body.encode(),
    )
    assert answered.problem == (400, "FET-0001", "Invalid payload")


@pytest.mark.parametrize(
    "mapped",
    [
        {},
        {" ": {"t": ["a"]}},
        {"": {}},
        {"db": {" ": ["a"]}},
        {"db": {"": []}},
        {"db": {"t": ["a", " "]}},
        {"db": {"t": [""]}},
        {"db": {"t": ["a\0b"]}},
        {"db": {"t" * 1025: ["a"]}},
    ],
)
async def test_blank_and_impossible_names_are_invalid(mapped: object) -> None:
    answered = await validate(await an_api_over({"db": {}}), mapped)
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert "mappedFields" in answered.json["message"]


def counted(sources: int = 1, tables: int = 1, fields: int = 1) -> dict[str, Any]:
    names = [f"f{n}" for n in range(fields)]
    return {f"db_{n}": {f"t{m}": names for m in range(tables)} for n in range(sources)}


@pytest.mark.parametrize(
    ("most", "one_more", "place"),
    [
        (counted(sources=10), counted(sources=11), "mappedFields names more than 10 data sources"),
        (counted(tables=20), counted(tables=21), "mappedFields.db_0 names more than 20 tables"),
        (counted(fields=50), counted(fields=51), "mappedFields.db_0.t0 names more than 50 fields"),
    ],
)
async def test_counts_at_their_limits(
    most: dict[str, Any], one_more: dict[str, Any], place: str
) -> None:
    api = await an_api_over({"db_0": {}})
    assert (await validate(api, most)).status == 422
    answered = await validate(api, one_more)
    assert answered.problem == (400, "FET-1061", "Validation Limit Exceeded")
    assert answered.json["message"] == place


async def test_field_asked_twice_counts_once() -> None:
    api = await an_api_over({"sales_db": ORDERS})
    answered = await validate(api, {"sales_db": {"orders": ["id", "no"] * 50}})
    assert errors(answered) == [("FIELD_NOT_FOUND", "sales_db", "orders", "no")]


async def test_star_that_means_too_many_fields_is_over_the_limit() -> None:
    """As it would be for the job."""
    columns = tuple(ColumnSnapshot(f"c{n}", "int") for n in range(51))
    api = await an_api_over({"sales_db": {}})
    api.engines.source("sales_db").schema = SchemaSnapshot(
        "", (TableSnapshot("wide", tuple(c.name for c in columns), columns),)
    )
    answered = await validate(api, {"sales_db": {"wide": ["*"]}})
    assert answered.problem == (400, "FET-1061", "Validation Limit Exceeded")
    assert answered.json["message"].startswith("mappedFields.sales_db.wide ")


@pytest.mark.parametrize(
    ("mapped", "code"),
    [
        # each breaks several rules; the first in the order of the table decides
        ({" ": {}} | counted(sources=10), "FET-1061"),
        ({" ": {f"t{n}": [] for n in range(21)}}, "FET-0401"),
        ({"db": {"": []} | {f"t{n}": [] for n in range(20)}}, "FET-1061"),
        ({"db": {"": [f"f{n}" for n in range(51)]}}, "FET-0401"),
        ({"db": {"t": ["", *(f"f{n}" for n in range(50))]}}, "FET-1061"),
        ({"nope": {"t": [""]}}, "FET-0401"),
    ],
)
async def test_rules_are_applied_in_their_order(mapped: object, code: str) -> None:
    answered = await validate(an_api(), mapped)
    assert (answered.status, answered.json["code"]) == (400, code)


async def test_none_known_is_refused_with_all_names() -> None:
    answered = await validate(an_api(), {"b_db": {"t": ["a"]}, "a_db": {"t": ["a"]}})
    assert answered.problem == (400, "FET-1062", "No Connections Found")
    assert answered.json["message"].endswith("configured: a_db, b_db")


async def test_host_that_must_not_be_dialled_refuses_the_whole_request() -> None:
    api = await an_api_over({"a_db": ORDERS, "b_db": ORDERS})
    api.engines.source("b_db").discovery_error = HostRefused(Rule.RANGE)
    answered = await validate(api, {"a_db": {"orders": ["no"]}, "b_db": {"orders": ["id"]}})
    assert answered.problem == (400, "FET-0414", "Forbidden Host")
    assert "errors" not in answered.json


async def test_stored_mode_of_another_type_makes_its_source_down() -> None:
    api = await an_api_over({"a_db": ORDERS})
    odd = a_connection(config_name="b_db", tls=TlsSettings(mode="skip-verify"))
    await api.records.connections.insert(odd)
    answered = await validate(api, {"a_db": {"orders": ["id"]}, "b_db": {"orders": ["id"]}})
    assert errors(answered) == [("DATA_SOURCE_DOWN", "b_db")]


async def test_record_store_that_is_away_is_a_503() -> None:
    class Away:
        async def find_by_config_names(self, names: Sequence[str]) -> Any:
            raise PortUnavailable("the record store is away")

    answered = await validate(an_api(connections=Away()), {"a_db": {"t": ["a"]}})
    assert answered.problem == (503, "FET-0003", "Service Unavailable")
    assert answered.headers["Retry-After"] == "5"


# --- time --------------------------------------------------------------------------------------


async def test_four_sources_are_asked_at_once(autojump_clock: MockClock) -> None:
    names = [f"db_{n}" for n in range(10)]
    api = await an_api_over(dict.fromkeys(names, ORDERS))
    running, most = 0, 0

    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(2)
        running -= 1

    for name in names:
        api.engines.source(name).before_discovery = slow
    began = trio.current_time()
    answered = await validate(api, {name: {"orders": ["id"]} for name in names})
    assert answered.status == 200
    assert most == 4
    assert trio.current_time() - began == pytest.approx(6)


async def test_what_has_not_answered_after_30_s_is_down(autojump_clock: MockClock) -> None:
    api = await an_api_over({"a_db": ORDERS, "b_db": ORDERS})
    api.engines.source("a_db").before_discovery = trio.sleep_forever
    began = trio.current_time()
    answered = await validate(api, {"a_db": {"orders": ["id"]}, "b_db": {"orders": ["no"]}})
    assert errors(answered) == [
        ("DATA_SOURCE_DOWN", "a_db"),
        ("FIELD_NOT_FOUND", "b_db", "orders", "no"),
    ]
    assert trio.current_time() - began == pytest.approx(30)
