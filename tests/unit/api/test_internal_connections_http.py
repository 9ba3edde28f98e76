"""Internal data sources as connections: spec rest-api 13, 8.2, 17.3."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.domain.connections import Connection, Origin
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.internal_sources import (
    INTERNAL_SOURCES,
    InternalSourceMissing,
    internal_source_id,
    internal_source_name,
)
from fetcher.domain.tenants import Tenant
from fetcher_engine import SchemaSnapshot, TableSnapshot
from tests.unit.api.harness import CONNECTIONS, PRODUCT, START, Answered, Api, a_connection, an_api

SINCE_EVER = datetime(1, 1, 1, tzinfo=UTC)

IDS = {
    "midaz_onboarding": "d23dda0c-5f1a-5d94-a584-ea056a9fa8c1",
    "midaz_transaction": "1efa2c9e-9d9c-5a4c-b778-d79bceec1f6a",
    "plugin_crm": "8de55b81-916c-5ec9-bee3-7c05e8f32f29",
}
"""Without a tenant (spec 13)."""


def an_internal_one(name: str) -> Connection:
    return a_connection(
        id=internal_source_id(name),
        config_name=name,
        type=INTERNAL_SOURCES[name],
        host=f"{name.replace('_', '-')}.internal.test",
        product_name="",
        password_encrypted="",
        encryption_key_version="",
        origin=Origin.INTERNAL,
        plain_password="s3cret",
        created_at=SINCE_EVER,
        updated_at=SINCE_EVER,
    )


ALL = tuple(INTERNAL_SOURCES)


async def an_api_with(
    internal: Sequence[str] = ALL, stored: Sequence[str] = (), **options: Any
) -> Api:
    sources = EnvironmentSources({name: an_internal_one(name) for name in internal})
    api = an_api(**{"internal_sources": sources} | options)
    for number, name in enumerate(stored):
        created_at = START + timedelta(seconds=number)
        await api.records.connections.insert(a_connection(config_name=name, created_at=created_at))
    return api


class Failing:
    """Internal sources of which one cannot be resolved now."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def find(self, config_name: str) -> Connection:
        if config_name == self._name:
            raise PortUnavailable("the tenant manager is away")
        if config_name == "plugin_crm":
            return an_internal_one(config_name)
        raise InternalSourceMissing(config_name)


async def page(api: Api, query: str = "", headers: dict[str, str] | None = None) -> Any:
    answered = await api.get(f"{CONNECTIONS}?sortOrder=asc&{query}", headers)
    assert answered.status == 200, answered.raw
    return [item["configName"] for item in answered.json["items"]], answered.json["total"]


# --- listed ------------------------------------------------------------------------------------


async def test_they_come_first_by_name() -> None:
    api = await an_api_with(ALL[::-1], ["a_db", "b_db"])
    assert await page(api) == ([*sorted(ALL), "a_db", "b_db"], 5)


async def test_total_is_the_same_on_all_pages_and_no_page_is_too_long() -> None:
    """Improved row: the reference puts all of them on page 1, and counts them only there."""
    api = await an_api_with(stored=["a_db", "b_db", "c_db", "d_db"])
    pages = [await page(api, f"limit=2&page={number}") for number in range(1, 6)]
    assert pages == [
        (["midaz_onboarding", "midaz_transaction"], 7),
        (["plugin_crm", "a_db"], 7),
        (["b_db", "c_db"], 7),
        (["d_db"], 7),
        ([], 7),
    ]
    assert await page(api, "limit=5&page=2") == (["c_db", "d_db"], 7)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("type=mongodb", ["plugin_crm"]),
        ("type=POSTGRESQL", ["midaz_onboarding", "midaz_transaction", "a_db"]),
        ("type=MYSQL", []),
        ("host=plugin-crm.internal.test", ["plugin_crm"]),
        ("databaseName=sales&type=MONGODB", ["plugin_crm"]),
        ("databaseName=other", []),
        ("metadata.team=bi", []),
        ("startDate=2026-03-01", [*sorted(ALL), "a_db"]),
        ("endDate=2020-01-01", sorted(ALL)),
    ],
)
async def test_filters(query: str, found: list[str]) -> None:
    api = await an_api_with(stored=["a_db"])
    assert await page(api, query) == (found, len(found))


async def test_they_are_left_out_of_a_product_and_of_the_unassigned() -> None:
    api = await an_api_with(stored=["a_db"])
    assert await page(api, headers=PRODUCT) == (["a_db"], 1)
    assert await page(api, headers={"X-Product-Name": "unknown"}) == ([], 0)
    assert (await api.get(f"{CONNECTIONS}/unassigned")).json["total"] == 0


