"""Where validate-schema takes its schemas from: spec rest-api 8.9, 12.4, 17.4."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.memory.schema_cache import MemorySchemaCache
from fetcher_engine import SchemaSnapshot, TableSnapshot, TenantContext
from tests.unit.api.harness import (
    CONNECTIONS,
    JOBS,
    Answered,
    Api,
    a_connection,
    a_request,
    an_api,
)

ORDERS = SchemaSnapshot("", (TableSnapshot("orders", ("id",)),))


class BrokenCache:
    """A cache that neither gives nor takes."""

    async def get_schema(
        self, tenant: TenantContext, config_name: str, fingerprint: str
    ) -> SchemaSnapshot | None:
        raise ConnectionError("redis://secret@cache")

    async def put_schema(
        self, tenant: TenantContext, snapshot: SchemaSnapshot, fingerprint: str
    ) -> None:
        raise ConnectionError("redis://secret@cache")

    async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
        raise ConnectionError("redis://secret@cache")


async def an_api_that_counts(**services: Any) -> tuple[Api, list[str]]:
    api, discoveries = an_api(**services), list[str]()
    await api.records.connections.insert(a_connection())
    source = api.engines.source("sales_db")
    source.schema = ORDERS

    async def count() -> None:
        await trio.lowlevel.checkpoint()
        discoveries.append("sales_db")

    source.before_discovery = count
    return api, discoveries


async def validate(api: Api, mapped: Mapping[str, Mapping[str, Sequence[str]]]) -> Answered:
    return await api.call("POST", f"{CONNECTIONS}/validate-schema", {"mappedFields": mapped})


async def test_schema_that_is_remembered_is_not_read_again() -> None:
    api, discoveries = await an_api_that_counts()
    api.engines.cache = MemorySchemaCache()
    assert (await validate(api, {"sales_db": {"orders": ["id"]}})).status == 200
    refused = await validate(api, {"sales_db": {"orders": ["no"]}})
    assert refused.json["errors"][0]["field"] == "no"
    assert discoveries == ["sales_db"]


async def test_failing_cache_changes_no_result() -> None:
    api, discoveries = await an_api_that_counts()
    api.engines.cache = BrokenCache()
    assert (await validate(api, {"sales_db": {"orders": ["id"]}})).status == 200
    refused = await validate(api, {"sales_db": {"orders": ["no"]}})
    assert refused.status == 422
    assert b"secret" not in refused.raw
    # once for each, and anew before something is said to be lacking
    assert discoveries == ["sales_db"] * 3


async def test_schema_operation_neither_reads_nor_fills_the_cache() -> None:
    api, discoveries = await an_api_that_counts()
    api.engines.cache = MemorySchemaCache()
    [connection] = await api.records.connections.find_by_config_names(["sales_db"])
    for _ in range(2):
        assert (await api.get(f"{CONNECTIONS}/{connection.id}/schema")).status == 200
    await validate(api, {"sales_db": {"orders": ["id"]}})
    assert discoveries == ["sales_db"] * 3


@pytest.mark.parametrize("lacking", ["table", "field"])
async def test_what_was_made_since_is_found_and_what_is_lacking_is_looked_for_every_5_s(
    lacking: str, autojump_clock: MockClock
) -> None:
    cache = MemorySchemaCache()
    api, discoveries = await an_api_that_counts(forget_schemas=cache.invalidate_schema)
    api.engines.cache = cache
    assert (await validate(api, {"sales_db": {"orders": ["id"]}})).status == 200
    mapped = {"sales_db": {"orders": ["total"]} if lacking == "field" else {"refunds": ["id"]}}
    for _ in range(3):
        assert (await validate(api, mapped)).status == 422
    assert len(discoveries) == 2
    made = (TableSnapshot("orders", ("id", "total")), TableSnapshot("refunds", ("id",)))
    api.engines.source("sales_db").schema = SchemaSnapshot("", made)
    await trio.sleep(5)
    assert (await validate(api, mapped)).status == 200
    assert len(discoveries) == 3


async def test_both_ways_to_validate_look_anew_once_together(autojump_clock: MockClock) -> None:
    cache = MemorySchemaCache()
    api, discoveries = await an_api_that_counts(forget_schemas=cache.invalidate_schema)
    api.engines.cache = cache
    assert (await validate(api, {"sales_db": {"orders": ["id"]}})).status == 200
    assert (await validate(api, {"sales_db": {"refunds": ["id"]}})).status == 422
    body = a_request(mappedFields={"sales_db": {"refunds": ["id"]}})
    assert (await api.call("POST", f"{JOBS}/validate", body)).status == 422
    assert len(discoveries) == 2


async def test_job_that_is_tried_finds_what_was_made_since() -> None:
    cache = MemorySchemaCache()
    api, discoveries = await an_api_that_counts(forget_schemas=cache.invalidate_schema)
    api.engines.cache = cache
    assert (await validate(api, {"sales_db": {"orders": ["id"]}})).status == 200
    api.engines.source("sales_db").schema = SchemaSnapshot("", (TableSnapshot("refunds", ("id",)),))
    body = a_request(mappedFields={"sales_db": {"refunds": ["id"]}})
    assert (await api.call("POST", f"{JOBS}/validate", body)).status == 200
    assert len(discoveries) == 2
