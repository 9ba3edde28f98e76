"""What lies in Redis for a schema (spec rest-api 12.4), and what is made of others' entries."""

import json
import time
from collections.abc import Callable

import pytest
import trio

from fetcher.adapters.redis import schema_cache as cache_module
from fetcher.adapters.redis import schema_values
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher.adapters.redis.server import RedisServer
from fetcher_engine import TenantContext
from tests.contract.schema_cache.snapshots import a_snapshot, full_snapshot
from tests.servers.redis_servers import OwnRedis
from tests.servers.waiting import eventually

SINGLE = TenantContext("default")
TENANT = TenantContext("acme-7")
KEY = b"fetcher:schema:sales_db"


def a_cache(
    server: RedisServer, *, single_tenant: str | None = "default", ttl_seconds: float = 300
) -> RedisSchemaCache:
    return RedisSchemaCache(server, ttl_seconds=ttl_seconds, single_tenant=single_tenant)


async def test_keys_are_the_wires(redis: OwnRedis, server: RedisServer) -> None:
    await a_cache(server).put_schema(SINGLE, full_snapshot(), "f1")
    many = a_cache(server, single_tenant=None)
    await many.put_schema(TENANT, full_snapshot(), "f1")
    await many.put_schema(SINGLE, full_snapshot(), "f1")
    assert set(redis.client.keys()) == {
        b"fetcher:schema:sales_db",
        b"tenant:acme-7:fetcher:schema:sales_db",
        b"tenant:default:fetcher:schema:sales_db",
    }


async def test_an_entry_is_its_end_and_json(redis: OwnRedis, server: RedisServer) -> None:
    await a_cache(server, ttl_seconds=45).put_schema(SINGLE, a_snapshot(), "f1")
    assert 44_000 < redis.client.pttl(KEY) <= 45_000
    assert redis.client.hkeys(KEY) == [b"f1"]
    value = redis.client.hget(KEY, "f1")
    assert isinstance(value, bytes)
    ends, _, text = value.partition(b" ")
    assert 44 < int(ends) / 1000 - time.time() <= 45
    assert json.loads(text) == {
        "version": 2,
        "configName": "sales_db",
        "capturedAt": None,
        "ignoresCase": False,
        "tables": [{"name": "orders", "fields": ["id"], "columns": [], "estimatedRows": None}],
        "ambiguous": [],
    }


async def test_entries_end_one_by_one(redis: OwnRedis, server: RedisServer) -> None:
    cache = a_cache(server)
    await a_cache(server, ttl_seconds=0.2).put_schema(SINGLE, a_snapshot(), "f1")
    await cache.put_schema(SINGLE, a_snapshot(), "f2")

    async def is_gone() -> bool:
        return await cache.get_schema(SINGLE, "sales_db", "f1") is None

    await eventually(is_gone, deadline_seconds=5)
    assert await cache.get_schema(SINGLE, "sales_db", "f2") == a_snapshot()
    assert redis.client.hkeys(KEY) == [b"f2"]


async def test_fingerprints_of_a_connection_are_bounded(
    redis: OwnRedis, server: RedisServer
) -> None:
    cache = a_cache(server)
    for number in range(16):
        await cache.put_schema(SINGLE, a_snapshot(), f"f{number}")
    await cache.put_schema(SINGLE, a_snapshot(), "f3")
    assert redis.client.hlen(KEY) == 16
    await cache.put_schema(SINGLE, a_snapshot(), "f16")
    assert redis.client.hkeys(KEY) == [b"f16"]


async def test_a_schema_that_is_too_large_is_not_kept(
    redis: OwnRedis, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_values, "MAX_BYTES", 300)
    cache = a_cache(server)
    await cache.put_schema(SINGLE, a_snapshot(fields=("x" * 200,)), "f1")
    assert redis.client.keys() == []
    await cache.put_schema(SINGLE, a_snapshot(), "f1")
    assert await cache.get_schema(SINGLE, "sales_db", "f1") == a_snapshot()


