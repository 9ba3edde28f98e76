"""Every limiter of connection tests, behind the same fixtures, with names of the test's own."""

import secrets
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from fetcher.adapters.memory import MemoryTestLimiter
from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.ports import TestLimiter
from tests.servers.redis_servers import opened_redis, redis_address_of


@pytest.fixture
def own() -> str:
    """What makes keys unique."""
    return secrets.token_hex(6)


@pytest.fixture(params=["memory", "redis"])
async def limiter(request: pytest.FixtureRequest, own: str) -> AsyncIterator[TestLimiter]:
    if request.param == "memory":
        yield MemoryTestLimiter()
        return
    url = request.getfixturevalue("redis_url")
    async with opened_redis(redis_address_of(url)) as server:
        yield RedisTestLimiter(server)
    with Redis.from_url(url, socket_timeout=5) as client:
        for name in client.keys(f"*{own}*"):
            client.delete(name)
