"""Who gets Redis, and what an Engine remembers of schemas."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from fetcher.adapters.memory import MemorySchemaCache, MemoryTestLimiter
from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher.api.metrics import render, show_redis
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.shared_memory import open_shared_memory, redis_address
from fetcher.bridge import open_asyncio
from fetcher.datasources.engines import RequestEngines, SourceSettings
from fetcher.domain.connections import SourceType
from fetcher.domain.jobs import JobOptions
from fetcher.settings import Role, Settings
from fetcher_engine import SchemaSnapshot, TenantContext
from tests.unit.datasources.requested import a_connection

TENANT = TenantContext("default")
REDIS = Settings(redis_host="redis.test:7000", redis_password="p", redis_db=3)  # type: ignore[arg-type] # a text


async def test_a_manager_shares_what_it_remembers_by_redis() -> None:
    async with open_asyncio(pytest.fail), open_shared_memory(REDIS, Role.MANAGER) as shared:
        assert isinstance(shared.limiter, RedisTestLimiter)
        assert isinstance(shared.schemas, RedisSchemaCache)
        assert [probe.name for probe in shared.probes] == ["redis"]
        assert shared.is_away is not None
        assert not shared.is_away()


@pytest.mark.parametrize(("settings", "role"), [(Settings(), Role.ALL), (REDIS, Role.WORKER)])
async def test_others_remember_for_themselves(settings: Settings, role: Role) -> None:
    async with open_shared_memory(settings, role) as shared:
        assert isinstance(shared.limiter, MemoryTestLimiter)
        assert isinstance(shared.schemas, MemorySchemaCache)
        assert shared.probes == ()
        assert shared.is_away is None


@pytest.mark.parametrize("settings", [Settings(), REDIS])
async def test_a_time_to_live_of_0_turns_the_cache_off(settings: Settings) -> None:
    off = settings.model_copy(update={"schema_cache_ttl_seconds": 0})
    async with open_asyncio(pytest.fail), open_shared_memory(off, Role.ALL) as shared:
        assert shared.schemas is None
        await shared.forget_schemas(TENANT, "sales_db")


async def test_what_is_forgotten_is_gone() -> None:
    async with open_shared_memory(Settings(), Role.ALL) as shared:
        assert shared.schemas is not None
        await shared.schemas.put_schema(TENANT, SchemaSnapshot("sales_db"), "f1")
        await shared.forget_schemas(TENANT, "other_db")
        assert await shared.schemas.get_schema(TENANT, "sales_db", "f1") is not None
        await shared.forget_schemas(TENANT, "sales_db")
        assert await shared.schemas.get_schema(TENANT, "sales_db", "f1") is None


def test_the_address_is_that_of_the_settings() -> None:
    address = redis_address(REDIS)
    assert (address.host, address.port, address.database) == ("redis.test", 7000, 3)
    assert address.password == "p"
    assert "'p'" not in repr(address)


async def test_jobs_ask_the_source_and_the_api_remembers(tmp_path: Path) -> None:
    async with open_adapters(Settings(fetcher_data_dir=tmp_path), Role.ALL) as adapters:
        jobs, api = adapters.engines, adapters.remembering_engines
        assert isinstance(jobs, RequestEngines)
        assert isinstance(api, RequestEngines)
        assert jobs._schema_cache is None
        assert api._schema_cache is adapters.shared.schemas
        assert api._sessions is jobs._sessions


async def test_a_schema_is_discovered_once_while_it_is_remembered_and_fresh_ones_anew(
    tmp_path: Path,
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE items (id INTEGER)")
    settings = SourceSettings(decrypt=lambda _stored, _version: "", sqlite_folder=tmp_path)
    connection = replace(
        a_connection(SourceType.SQLITE), database_name="shop.db", host="", port=0, schema=None
    )
    cache = MemorySchemaCache()
    engines = RequestEngines(settings).remembering(cache)
    first = engines.engine_for([connection], JobOptions())
    assert await first.discover_schema(TENANT, connection.config_name) is not None
    assert len(cache._entries) == 1
    remembered = SchemaSnapshot(connection.config_name, ignores_case=True)
    [(tenant_id, name, fingerprint)] = cache._entries
    assert (tenant_id, name) == ("default", connection.config_name)
    await cache.put_schema(TENANT, remembered, fingerprint)
    again = engines.engine_for([connection], JobOptions())
    assert await again.discover_schema(TENANT, connection.config_name) is remembered
    fresh = await again.discover_schema_fresh(TENANT, connection.config_name)
    assert fresh is not remembered
    assert await cache.get_schema(TENANT, connection.config_name, fingerprint) is remembered


def test_the_gauge_is_asked_at_every_scrape() -> None:
    registry, away = CollectorRegistry(), [False]
    show_redis(registry, lambda: away[0])
    assert b"fetcher_redis_away 0.0" in render(registry)
    away[0] = True
    assert b"fetcher_redis_away 1.0" in render(registry)
