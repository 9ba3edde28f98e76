"""Filters and options of a job: spec rest-api 17.5, datasources 19.7, case 23, design 6 and 7."""

from dataclasses import replace

import pytest

from fetcher.api.services import HttpSettings
from fetcher.domain.connections import SourceType
from fetcher.domain.json_text import parse
from fetcher.domain.json_values import JsonValue
from fetcher_engine import Limits
from tests.unit.api.harness import (
    JOBS,
    Answered,
    a_connection,
    a_request,
    an_api,
    an_api_with,
    stored,
)


async def filtered(condition: JsonValue) -> Answered:
    api = await an_api_with()
    return await api.ask(a_request(filters={"sales_db": {"orders": {"total": condition}}}))


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ({"eq": "paid"}, "orders.total.eq"),
        ({"eq": 1}, "orders.total.eq"),
        ({"in": {"a": 1}}, "orders.total.in"),
        ("paid", "orders.total"),
        ([1], "orders.total"),
    ],
)
async def test_condition_of_another_shape_is_an_invalid_payload(
    condition: JsonValue, path: str
) -> None:
    answered = await filtered(condition)
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert f"dataRequest.filters.sales_db.{path}" in answered.json["message"]


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ({}, "total holds no operator"),
        (None, "total holds no operator"),
        ({"eq": None}, "total holds no operator"),
        ({"eq": []}, "total.eq is empty"),
        ({"in": []}, "total.in is empty"),
        ({"between": [1]}, "total.between needs exactly 2 values, not 1"),
        ({"between": [1, 2, 3]}, "total.between needs exactly 2 values, not 3"),
        ({"gt": [1, 2]}, "total.gt needs exactly 1 value, not 2"),
        ({"lte": [None]}, "total.lte[0]"),
        ({"like": [5]}, "total.like[0]"),
        ({"eq": [[1]]}, "total.eq[0]"),
        ({"eq": [1, {"a": 1}]}, "total.eq[1]"),
        ({"is_null": [False]}, "total.is_null[0]"),
        ({"in": list(range(10_001))}, "total.in holds more than 10000"),
    ],
)
async def test_condition_that_means_nothing_is_refused_with_its_path(
    condition: JsonValue, path: str
) -> None:
    answered = await filtered(condition)
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert f"dataRequest.filters.sales_db.orders.{path}" in answered.json["message"]


@pytest.mark.parametrize(
    "condition",
    [
        {"eq": ["a"]},
        {"eq": [1, None]},
        {"ne": ["a", "b"]},
        {"gt": [1], "lte": [2]},
        {"between": [1, 2]},
        {"in": ["a", None]},
        {"nin": [True]},
        {"like": ["%a%", "b_"]},
        {"is_null": [True]},
        {"not_null": [True]},
    ],
)
async def test_conditions_that_are_accepted_are_stored_whole(
    condition: dict[str, list[JsonValue]],
) -> None:
    api = await an_api_with()
    job = await stored(
        api, await api.ask(a_request(filters={"sales_db": {"orders": {"total": condition}}}))
    )
    assert job.filters["sales_db"]["orders"]["total"] == {
        operator: tuple(values) for operator, values in condition.items()
    }


async def test_filters_on_unknown_sources_are_all_named() -> None:
    condition: JsonValue = {"t": {"f": {"eq": [1]}}}
    answered = await (await an_api_with()).ask(
        a_request(filters={"other": condition, "crm": condition, "sales_db": {}})
    )
    assert answered.problem == (400, "FET-0401", "Invalid Filter References")
    assert "dataRequest.filters.crm, dataRequest.filters.other" in answered.json["message"]


async def test_filter_on_a_table_that_is_not_asked_for_is_refused() -> None:
    """Voided row: was accepted; design section 7."""
    answered = await (await an_api_with()).ask(
        a_request(filters={"sales_db": {"refunds": {"id": {"eq": [1]}}}})
    )
    assert answered.problem == (400, "FET-0401", "Invalid Filter References")
    assert "dataRequest.filters.sales_db.refunds" in answered.json["message"]