async def test_one_that_cannot_be_resolved_is_left_out_and_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = await an_api_with(stored=["a_db"], internal_sources=Failing("midaz_onboarding"))
    assert await page(api) == (["plugin_crm", "a_db"], 2)
    told = [line for line in capsys.readouterr().out.splitlines() if "not_listed" in line]
    assert len(told) == 1
    assert "code=unavailable" in told[0]
    assert "source=midaz_onboarding" in told[0]


# --- by id -------------------------------------------------------------------------------------


def test_ids_lead_back_to_names() -> None:
    assert {name: str(internal_source_id(name)) for name in ALL} == IDS
    assert [internal_source_name(internal_source_id(name)) for name in ALL] == list(ALL)
    acme = internal_source_id("plugin_crm", "acme")
    assert str(acme) == "dc9da466-285c-5964-9275-4a91f8a8d4b2"
    assert internal_source_name(acme, "acme") == "plugin_crm"
    assert internal_source_name(acme) is None


@pytest.mark.parametrize("name", ALL)
async def test_each_is_shown_by_its_id_without_secrets(name: str) -> None:
    answered = await (await an_api_with()).get(f"{CONNECTIONS}/{IDS[name]}")
    assert answered.status == 200
    assert answered.json == {
        "id": IDS[name],
        "configName": name,
        "type": str(INTERNAL_SOURCES[name]),
        "host": f"{name.replace('_', '-')}.internal.test",
        "port": 5432,
        "databaseName": "sales",
        "userName": "reader",
        "createdAt": "0001-01-01T00:00:00Z",
        "updatedAt": "0001-01-01T00:00:00Z",
    }


async def test_a_tenants_has_an_id_of_its_own_and_no_other_is_found() -> None:
    acme, beta = (internal_source_id("plugin_crm", tenant) for tenant in ("acme", "beta"))
    sources = EnvironmentSources({"plugin_crm": replace(an_internal_one("plugin_crm"), id=acme)})
    api = an_api(internal_sources=sources, tenant=Tenant("acme"))
    api.engines.source("plugin_crm").schema = SchemaSnapshot("", ())
    assert (await api.get(f"{CONNECTIONS}/{acme}")).json["id"] == str(acme)
    assert (await api.get(f"{CONNECTIONS}/{acme}/schema")).status == 200
    for other in (beta, IDS["plugin_crm"]):
        assert (await api.get(f"{CONNECTIONS}/{other}")).status == 404
        assert (await api.get(f"{CONNECTIONS}/{other}/schema")).status == 404


async def test_they_are_tested_and_show_their_schema() -> None:
    api = await an_api_with()
    source = api.engines.source("plugin_crm")
    source.schema = SchemaSnapshot("", (TableSnapshot("holders_1", ("_id", "name")),))
    one = f"{CONNECTIONS}/{IDS['plugin_crm']}"
    assert (await api.call("POST", f"{one}/test")).json["status"] == "success"
    shown = await api.get(f"{one}/schema")
    assert (shown.json["configName"], shown.json["type"]) == ("plugin_crm", "MONGODB")
    assert shown.json["tables"] == [{"name": "holders_1", "fields": ["_id", "name"]}]


async def operations(api: Api, name: str) -> list[Answered]:
    one = f"{CONNECTIONS}/{IDS[name]}"
    return [
        await api.get(one),
        await api.call("POST", f"{one}/test"),
        await api.get(f"{one}/schema"),
    ]


async def test_one_that_is_not_configured_is_not_found() -> None:
    """Nor is a record that is stored under its name."""
    api = await an_api_with(["plugin_crm"], ["midaz_onboarding"])
    for answered in await operations(api, "midaz_onboarding"):
        assert answered.problem == (404, "FET-1001", "Entity Not Found")


async def test_one_that_cannot_be_resolved_is_a_500() -> None:
    api = await an_api_with(internal_sources=Failing("midaz_onboarding"))
    for answered in await operations(api, "midaz_onboarding"):
        assert answered.problem == (500, "FET-0002", "Internal Server Error")
        assert b"tenant manager" not in answered.raw


@pytest.mark.parametrize("name", ALL)
async def test_they_can_be_neither_changed_deleted_nor_assigned(name: str) -> None:
    api = await an_api_with()
    one = f"{CONNECTIONS}/{IDS[name]}"
    for answered in (
        await api.call("PATCH", one, {"port": 1}),
        await api.call("DELETE", one),
        await api.call("POST", f"{one}/assign", headers=PRODUCT),
    ):
        assert answered.problem == (404, "FET-1001", "Entity Not Found")
    assert (await api.get(one)).json["port"] == 5432
