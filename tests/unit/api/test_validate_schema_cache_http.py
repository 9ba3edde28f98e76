"""Where validate-schema takes its schemas from: spec rest-api 8.9, 12.4, 17.4."""

from collections.abc import Mapping, Sequence

import trio

from fetcher.adapters.memory.schema_cache import MemorySchemaCache
from fetcher_engine import SchemaSnapshot, TableSnapshot, TenantContext
from tests.unit.api.harness import CONNECTIONS, Answered, Api, a_connection, an_api

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


async def an_api_that_counts() -> tuple[Api, list[str]]:
    api, discoveries = an_api(), list[str]()
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
    assert discoveries == ["sales_db"] * 2


async def test_schema_operation_neither_reads_nor_fills_the_cache() -> None:
    api, discoveries = await an_api_that_counts()
    api.engines.cache = MemorySchemaCache()
    [connection] = await api.records.connections.find_by_config_names(["sales_db"])
    for _ in range(2):
        assert (await api.get(f"{CONNECTIONS}/{connection.id}/schema")).status == 200
    await validate(api, {"sales_db": {"orders": ["id"]}})
    assert discoveries == ["sales_db"] * 3
