"""Every schema cache, behind the same fixtures, with config names of the test's own."""

import secrets
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from fetcher.adapters.memory import MemorySchemaCache
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher_engine import SchemaCache
from tests.servers.redis_servers import opened_redis, redis_address_of


@pytest.fixture
def own() -> str:
    """A config name that nobody else uses."""
    return f"db_{secrets.token_hex(6)}"


@pytest.fixture(params=["memory", "redis"])
async def cache(request: pytest.FixtureRequest, own: str) -> AsyncIterator[SchemaCache]:
    if request.param == "memory":
        yield MemorySchemaCache(ttl_seconds=300)
        return
    url = request.getfixturevalue("redis_url")
    async with opened_redis(redis_address_of(url)) as server:
        yield RedisSchemaCache(server, ttl_seconds=300, single_tenant="default")
    with Redis.from_url(url, socket_timeout=5) as client:
        for name in client.keys(f"*{own}*"):
            client.delete(name)
