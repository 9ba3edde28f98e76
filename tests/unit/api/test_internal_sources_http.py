"""Jobs on internal data sources: spec datasources 14, rest-api 9.2 steps 8 to 10."""

from dataclasses import replace
from typing import Any

import pytest

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.connections import Origin, SourceType
from fetcher.domain.internal_sources import internal_source_id
from fetcher.domain.json_values import JsonValue
from fetcher_engine import SourceFailure, Stage
from tests.unit.api.harness import Api, a_body, a_connection, a_request, an_api, stored

CRM_ID = internal_source_id("plugin_crm")


def an_api_with_crm(source_type: SourceType = SourceType.MONGODB) -> Api:
    crm = a_connection(
        id=CRM_ID,
        config_name="plugin_crm",
        type=source_type,
        product_name="",
        encryption_key_version="",
        origin=Origin.INTERNAL,
        plain_password="s3cret",
    )
    return an_api(internal_sources=EnvironmentSources({"plugin_crm": crm}))


def on_crm(**members: Any) -> dict[str, JsonValue]:
    return a_request(mappedFields={"plugin_crm": {"holders": ["name"]}}, **members)


async def test_an_internal_source_belongs_to_every_product_and_is_not_tested_before() -> None:
    api = an_api_with_crm()
    api.engines.source("plugin_crm").test_error = SourceFailure(Stage.TCP, "refused")
    for product in ("acme-reports", "another"):
        job = await stored(api, await api.ask(on_crm(metadata={"source": product})))
        assert job.mapped_fields == {"plugin_crm": {"holders": ("name",)}}
    assert api.engines.asked == []


async def test_internal_and_stored_sources_come_each_from_its_own_place() -> None:
    """A record that is stored under an internal name is dead."""
    api = an_api_with_crm()
    records = [a_connection(), a_connection(config_name="plugin_crm")]
    for record in records:
        await api.records.connections.insert(record)
    internal = EnvironmentSources({"plugin_crm": replace(records[1], id=CRM_ID)})
    resolve = ResolveSources(internal=internal, stored=api.records.connections)
    found = await resolve(["sales_db", "plugin_crm"])
    assert [(each.config_name, each.id) for each in found] == [
        ("plugin_crm", CRM_ID),
        ("sales_db", records[0].id),
    ]
    both: JsonValue = {"plugin_crm": {"holders": ["name"]}, "sales_db": {"orders": ["id"]}}
    job = await stored(api, await api.ask(a_request(mappedFields=both)))
    assert sorted(job.mapped_fields) == ["plugin_crm", "sales_db"]
    assert api.engines.asked == [["sales_db"]]


@pytest.mark.parametrize("name", ["plugin_crm", "midaz_onboarding", "midaz_transaction"])
async def test_one_that_is_not_configured_is_the_callers_error(name: str) -> None:
    """Improved row: 400 instead of 500; no fall-back to a stored connection of the name."""
    api = an_api()
    for config_name in (name, "sales_db"):
        await api.records.connections.insert(a_connection(config_name=config_name))
    fields: JsonValue = {name: {"t": ["a"]}, "sales_db": {"t": ["a"]}}
    answered = await api.ask(a_request(mappedFields=fields))
    assert answered.problem == (400, "FET-1020", "Missing Data Source")
    assert answered.json["message"] == (
        f"internal datasource '{name}' not configured via environment variables"
    )


@pytest.mark.parametrize(
    ("field", "condition"),
    [
        ("document", {"like": ["9%"]}),
        ("document", {"eq": ["9"], "gt": ["1"]}),
        ("contact.primary_email", {"between": ["a", "b"]}),
        ("natural_person.mother_name", {"eq": ["Ana"]}),
    ],
)
async def test_filters_that_no_hash_answers_are_refused_with_their_path(
    field: str, condition: JsonValue
) -> None:
    filters: JsonValue = {"plugin_crm": {"holders": {field: condition}}}
    answered = await an_api_with_crm().ask(on_crm(filters=filters))
    assert answered.problem == (400, "FET-0401", "Invalid Data Request")
    assert "dataRequest.filters.plugin_crm.holders" in answered.json["message"]
    assert field in answered.json["message"]
    elsewhere = await an_api_with_crm(SourceType.POSTGRESQL).ask(on_crm(filters=filters))
    assert elsewhere.status == 202


@pytest.mark.parametrize(
    ("field", "condition"),
    [
        ("document", {"ne": ["9", None], "not_null": [True]}),
        ("natural_person.mother_name", {"is_null": [True]}),
        ("status", {"like": ["act%"]}),
    ],
)
async def test_filters_that_can_be_answered_are_taken(field: str, condition: JsonValue) -> None:
    filters: JsonValue = {"plugin_crm": {"holders": {field: condition}}}
    assert (await an_api_with_crm().ask(on_crm(filters=filters))).status == 202


async def test_nobody_else_gets_such_a_name() -> None:
    for name in ("plugin_crm", "midaz_onboarding", "midaz_transaction"):
        answered = await an_api_with_crm().create(a_body(configName=name))
        assert answered.problem[:2] == (409, "FET-1002")


async def test_they_are_not_among_the_connections_of_a_product() -> None:
    """Decision: not listed under a product filter, usable in jobs."""
    answered = await an_api_with_crm().call(
        "GET", "/v1/management/connections", headers={"X-Product-Name": "acme-reports"}
    )
    assert (answered.json["items"], answered.json["total"]) == ([], 0)