@pytest.mark.parametrize(
    ("type_name", "asked", "filtered_table", "status"),
    [
        (SourceType.POSTGRESQL, "public.orders", "orders", 202),
        (SourceType.POSTGRESQL, "orders", "public.orders", 202),
        (SourceType.SQL_SERVER, "orders", "dbo.orders", 202),
        (SourceType.ORACLE, "orders", "ORDERS", 202),
        (SourceType.POSTGRESQL, "orders", "ORDERS", 400),
        (SourceType.POSTGRESQL, "accounting.orders", "orders", 400),
        (SourceType.MONGODB, "public.orders", "orders", 400),
    ],
)
async def test_filter_finds_its_table_in_another_spelling(
    type_name: SourceType, asked: str, filtered_table: str, status: int
) -> None:
    api = an_api()
    await api.records.connections.insert(a_connection(type=type_name))
    answered = await api.ask(
        a_request(
            mappedFields={"sales_db": {asked: ["id"]}},
            filters={"sales_db": {filtered_table: {"id": {"eq": [1]}}}},
        )
    )
    assert answered.status == status


async def test_two_spellings_of_one_table_must_not_differ() -> None:
    answered = await (await an_api_with()).ask(
        a_request(
            filters={
                "sales_db": {
                    "orders": {"id": {"eq": [1]}},
                    "public.orders": {"id": {"eq": [2]}},
                }
            }
        )
    )
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")


async def test_empty_filter_maps_ask_for_nothing() -> None:
    api = await an_api_with()
    job = await stored(api, await api.ask(a_request(filters={"sales_db": {"orders": {}}})))
    assert job.filters == {}


async def test_filter_fields_are_counted() -> None:
    fields: dict[str, JsonValue] = {f"f{n}": {"eq": [1]} for n in range(51)}
    answered = await (await an_api_with()).ask(a_request(filters={"sales_db": {"orders": fields}}))
    assert "more than 50 fields" in answered.json["message"]


async def test_options_lie_in_the_record() -> None:
    api = await an_api_with()
    options: JsonValue = {
        "values": "natural",
        "bigint": "string",
        "decimals": "number",
        "limits": {"maxFieldsPerTable": 5, "timeout": 60},
    }
    answered = await api.ask(a_request(options=options))
    job = await stored(api, answered)
    assert (job.options.values, job.options.bigint, job.options.decimals) == (
        "natural",
        "string",
        "number",
    )
    assert job.options.limits == {"maxFieldsPerTable": 5, "timeout": 60}
    shown = await api.get(f"{JOBS}/{job.id}")
    assert parse(shown.raw)["options"]["limits"] == {"maxFieldsPerTable": 5, "timeout": 60}  # type: ignore[call-overload,index] # read as plain JSON


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"values": "fancy"}, "FET-0401"),
        ({"values": ""}, "FET-0401"),
        ({"bigint": "text"}, "FET-0401"),
        ({"limits": {"maxDatasources": 11}}, "FET-0401"),
        ({"limits": {"maxResultBytes": 268435457}}, "FET-0401"),
        ({"limits": {"timeout": 301}}, "FET-0401"),
        ({"limits": {"timeout": 0}}, "FET-0401"),
        ({"limits": {"maxConcurrency": -1}}, "FET-0401"),
        ({"limits": {"maxConcurrency": 1.0}}, "FET-0001"),
        ({"limits": {"timeout": "60"}}, "FET-0001"),
        ({"limits": {"timeout": True}}, "FET-0001"),
        ({"values": 1}, "FET-0001"),
        ([], "FET-0001"),
    ],
)
async def test_options_are_judged(options: JsonValue, code: str) -> None:
    answered = await (await an_api_with()).ask(a_request(options=options))
    assert (answered.status, answered.json["code"]) == (400, code)
    assert "dataRequest.options" in answered.json["message"]


async def test_lowered_count_limits_bind_this_request() -> None:
    answered = await (await an_api_with()).ask(
        a_request(options={"limits": {"maxFieldsPerTable": 1}})
    )
    assert "more than 1 fields" in answered.json["message"]


async def test_options_are_refused_while_switched_off() -> None:
    api = await an_api_with(settings=HttpSettings(options_enabled=False))
    assert (await api.ask(a_request(options={}))).json["code"] == "FET-0401"
    assert (await api.ask(a_request())).status == 202


async def test_raised_ceilings_of_the_host_bind() -> None:
    api = await an_api_with(ceilings=replace(Limits.defaults(), max_result_bytes=10**9))
    answered = await api.ask(a_request(options={"limits": {"maxResultBytes": 5 * 10**8}}))
    assert answered.status == 202


async def test_a_limit_above_its_ceiling_is_told_the_whole_number() -> None:
    api = await an_api_with()
    answered = await api.ask(a_request(options={"limits": {"maxResultBytes": 5 * 10**8}}))
    assert answered.json["message"].endswith("at most 268435456")
