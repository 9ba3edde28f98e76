"""What every schema cache does (engine spec 5.9, 12)."""

import pytest

from fetcher_engine import SchemaCache, TenantContext
from tests.contract.schema_cache.snapshots import a_snapshot, full_snapshot, utc_snapshot

SINGLE = TenantContext("default")
TENANT = TenantContext("t1")
OTHER = TenantContext("t2")


@pytest.mark.parametrize("make", [a_snapshot, full_snapshot, utc_snapshot])
@pytest.mark.parametrize("tenant", [SINGLE, TENANT])
async def test_what_was_put_comes_back_exactly(
    cache: SchemaCache, own: str, make: object, tenant: TenantContext
) -> None:
    assert callable(make)
    await cache.put_schema(tenant, make(own), "f1")
    found = await cache.get_schema(tenant, own, "f1")
    assert found == make(own)
    assert found is not None
    # what a table's equality does not cover
    assert [t.estimated_rows for t in found.tables] == [t.estimated_rows for t in make(own).tables]
    assert found.captured_at is None or found.captured_at.utcoffset() == (
        make(own).captured_at.utcoffset()
    )


async def test_it_is_found_under_its_own_key_only(cache: SchemaCache, own: str) -> None:
    await cache.put_schema(TENANT, a_snapshot(own), "f1")
    assert await cache.get_schema(TENANT, own, "f2") is None
    assert await cache.get_schema(TENANT, f"{own}_2", "f1") is None
    assert await cache.get_schema(OTHER, own, "f1") is None
    assert await cache.get_schema(SINGLE, own, "f1") is None


async def test_a_later_schema_replaces_the_earlier(cache: SchemaCache, own: str) -> None:
    await cache.put_schema(TENANT, a_snapshot(own), "f1")
    await cache.put_schema(TENANT, full_snapshot(own), "f1")
    assert await cache.get_schema(TENANT, own, "f1") == full_snapshot(own)


async def test_requests_for_different_tables_keep_their_schemas_side_by_side(
    cache: SchemaCache, own: str
) -> None:
    await cache.put_schema(TENANT, a_snapshot(own, fields=("a",)), "f1")
    await cache.put_schema(TENANT, a_snapshot(own, fields=("b",)), "f2")
    assert await cache.get_schema(TENANT, own, "f1") == a_snapshot(own, fields=("a",))
    assert await cache.get_schema(TENANT, own, "f2") == a_snapshot(own, fields=("b",))


async def test_invalidation_forgets_every_fingerprint_of_the_connection_and_nothing_else(
    cache: SchemaCache, own: str
) -> None:
    for tenant in (SINGLE, TENANT, OTHER):
        for fingerprint in ("f1", "f2"):
            await cache.put_schema(tenant, a_snapshot(own), fingerprint)
    await cache.put_schema(TENANT, a_snapshot(f"{own}_2"), "f1")
    await cache.invalidate_schema(TENANT, own)
    await cache.invalidate_schema(TENANT, f"{own}_never")
    assert await cache.get_schema(TENANT, own, "f1") is None
    assert await cache.get_schema(TENANT, own, "f2") is None
    assert await cache.get_schema(TENANT, f"{own}_2", "f1") is not None
    assert await cache.get_schema(OTHER, own, "f1") is not None
    assert await cache.get_schema(SINGLE, own, "f2") is not None


async def test_putting_after_an_invalidation_is_kept(cache: SchemaCache, own: str) -> None:
    await cache.put_schema(TENANT, a_snapshot(own), "f1")
    await cache.invalidate_schema(TENANT, own)
    await cache.put_schema(TENANT, full_snapshot(own), "f1")
    assert await cache.get_schema(TENANT, own, "f1") == full_snapshot(own)
