"""plugin_crm on a MongoDB-compatible server: spec datasources 15 and 19.11."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from fetcher.datasources.engines import RequestEngines
from fetcher.datasources.mongodb import rows
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest
from tests.integration.datasources.crm_database import (
    ACME,
    BETA,
    Source,
    failure_of,
    fill,
    read,
    to,
)
from tests.integration.datasources.harness import TENANT, a_connection, document, engines
from tests.integration.datasources.relay import relay
from tests.unit.datasources.plugin_crm.sealing import (
    KEYS,
    sealed,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def crm(source: Source) -> Source:
    fill(source)
    return source


@pytest.fixture
async def opened() -> AsyncIterator[RequestEngines]:
    async with engines(sealed_field_keys=KEYS) as started:
        yield started


async def test_every_organisations_documents_are_one_table_in_the_order_of_their_names(
    crm: Source, opened: RequestEngines
) -> None:
    data = await document(opened, to(crm), {"holders": ["n", "name"], "alias": ["_id"]})
    assert json.loads(data) == {
        "plugin_crm": {
            "alias": [{"_id": 6}],
            "holders": [
                {"_id": 1, "n": 9007199254740994, "name": "Ana Lima"},
                {"_id": 2, "n": 9007199254740995, "name": "Größe"},
                {"_id": 3, "n": 9007199254740996, "name": "Bo"},
                {"_id": 4, "name": ""},
                {"_id": 5, "name": 7},
            ],
        }
    }


async def test_names_without_organisations_ids_go_by_their_prefix(
    crm: Source, opened: RequestEngines
) -> None:
    found = await read(opened, to(crm), {"legacy": ["_id"]})
    assert found == {"legacy": [{"_id": 1}, {"_id": 2}]}


@pytest.mark.parametrize("stated", [BETA, f" {BETA},nobody", [BETA]])
async def test_a_connection_may_name_the_organisations(
    crm: Source, opened: RequestEngines, stated: object
) -> None:
    connection = to(crm, metadata={"organizationIds": stated})
    found = await read(opened, connection, {"holders": ["_id"]})
    assert [row["_id"] for row in found["holders"]] == [3, 4, 5]


@pytest.mark.parametrize("stated", ["", "a,,b", [], [1], 7, None])
async def test_organisations_that_cannot_be_read_are_not_all_of_them(
    crm: Source, stated: object
) -> None:
    connection = to(crm, metadata={"organizationIds": stated})
    error = await failure_of(KEYS, connection, {"holders": ["_id"]})
    assert error.category is ErrorCategory.VALIDATION
    assert "organizationIds" in error.message


@pytest.mark.parametrize("logical", ["nothing", "holder", "Holders", f"holders_{BETA}"])
async def test_a_logical_collection_that_nobody_has(crm: Source, logical: str) -> None:
    error = await failure_of(KEYS, to(crm), {logical: ["_id"]})
    assert error.category is ErrorCategory.VALIDATION
    assert [(f.type, f.table) for f in error.failures] == [("table_not_found", logical)]


async def test_one_that_goes_away_between_plan_and_read_is_a_changed_schema(
    crm: Source, opened: RequestEngines
) -> None:
    crm["going_a"].insert_one({"_id": 1})
    engine = opened.engine_for([to(crm)], JobOptions(), {"plugin_crm": {"going": ("_id",)}})
    request = ExtractionRequest(mapped_fields={"plugin_crm": {"going": ["_id"]}})
    plan = await engine.plan_extraction(TENANT, request)
    crm["going_a"].drop()
    with pytest.raises(EngineError) as caught:
        await engine.execute_extraction(plan)
    assert (caught.value.stage, caught.value.reason) == ("schema", "schema changed")


async def test_of_another_type_it_is_a_source_like_any_other() -> None:
    """Row 'non-Mongo plugin_crm: Engine path'."""
    async with engines() as opened:
        with pytest.raises(EngineError) as caught:
            await read(
                opened,
                replace(a_connection(source_type=SourceType.SQLITE), config_name="plugin_crm"),
                {"holders": ["_id"]},
            )
    # no collection of MongoDB was asked for: the type is one that is off
    assert caught.value.reason == "type_off"


async def test_under_another_name_it_is_mongodb_as_it_is(
    crm: Source, opened: RequestEngines
) -> None:
    connection = replace(to(crm), config_name="my_plugin_crm")
    data = await document(opened, connection, {"holders": ["name"], f"alias_{ACME}": ["_id"]})
    assert json.loads(data) == {
        "my_plugin_crm": {
            f"alias_{ACME}": [{"_id": 6}],
            "holders": [{"_id": 10, "name": "not sealed"}],
        }
    }


# --- like any other source -------------------------------------------------------------------


async def test_without_a_request_the_schema_is_what_lies_in_the_database(
    crm: Source, opened: RequestEngines
) -> None:
    """What validation maps logical names to (spec engine 17.8)."""
    schema = await opened.engine_for([to(crm)], JobOptions()).discover_schema(TENANT, "plugin_crm")
    names = [table.name for table in schema.tables]
    assert {"holders", f"holders_{ACME}", f"holders_{BETA}", f"alias_{ACME}"} <= set(names)
    assert names == sorted(names)


async def test_rows_are_estimated_over_all_organisations(
    crm: Source, opened: RequestEngines
) -> None:
    engine = opened.engine_for([to(crm)], JobOptions(), {"plugin_crm": {"holders": ("*",)}})
    (table,) = (await engine.discover_schema(TENANT, "plugin_crm")).tables
    counts = [crm[f"holders_{organisation}"].count_documents({}) for organisation in (ACME, BETA)]
    assert all(counts)
    assert table.estimated_rows == sum(counts)


async def test_a_mixed_job_has_both_sources(crm: Source, opened: RequestEngines) -> None:
    plain = replace(to(crm), config_name="copy", id=a_connection().id)
    engine = opened.engine_for([to(crm), plain], JobOptions())
    fields = {"plugin_crm": {"alias": ["banking_details.account"]}, "copy": {"holders": ["name"]}}
    requested = {c: {t: tuple(f) for t, f in tables.items()} for c, tables in fields.items()}
    engine = opened.engine_for([to(crm), plain], JobOptions(), requested)
    plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=fields))
    result = await engine.execute_extraction(plan)
    assert result.direct is not None
    assert json.loads(result.direct.data) == {
        "copy": {"holders": [{"_id": 10, "name": "not sealed"}]},
        "plugin_crm": {"alias": [{"_id": 6, "banking_details": {"account": "0001"}}]},
    }


async def test_batches_are_bounded_and_complete_over_all_organisations(
    crm: Source, opened: RequestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 100)
    for part in range(3):
        crm[f"big_{part}"].insert_many(
            [{"_id": part * 400 + n, "name": sealed(f"{n} " * 100)} for n in range(400)]
        )
    found = await read(opened, to(crm), {"big": ["name"]})
    assert found["big"] == [
        {"_id": part * 400 + n, "name": f"{n} " * 100} for part in range(3) for n in range(400)
    ]


@asynccontextmanager
async def cut_after(source: Source, size: int) -> AsyncIterator[Connection]:
    host, port = source.client.address or ("", 0)
    async with relay(host, port, cut_after=size) as between:
        yield to(source, host="127.0.0.1", port=between.port)
        assert between.reached.is_set()


async def test_a_cut_connection_fails_the_job(crm: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_SERVER_BATCH_DOCUMENTS", 200)
    for part in range(2):
        crm[f"long_{part}"].insert_many(
            [{"_id": n, "name": sealed("x"), "t": "y" * 900} for n in range(1500)]
        )
    # discovery reads 1 000 documents of each first
    async with cut_after(crm, 2_100_000 + 1_800_000) as connection:
        error = await failure_of(KEYS, connection, {"long": ["*"]})
    assert (error.stage, error.reason) == ("rows", "reset")
