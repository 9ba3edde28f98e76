"""MemorySchemaCache: bounded, by tenant, config name and fingerprint (spec rest-api 12.4)."""

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.memory import MemorySchemaCache
from fetcher.adapters.memory import schema_cache as cache_module
from fetcher_engine import SchemaCache, SchemaSnapshot, TableSnapshot, TenantContext

TENANT = TenantContext("t1")
OTHER_TENANT = TenantContext("t2")


def a_snapshot(config_name: str = "sales_db", *, fields: int = 2) -> SchemaSnapshot:
    table = TableSnapshot("orders", tuple(f"f{n}" for n in range(fields)))
    return SchemaSnapshot(config_name, (table,))


async def test_schema_is_found_under_its_own_key_only(autojump_clock: MockClock) -> None:
    cache: SchemaCache = MemorySchemaCache()
    await cache.put_schema(TENANT, a_snapshot(), "f1")
    assert await cache.get_schema(TENANT, "sales_db", "f1") == a_snapshot()
    assert await cache.get_schema(TENANT, "sales_db", "f2") is None
    assert await cache.get_schema(TENANT, "other_db", "f1") is None
    assert await cache.get_schema(OTHER_TENANT, "sales_db", "f1") is None


async def test_entry_ends_after_its_time_to_live(autojump_clock: MockClock) -> None:
    cache = MemorySchemaCache(ttl_seconds=300)
    await cache.put_schema(TENANT, a_snapshot(), "f1")
    await trio.sleep(299)
    assert await cache.get_schema(TENANT, "sales_db", "f1") is not None
    await trio.sleep(1)
    assert await cache.get_schema(TENANT, "sales_db", "f1") is None
    assert not cache._entries


async def test_later_schema_replaces_the_earlier(autojump_clock: MockClock) -> None:
    cache = MemorySchemaCache()
    await cache.put_schema(TENANT, a_snapshot(fields=2), "f1")
    await trio.sleep(200)
    await cache.put_schema(TENANT, a_snapshot(fields=3), "f1")
    await trio.sleep(200)
    assert await cache.get_schema(TENANT, "sales_db", "f1") == a_snapshot(fields=3)


async def test_invalidation_forgets_every_fingerprint_of_the_connection(
    autojump_clock: MockClock,
) -> None:
    cache = MemorySchemaCache()
    for tenant in (TENANT, OTHER_TENANT):
        for fingerprint in ("f1", "f2"):
            await cache.put_schema(tenant, a_snapshot(), fingerprint)
    await cache.put_schema(TENANT, a_snapshot("other_db"), "f1")
    await cache.invalidate_schema(TENANT, "sales_db")
    assert await cache.get_schema(TENANT, "sales_db", "f1") is None
    assert await cache.get_schema(TENANT, "sales_db", "f2") is None
    assert await cache.get_schema(TENANT, "other_db", "f1") is not None
    assert await cache.get_schema(OTHER_TENANT, "sales_db", "f1") is not None
    await cache.invalidate_schema(TENANT, "never_seen")


async def test_number_of_entries_is_bounded_and_the_least_used_goes_first(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MAX_ENTRIES", 2)
    cache = MemorySchemaCache()
    await cache.put_schema(TENANT, a_snapshot("a_db"), "f")
    await cache.put_schema(TENANT, a_snapshot("b_db"), "f")
    assert await cache.get_schema(TENANT, "a_db", "f") is not None
    await cache.put_schema(TENANT, a_snapshot("c_db"), "f")
    assert await cache.get_schema(TENANT, "b_db", "f") is None
    assert await cache.get_schema(TENANT, "a_db", "f") is not None
    assert await cache.get_schema(TENANT, "c_db", "f") is not None


async def test_number_of_names_is_bounded(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MAX_NAMES", 10)
    cache = MemorySchemaCache()
    await cache.put_schema(TENANT, a_snapshot("a_db", fields=4), "f")
    await cache.put_schema(TENANT, a_snapshot("b_db", fields=4), "f")
    assert await cache.get_schema(TENANT, "a_db", "f") is not None
    await cache.put_schema(TENANT, a_snapshot("c_db", fields=4), "f")
    assert await cache.get_schema(TENANT, "b_db", "f") is None
    await cache.put_schema(TENANT, a_snapshot("a_db", fields=10), "f")
    assert await cache.get_schema(TENANT, "a_db", "f") is None
    assert await cache.get_schema(TENANT, "c_db", "f") is not None
    assert cache._names == 5


@pytest.mark.parametrize(("bound", "most"), [("MAX_ENTRIES", 10), ("MAX_NAMES", 30)])
async def test_a_tenant_that_fills_the_cache_loses_its_own_schemas_first(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(cache_module, bound, most)
    cache = MemorySchemaCache()
    for number in range(3):
        await cache.put_schema(OTHER_TENANT, a_snapshot(), f"f{number}")
    for number in range(40):
        await cache.put_schema(TENANT, a_snapshot(), f"f{number}")
    for number in range(3):
        assert await cache.get_schema(OTHER_TENANT, "sales_db", f"f{number}") is not None
    kept = [await cache.get_schema(TENANT, "sales_db", f"f{number}") for number in range(40)]
    assert [each is not None for each in kept] == [False] * 33 + [True] * 7
    await cache.invalidate_schema(TENANT, "sales_db")
    await cache.invalidate_schema(OTHER_TENANT, "sales_db")
    assert (cache._entries, cache._names, cache._use) == ({}, 0, {})
