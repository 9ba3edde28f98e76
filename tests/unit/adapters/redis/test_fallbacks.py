"""While Redis is away, process memory stands in (spec rest-api 8.7, 12.4)."""

import pytest
import trio
from redis.exceptions import ConnectionError  # noqa: A004 - redis-py's
from trio.testing import MockClock

from fetcher.adapters.redis.keys import limiter_key, schema_key
from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher.adapters.redis.server import RedisServer
from fetcher_engine import (
    ConnectionDescriptor,
    Engine,
    SchemaSnapshot,
    SchemaValidationRequest,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)
from tests.unit.adapters.redis.fake_redis import FakeRedis, a_server

TENANT = TenantContext("default")
SNAPSHOT = SchemaSnapshot("sales_db", (TableSnapshot("orders", ("id",)),))


def a_cache(server: RedisServer, *, ttl_seconds: float = 300) -> RedisSchemaCache:
    return RedisSchemaCache(server, ttl_seconds=ttl_seconds, single_tenant="default")


async def found(cache: RedisSchemaCache) -> SchemaSnapshot | None:
    return await cache.get_schema(TENANT, "sales_db", "f1")


async def test_the_limit_is_applied_by_the_process(autojump_clock: MockClock) -> None:
    client = FakeRedis()
    client.answer = ConnectionError()
    async with a_server(client) as server:
        limiter = RedisTestLimiter(server)
        assert [await limiter.take("c1") for _ in range(11)] == [0.0] * 10 + [6.0]
        assert await limiter.take("tenant:t1:c1") == 0
        await trio.sleep(6)
        assert await limiter.take("c1") == 0
        client.answer = 1500
        await trio.sleep(5)
        assert await limiter.take("c1") == 1.5


@pytest.mark.parametrize("answer", [None, b"1", -1, 6001, 1.5, [0]])
async def test_a_wait_that_cannot_be_is_none(autojump_clock: MockClock, answer: object) -> None:
    client = FakeRedis()
    client.answer = answer
    async with a_server(client) as server:
        assert await RedisTestLimiter(server).take("c1") == 0
        assert server.is_away


async def test_a_schema_that_was_put_meanwhile_lives_for_thirty_seconds(
    autojump_clock: MockClock,
) -> None:
    client = FakeRedis()
    client.answer = ConnectionError()
    async with a_server(client) as server:
        cache = a_cache(server)
        assert await found(cache) is None
        await cache.put_schema(TENANT, SNAPSHOT, "f1")
        await trio.sleep(29)
        assert await found(cache) == SNAPSHOT
        await trio.sleep(1)
        assert await found(cache) is None


async def test_a_shorter_time_to_live_counts_there_too(autojump_clock: MockClock) -> None:
    client = FakeRedis()
    client.answer = ConnectionError()
    async with a_server(client) as server:
        cache = a_cache(server, ttl_seconds=7)
        await cache.put_schema(TENANT, SNAPSHOT, "f1")
        await trio.sleep(7)
        assert await found(cache) is None


@pytest.mark.parametrize("use", ["get", "put", "invalidate"])
async def test_memory_is_emptied_once_redis_has_answered(
    autojump_clock: MockClock, use: str
) -> None:
    client = FakeRedis()
    client.answer = ConnectionError()
    async with a_server(client) as server:
        cache = a_cache(server)
        await cache.put_schema(TENANT, SNAPSHOT, "f1")
        await trio.sleep(5)
        client.answer = None
        match use:
            case "get":
                assert await cache.get_schema(TENANT, "other_db", "f1") is None
            case "put":
                await cache.put_schema(TENANT, SchemaSnapshot("other_db"), "f1")
            case _:
                await cache.invalidate_schema(TENANT, "other_db")
        client.answer = ConnectionError()
        assert await found(cache) is None


async def test_an_invalidation_while_redis_is_away_empties_memory(
    autojump_clock: MockClock,
) -> None:
    client = FakeRedis()
    client.answer = ConnectionError()
    async with a_server(client) as server:
        cache = a_cache(server)
        await cache.put_schema(TENANT, SNAPSHOT, "f1")
        await cache.invalidate_schema(TENANT, "other_db")
        assert await found(cache) == SNAPSHOT
        await cache.invalidate_schema(TENANT, "sales_db")
        assert await found(cache) is None


async def test_nothing_is_written_to_memory_while_redis_answers(autojump_clock: MockClock) -> None:
    client = FakeRedis()
    async with a_server(client) as server:
        cache = a_cache(server)
        await cache.put_schema(TENANT, SNAPSHOT, "f1")
        client.answer = ConnectionError()
        assert await found(cache) is None


async def test_an_engine_whose_cache_fails_says_the_same(autojump_clock: MockClock) -> None:
    """Spec rest-api 17.4, "cache read or write fails"."""
    client = FakeRedis()
    client.answer = ConnectionError()
    source = MemorySource.of_rows({"orders": [{"id": 1}]})
    registry, store = MemoryRegistry(), MemoryConnectionStore()
    registry.register("MEMORY", MemoryConnectorFactory(source))
    store.put(TENANT, ConnectionDescriptor(config_name="sales_db", type="MEMORY", host="h"))
    asked = SchemaValidationRequest.of({"sales_db": {"orders": ["id", "totl"]}})
    async with a_server(client) as server:
        cached = Engine(
            connector_registry=registry, connection_store=store, schema_cache=a_cache(server)
        )
        plain = Engine(connector_registry=registry, connection_store=store)
        report = await cached.validate_schema(TENANT, asked)
        assert [(each.table, each.field) for each in report.failures] == [("orders", "totl")]
        assert report == await plain.validate_schema(TENANT, asked)
        assert await cached.validate_schema(TENANT, asked) == report
        assert server.is_away


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("c1", "fetcher:ratelimit:connection-test:c1"),
        ("schema:c1", "fetcher:ratelimit:connection-test:schema:c1"),
        ("tenant:acme-7:c1", "tenant:acme-7:fetcher:ratelimit:connection-test:c1"),
        ("tenant:a:schema:c1", "tenant:a:fetcher:ratelimit:connection-test:schema:c1"),
        ("tenantx:c1", "fetcher:ratelimit:connection-test:tenantx:c1"),
    ],
)
def test_names_of_buckets(key: str, name: str) -> None:
    assert limiter_key(key) == name.encode()


def test_names_of_schemas() -> None:
    assert schema_key("default", "db", single_tenant="default") == b"fetcher:schema:db"
    assert schema_key("default", "db", single_tenant=None) == b"tenant:default:fetcher:schema:db"
    assert schema_key("t1", "db", single_tenant="default") == b"tenant:t1:fetcher:schema:db"
    assert schema_key("default", "\ud800", single_tenant="default").startswith(b"fetcher:schema:")


@pytest.mark.parametrize("tenant_id", ["", "a:b", ":"])
def test_a_tenant_that_no_key_can_have(tenant_id: str) -> None:
    with pytest.raises(ValueError, match="cannot be a part of a key"):
        schema_key(tenant_id, "db", single_tenant="default")


def test_a_bucket_without_its_tenant() -> None:
    with pytest.raises(ValueError, match="cannot be a part of a key"):
        limiter_key("tenant::c1")
