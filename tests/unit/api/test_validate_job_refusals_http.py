"""Trying a job: what is refused, as when one is asked for, and what only the sources show."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.datasources.host_guard import HostRefused, Rule
from fetcher.domain.connections import TlsSettings
from fetcher.domain.json_values import JsonValue
from fetcher_engine import SchemaSnapshot, SourceFailure, Stage, TableSnapshot
from tests.unit.api.harness import JOBS, a_connection, a_request, an_api
from tests.unit.api.test_validate_job_http import SALES, an_api_over, try_job


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"mappedFields": None}, (400, "FET-0402", "Missing Fields in Request")),
        ({"mappedFields": {}}, (400, "FET-0401", "Invalid Data Request")),
        ({"mappedFields": {"sales_db": {"orders": []}}}, (400, "FET-0401", "Invalid Data Request")),
        ({"metadata": {}}, (400, "FET-0402", "Missing Required Field")),
        ({"filters": {"no": {}}}, (400, "FET-0401", "Invalid Filter References")),
        (
            {"filters": {"sales_db": {"users": {"id": {"eq": [1]}}}}},
            (400, "FET-0401", "Invalid Filter References"),
        ),
        ({"filters": {"sales_db": {"orders": {"id": {"is": [1]}}}}}, (400, "FET-0401", None)),
        ({"options": {"limits": {"timeout": 301}}}, (400, "FET-0401", "Invalid Data Request")),
        ({"mappedFields": {"no_db": {"t": ["a"]}}}, (400, "FET-1020", "No Connections Found")),
        (
            {"mappedFields": {"no_db": {"t": ["a"]}, "sales_db": {"orders": ["id"]}}},
            (400, "FET-1020", "Missing Data Source"),
        ),
        ({"metadata": {"source": "other"}}, (400, "FET-1016", "Product Mismatch")),
    ],
)
async def test_request_is_judged_as_one_that_makes_a_job(
    changed: dict[str, Any], problem: tuple[int, str, str | None]
) -> None:
    api = await an_api_over()
    body = a_request(**changed)
    tried, asked = await try_job(api, body), await api.ask(body)
    assert tried.json == asked.json
    assert tried.problem[:2] == problem[:2]
    assert problem[2] is None or tried.problem[2] == problem[2]


@pytest.mark.parametrize("data", [b"", b"[]", b"{bad", b'{"dataRequest":{"mappedFields":[]}}'])
async def test_wrong_shape_is_an_invalid_payload(data: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answered = await an_api().call("POST", f"{JOBS}/validate", headers=headers, data=data)
    assert answered.problem == (400, "FET-0001", "Invalid payload")


async def test_connection_of_no_product_is_refused() -> None:
    api = an_api()
    await api.records.connections.insert(a_connection(product_name=""))
    answered = await try_job(api, a_request())
    assert answered.problem == (400, "FET-1014", "Connection Not Assigned")


async def test_star_that_means_too_many_fields_is_refused_with_its_path() -> None:
    wide = TableSnapshot.of_columns("wide", [f"c{number}" for number in range(51)])
    api = await an_api_over({"sales_db": SchemaSnapshot("", (wide,))})
    mapped: JsonValue = {"sales_db": {"public.wide": ["*"]}}
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert answered.json["message"] == (
        'dataRequest.mappedFields.sales_db["public.wide"] means more fields than a job may ask for'
    )


async def test_two_conditions_on_one_column_are_refused_with_their_path() -> None:
    """Only the schema shows that both spellings are one: one of them would vanish."""
    filters: JsonValue = {
        "sales_db": {"public.orders": {"Total": {"eq": [1]}, "total": {"eq": [2]}}}
    }
    answered = await try_job(await an_api_over(), a_request(filters=filters))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert answered.json["message"] == (
        'dataRequest.filters.sales_db["public.orders"]: extraction request has malformed filters'
    )


async def test_filter_that_a_source_refuses_is_named_with_its_path() -> None:
    api = await an_api_over()
    api.engines.source("sales_db").discovery_error = SourceFailure(
        Stage.QUERY, "invalid_filter_value", table="orders", column="total"
    )
    filters: JsonValue = {"sales_db": {"orders": {"total": {"eq": ["x"]}}}}
    answered = await try_job(api, a_request(filters=filters))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert answered.json["message"] == (
        "dataRequest.filters.sales_db.orders.total: extraction request has an invalid filter"
    )


async def test_host_that_must_not_be_dialled_refuses_the_whole_request() -> None:
    api = await an_api_over({"sales_db": SALES, "b_db": SALES})
    api.engines.source("sales_db").discovery_error = HostRefused(Rule.RANGE)
    mapped: JsonValue = {name: {"nope": ["id"]} for name in ("sales_db", "b_db")}
    answered = await try_job(api, a_request(mappedFields=mapped))
    assert answered.problem == (400, "FET-0414", "Forbidden Host")


async def test_stored_tls_mode_of_another_type_is_refused() -> None:
    api = an_api()
    await api.records.connections.insert(a_connection(tls=TlsSettings(mode="PREFERRED")))
    answered = await try_job(api, a_request())
    assert answered.problem == (400, "FET-0413", "Invalid SSL Mode")
    assert api.engines.asked == []


async def test_each_connection_is_tried_ten_times_a_minute(autojump_clock: MockClock) -> None:
    api = await an_api_over({"sales_db": SALES, "b_db": SALES})
    both = a_request(mappedFields={name: {"orders": ["id"]} for name in ("sales_db", "b_db")})
    for _ in range(10):
        assert (await try_job(api, a_request())).status == 200
    for body in (a_request(), both):
        refused = await try_job(api, body)
        assert refused.problem == (429, 429, "Rate Limit Exceeded")
        assert refused.json["errorCode"] == "rate_limit_exceeded"
        assert refused.headers["Retry-After"] == "6"
    # neither another connection nor a job counts with it
    other = a_request(mappedFields={"b_db": {"orders": ["id"]}})
    assert (await try_job(api, other)).status == 200
    assert (await api.ask(a_request())).status == 202
    await trio.sleep(6)
    assert (await try_job(api, a_request())).status == 200


async def test_refused_request_takes_nothing_from_the_limit(autojump_clock: MockClock) -> None:
    api = await an_api_over()
    for _ in range(11):
        assert (await try_job(api, a_request(metadata={"source": "other"}))).status == 400
    assert (await try_job(api, a_request())).status == 200
