"""What one tenant's part of a store does with keys of another."""

from urllib.parse import unquote

import pytest

from fetcher.adapters.tenant_objects import TenantObjects
from fetcher.domain.errors import ObjectNotFound
from fetcher.ports import ObjectStore
from tests.contract.objects.test_object_stores import KEY, get, put

OURS, THEIRS = "results/t1/", "results/t2/"

FOREIGN = [
    THEIRS + KEY,
    KEY,
    "results/" + KEY,
    "results/t1",
    "results/t1" + KEY,
    "results/t11/" + KEY,
    "results/T1/" + KEY,
    "/" + OURS + KEY,
    "./" + OURS + KEY,
    "",
    "results//t2/" + KEY,
]
SPELLED_OTHERWISE = [
    OURS + "../t2/" + KEY,
    OURS + "external-data/../../t2/" + KEY,
    OURS + "./../t2/" + KEY,
    OURS + "..",
    OURS + ".",
    OURS,
    OURS + "/" + KEY,
    OURS + "external-data//x.json",
    OURS + "external-data/",
    OURS + "..\\t2\\" + KEY,
    OURS + "%2e%2e/t2/" + KEY,
    OURS + "..%2ft2%2f" + KEY,
    OURS + "%252e%252e/t2/" + KEY,
    OURS + "x\0.json",
    OURS + "x\n.json",
]


@pytest.mark.parametrize("key", [*FOREIGN, *SPELLED_OTHERWISE])
async def test_nothing_lies_under_a_key_outside(plain_store: ObjectStore, key: str) -> None:
    await put(plain_store, THEIRS + KEY, b"theirs")
    await put(plain_store, KEY, b"of no tenant")
    tenant = TenantObjects(plain_store, OURS)
    await put(tenant, OURS + KEY, b"ours")
    assert await tenant.size(key) is None
    with pytest.raises(ObjectNotFound, match="object not found"):
        await get(tenant, key)
    assert await tenant.temporary_address(key, seconds=60) is None
    await tenant.delete(key)
    with pytest.raises(ValueError, match="tenant's folder"):
        await put(tenant, key, b"overwritten")
    assert await get(plain_store, THEIRS + KEY) == b"theirs"
    assert await get(plain_store, KEY) == b"of no tenant"
    assert await get(plain_store, OURS + KEY) == b"ours"


async def test_tenants_with_the_same_job_have_an_object_each(plain_store: ObjectStore) -> None:
    stores = {prefix: TenantObjects(plain_store, prefix) for prefix in (OURS, THEIRS)}
    for prefix, store in stores.items():
        await put(store, prefix + KEY, prefix.encode())
    assert await get(stores[OURS], OURS + KEY) == OURS.encode()
    await stores[THEIRS].delete(THEIRS + KEY)
    assert await stores[OURS].size(OURS + KEY) == len(OURS)
    assert await stores[THEIRS].size(THEIRS + KEY) is None


@pytest.mark.parametrize("prefix", ["", "/", "//", "t1", "results/t1"])
async def test_a_prefix_is_a_folder(plain_store: ObjectStore, prefix: str) -> None:
    with pytest.raises(ValueError, match="folder of its own"):
        TenantObjects(plain_store, prefix)


def test_the_spellings_are_what_they_claim() -> None:
    """Decoded or resolved, each names something that is not plainly in the folder."""
    for key in SPELLED_OTHERWISE:
        decoded = unquote(unquote(key)).replace("\\", "/")
        parts = decoded.removeprefix(OURS).split("/")
        assert {"", ".", ".."} & set(parts) or not decoded.isprintable()