VALID = json.dumps({
    "version": 2,
    "configName": "sales_db",
    "capturedAt": None,
    "ignoresCase": False,
    "tables": [],
    "ambiguous": [],
})  # fmt: skip
FAR = str(int(time.time() * 1000) + 10**9)
OTHERS = [
    "",
    "x",
    VALID,
    f"{FAR} ",
    f"{FAR} null",
    f"{FAR} []",
    f"{FAR} {{}}",
    f"{FAR} {'[' * 5000}",
    f"{FAR} {'[' * 500}{']' * 500}",
    f"{FAR} \xff",
    f"1 {VALID}",
    f"nan {VALID}",
    f"{'9' * 40} {VALID}",
    FAR + " " + VALID.replace("sales_db", "other_db"),
    FAR + " " + VALID.replace("2,", "1,"),
    FAR + " " + VALID.replace("2,", "true,"),
    FAR + " " + VALID.replace("null", '"yesterday"'),
    FAR + " " + VALID.replace('"tables": []', '"tables": [{"name": 1}]'),
    FAR + " " + VALID.replace('"tables": []', '"tables": {"orders": {"columns": {}}}'),
    FAR + " " + VALID.replace("false", "0"),
]


@pytest.mark.parametrize("value", OTHERS, ids=range(len(OTHERS)))
async def test_an_entry_that_is_none_of_ours_is_a_miss_and_deleted(
    redis: OwnRedis, server: RedisServer, value: str
) -> None:
    redis.client.hset("fetcher:schema:sales_db", "f1", value.encode("latin-1"))
    assert await a_cache(server).get_schema(SINGLE, "sales_db", "f1") is None
    assert not redis.client.exists(KEY)
    assert not server.is_away


async def test_the_valid_one_of_these_is_found(redis: OwnRedis, server: RedisServer) -> None:
    redis.client.hset("fetcher:schema:sales_db", "f1", f"{FAR} {VALID}")
    found = await a_cache(server).get_schema(SINGLE, "sales_db", "f1")
    assert found is not None
    assert found.tables == ()


async def test_an_entry_that_is_too_large_does_not_cross(
    redis: OwnRedis, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "MAX_BYTES", 100)
    redis.client.hset("fetcher:schema:sales_db", "f1", f"{FAR} {VALID}{' ' * 200}")
    assert await a_cache(server).get_schema(SINGLE, "sales_db", "f1") is None
    assert not redis.client.exists(KEY)


@pytest.mark.parametrize(
    "put",
    [
        # the reference's own entry
        lambda redis: redis.client.set(
            KEY, '{"configName":"sales_db","tables":{"orders":{"columns":{"id":true}}}}', ex=300
        ),
        lambda redis: redis.client.rpush(KEY, "a"),
        lambda redis: redis.client.zadd(KEY, {"a": 1}),
    ],
)
@pytest.mark.parametrize("reads_first", [True, False])
async def test_a_key_of_another_kind_is_replaced(
    redis: OwnRedis, server: RedisServer, put: Callable[[OwnRedis], object], reads_first: bool
) -> None:
    put(redis)
    cache = a_cache(server)
    if reads_first:
        assert await cache.get_schema(SINGLE, "sales_db", "f1") is None
        assert not redis.client.exists(KEY)
    await cache.put_schema(SINGLE, full_snapshot(), "f1")
    assert await cache.get_schema(SINGLE, "sales_db", "f1") == full_snapshot()
    assert not server.is_away


async def test_one_process_forgets_for_all(redis: OwnRedis, server: RedisServer) -> None:
    ours, theirs = a_cache(server), a_cache(server)
    await ours.put_schema(SINGLE, a_snapshot(), "f1")
    assert await theirs.get_schema(SINGLE, "sales_db", "f1") == a_snapshot()
    await theirs.invalidate_schema(SINGLE, "sales_db")
    assert redis.client.keys() == []
    assert await ours.get_schema(SINGLE, "sales_db", "f1") is None


async def test_a_tenant_whose_id_would_be_another_key_is_refused(server: RedisServer) -> None:
    with pytest.raises(ValueError, match="cannot be a part of a key"):
        await a_cache(server).get_schema(TenantContext("a:b"), "sales_db", "f1")


async def test_many_at_once_wait_for_a_connection_and_do_not_fail(
    redis: OwnRedis, server: RedisServer
) -> None:
    cache = a_cache(server)
    found: list[object] = []
    await cache.put_schema(SINGLE, a_snapshot(), "f1")

    async def get() -> None:
        found.append(await cache.get_schema(SINGLE, "sales_db", "f1"))

    async with trio.open_nursery() as nursery:
        for _ in range(60):
            nursery.start_soon(get)
    assert found == [a_snapshot()] * 60
    assert redis.client.info("clients")["connected_clients"] <= 11
