"""A Redis of these tests' own, empty at the start of each."""

from collections.abc import AsyncIterator, Iterator

import pytest

from fetcher.adapters.redis.server import RedisServer
from tests.servers.redis_servers import OwnRedis, opened_redis, own_redis


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    with own_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis(running: OwnRedis) -> OwnRedis:
    running.client.flushall()
    return running


@pytest.fixture
async def server(redis: OwnRedis) -> AsyncIterator[RedisServer]:
    async with opened_redis(redis.address) as opened:
        yield opened
