"""What lies in Redis for the limit of connection tests (spec rest-api 8.7, 12.4), and replicas."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.adapters.redis.server import RedisServer, open_redis
from tests.servers.redis_servers import OwnRedis

ROOT = Path(__file__).parents[3]
KEY = b"fetcher:ratelimit:connection-test:c1"


async def test_keys_and_their_end_are_the_specs(redis: OwnRedis, server: RedisServer) -> None:
    limiter = RedisTestLimiter(server)
    for key in ("c1", "schema:c1", "tenant:acme-7:c1", "tenant:acme-7:schema:c1"):
        assert await limiter.take(key) == 0
    assert set(redis.client.keys()) == {
        b"fetcher:ratelimit:connection-test:c1",
        b"fetcher:ratelimit:connection-test:schema:c1",
        b"tenant:acme-7:fetcher:ratelimit:connection-test:c1",
        b"tenant:acme-7:fetcher:ratelimit:connection-test:schema:c1",
    }
    assert 119_000 < redis.client.pttl(KEY) <= 120_000
    kept = redis.client.hgetall(KEY)
    seconds, microseconds = redis.client.time()
    assert kept.keys() == {b"tokens", b"last_refill_ms"}
    assert float(kept[b"tokens"]) == 9
    assert 0 <= seconds * 1000 + microseconds // 1000 - int(kept[b"last_refill_ms"]) < 5000


async def test_one_token_comes_back_every_six_seconds_of_the_servers_clock(
    redis: OwnRedis, server: RedisServer
) -> None:
    limiter = RedisTestLimiter(server)
    seconds, _ = redis.client.time()

    async def left_after(elapsed_seconds: float, *, tokens: float) -> int:
        since = str(int((seconds - elapsed_seconds) * 1000))
        redis.client.hset(KEY, mapping={"tokens": str(tokens), "last_refill_ms": since})
        count = 0
        while await limiter.take("c1") == 0:
            count += 1
        return count

    assert await left_after(18, tokens=0) == 3
    assert await left_after(18, tokens=2.5) == 5
    assert await left_after(86_400, tokens=0) == 10
    # a clock that was set back gives nothing and takes nothing
    assert await left_after(-3600, tokens=2) == 2


async def test_whoever_waits_as_told_is_let_through(redis: OwnRedis, server: RedisServer) -> None:
    limiter = RedisTestLimiter(server)
    seconds, microseconds = redis.client.time()
    since = seconds * 1000 + microseconds // 1000 - 5800
    redis.client.hset(KEY, mapping={"tokens": "0", "last_refill_ms": str(since)})
    wait = await limiter.take("c1")
    assert 0 < wait <= 0.2
    await trio.sleep(wait + 0.002)
    assert await limiter.take("c1") == 0
    assert await limiter.take("c1") > 5


@pytest.mark.parametrize(
    "kept",
    [
        {"tokens": "x", "last_refill_ms": "1"},
        {"tokens": "nan", "last_refill_ms": "1"},
        {"tokens": "-5", "last_refill_ms": "1"},
        {"tokens": "1e9", "last_refill_ms": "1"},
        {"tokens": "3"},
        {"last_refill_ms": "3"},
        {"other": "3"},
        {"tokens": "0", "last_refill_ms": "nan"},
        {"tokens": "0", "last_refill_ms": "-1e300"},
    ],
)
async def test_a_bucket_that_is_none_of_ours_is_a_full_one(
    redis: OwnRedis, server: RedisServer, kept: dict[str, str]
) -> None:
    for field, value in kept.items():
        redis.client.hset(KEY, field, value)
    limiter = RedisTestLimiter(server)
    waits = [await limiter.take("c1") for _ in range(11)]
    assert waits[:10] == [0] * 10
    assert 0 < waits[10] <= 6
    assert not server.is_away


async def test_a_key_of_another_kind_is_replaced(redis: OwnRedis, server: RedisServer) -> None:
    redis.client.set(KEY, "x")
    assert await RedisTestLimiter(server).take("c1") == 0
    assert redis.client.type(KEY) == b"hash"


async def test_two_replicas_with_six_tests_each_pass_ten_together(redis: OwnRedis) -> None:
    """Two processes; spec rest-api 17.4, "two replicas, 6 tests each"."""
    command = [sys.executable, "-m", "tests.integration.redis.taker", str(redis.address.port)]
    waits: list[float] = []

    async def replica() -> None:
        ended = await trio.run_process(
            command, cwd=ROOT, capture_stdout=True, stdin=subprocess.DEVNULL
        )
        lines = ended.stdout.decode().splitlines()
        waits.extend(float(line.split()[1]) for line in lines if line.startswith("wait "))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(replica)
            nursery.start_soon(replica)
    assert len(waits) == 12
    assert waits.count(0) == 10
    assert all(0 < wait <= 6 for wait in waits if wait)


async def test_two_replicas_in_one_process(redis: OwnRedis, server: RedisServer) -> None:
    async with open_redis(redis.address) as other:
        one, two = RedisTestLimiter(server), RedisTestLimiter(other)
        waits = [await limiter.take("c1") for _ in range(6) for limiter in (one, two)]
    assert [wait == 0 for wait in waits] == [True] * 10 + [False] * 2
