"""Redis goes away and comes back; spec rest-api 17.4, "Redis down", "cache read or write fails"."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher.adapters.redis.server import RedisServer
from fetcher.ports import ProbeStatus
from fetcher_engine import TenantContext
from scripts.servers.daemons import free_port
from tests.contract.schema_cache.snapshots import a_snapshot, full_snapshot
from tests.servers.certificates import Authority
from tests.servers.redis_servers import deaf_server, opened_redis, own_redis
from tests.servers.waiting import eventually

TENANT = TenantContext("default")
CANARY = "canary-5ecret"
PERMITTED = (
    "+ping +select +evalsha +script|load +time +type +del +hget +hset +hdel +hlen +hexists"
    " +hstrlen +hmget +pexpire"
)
"""As docs/operations.md has it."""


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is tried again after a fifth of a second, so that tests need not wait for long."""
    monkeypatch.setattr("fetcher.adapters.redis.server.AWAY_SECONDS", 0.2)


def a_cache(server: RedisServer) -> RedisSchemaCache:
    return RedisSchemaCache(server, ttl_seconds=300, single_tenant="default")


async def taken(limiter: RedisTestLimiter) -> int:
    count = 0
    while await limiter.take("c1") == 0:
        count += 1
    return count


async def test_killed_and_back(tmp_path: Path) -> None:
    with own_redis(tmp_path) as redis, capture_logs() as logs:
        async with opened_redis(redis.address) as server:
            limiter, cache = RedisTestLimiter(server), a_cache(server)
            assert await taken(limiter) == 10
            await cache.put_schema(TENANT, a_snapshot(), "f1")
            redis.kill()
            assert await taken(limiter) == 10
            assert await limiter.take("c1") == pytest.approx(6, abs=0.5)
            assert await cache.get_schema(TENANT, "sales_db", "f1") is None
            await cache.put_schema(TENANT, full_snapshot(), "f1")
            assert await cache.get_schema(TENANT, "sales_db", "f1") == full_snapshot()
            await cache.invalidate_schema(TENANT, "sales_db")
            assert await cache.get_schema(TENANT, "sales_db", "f1") is None
            await cache.put_schema(TENANT, full_snapshot(), "f2")
            probed = await server.probe.check()
            assert (probed.status, probed.tls) == (ProbeStatus.DOWN, False)
            assert probed.reason == "serving from process memory"
            assert server.is_away

            redis.start()

            async def is_back() -> bool:
                await cache.get_schema(TENANT, "sales_db", "f2")
                return not server.is_away

            await eventually(is_back, deadline_seconds=10)
            # what was written to memory meanwhile is not read any more
            assert await cache.get_schema(TENANT, "sales_db", "f2") is None
            assert (await server.probe.check()).status is ProbeStatus.UP
            assert await taken(limiter) == 10
            assert redis.client.keys() == [b"fetcher:ratelimit:connection-test:c1"]
    told = [record["event"] for record in logs if record["event"].startswith("redis_")]
    assert told == ["redis_away", "redis_back"]


async def test_a_redis_that_is_down_at_the_start_is_used_when_it_comes(tmp_path: Path) -> None:
    with own_redis(tmp_path) as redis:
        redis.kill()
        async with opened_redis(redis.address) as server:
            limiter = RedisTestLimiter(server)
            assert await taken(limiter) == 10
            redis.start()

            async def counts_in_redis() -> bool:
                await limiter.take("c1")
                return bool(redis.client.keys())

            await eventually(counts_in_redis, deadline_seconds=10)
            assert await taken(limiter) in (8, 9)


async def test_a_redis_that_never_answers_costs_half_a_second_once() -> None:
    async with deaf_server() as (address, accepted), opened_redis(address) as server:
        limiter, cache = RedisTestLimiter(server), a_cache(server)
        costs: list[float] = []

        async def cost_of(work: Callable[[], Awaitable[object]]) -> None:
            started = trio.current_time()
            await work()
            costs.append(trio.current_time() - started)

        await cost_of(lambda: limiter.take("c1"))
        assert 0.4 < costs[0] < 1.0
        for work in (
            lambda: limiter.take("c1"),
            lambda: cache.get_schema(TENANT, "sales_db", "f1"),
            lambda: cache.put_schema(TENANT, a_snapshot(), "f1"),
            lambda: cache.invalidate_schema(TENANT, "sales_db"),
        ):
            await cost_of(work)
        assert max(costs[1:]) < 0.1
        assert len(accepted) == 1
        await trio.sleep(0.25)
        # one of many tries again; the others do not wait for it
        costs.clear()
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(cost_of, lambda number=number: limiter.take(f"c{number}"))
        assert sorted(cost < 0.2 for cost in costs) == [False, *[True] * 7]
        assert len(accepted) == 2
        probed = await server.probe.check()
        assert (probed.status, probed.error) == (ProbeStatus.DOWN, "timeout")
        assert probed.latency_ms < 1000


async def test_one_that_never_ends_the_tls_handshake_does_not_either() -> None:
    async with deaf_server() as (address, _):
        started = trio.current_time()
        async with opened_redis(replace(address, tls=True)) as server:
            assert await RedisTestLimiter(server).take("c1") == 0
            assert server.is_away
            assert trio.current_time() - started < 1.5
        assert trio.current_time() - started < 3


async def test_no_connection_is_lost_with_callers_that_are_cancelled(tmp_path: Path) -> None:
    with own_redis(tmp_path) as redis:
        async with opened_redis(redis.address) as server:
            limiter = RedisTestLimiter(server)
            taken_by: list[str] = []

            async def take(key: str, patience_seconds: float) -> None:
                with trio.move_on_after(patience_seconds):
                    await limiter.take(key)
                    taken_by.append(key)

            for _ in range(4):
                async with trio.open_nursery() as nursery:
                    for number in range(40):
                        nursery.start_soon(take, f"given up {number}", number * 0.0002)
            taken_by.clear()
            async with trio.open_nursery() as nursery:
                for number in range(40):
                    nursery.start_soon(take, f"c{number}", 10)
            assert len(taken_by) == 40
            assert not server.is_away
            clients = redis.client.info("clients")
            assert clients["connected_clients"] <= 11


@asynccontextmanager
async def saying(answer: bytes) -> AsyncIterator[RedisAddress]:
    """A server that says the same to whatever it hears."""

    async def speak(stream: trio.SocketStream) -> None:
        try:
            async for _ in stream:
                await stream.send_all(answer)
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, speak, listeners)
        yield RedisAddress(host="127.0.0.1", port=listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"+OK\r\n",
        b":-5\r\n",
        b":99999999999999999999\r\n",
        b":x\r\n",
        b"$-1\r\n",
        b"$x\r\n",
        b"$99999999999\r\n",
        b"*x\r\n",
        b"*1\r\n" * 5000,
        b"*-1\r\n",
        b"*99999999999\r\n",
        b"$3\r\nabcdef\r\n",
        b"-ERR " + CANARY.encode() + b"\r\n",
        b"-NOAUTH x\r\n",
        b"-OOM x\r\n",
        b"-READONLY x\r\n",
        b"-LOADING x\r\n",
        b"-NOSCRIPT x\r\n",
        b"-NOPERM x\r\n",
        b"-MOVED 1 127.0.0.1:1\r\n",
        b"\xff\xfe\x00",
        b"\r\n",
    ],
)
async def test_a_server_that_speaks_nonsense_is_away(answer: bytes) -> None:
    with capture_logs() as logs:
        async with saying(answer) as address, opened_redis(address) as server:
            assert await RedisTestLimiter(server).take("c1") == 0
            assert server.is_away
            assert await a_cache(server).get_schema(TENANT, "sales_db", "f1") is None
    assert CANARY not in repr(logs)


async def test_a_schema_from_a_server_that_speaks_nonsense_is_a_miss() -> None:
    for answer in (b"+OK\r\n", b":1\r\n", b"*0\r\n", b"$3\r\nabc\r\n"):
        async with saying(answer) as address, opened_redis(address) as server:
            assert await a_cache(server).get_schema(TENANT, "sales_db", "f1") is None


async def test_password_user_and_database(tmp_path: Path) -> None:
    with own_redis(tmp_path, "--databases", "4") as redis:
        redis.client.acl_setuser(
            "fetcher",
            enabled=True,
            passwords=[f"+{CANARY}"],
            keys=["fetcher:*"],
            commands=PERMITTED.split(),
        )
        right = replace(redis.address, user="fetcher", password=CANARY, database=3)
        async with opened_redis(right) as server:
            assert await RedisTestLimiter(server).take("c1") == 0
            cache = a_cache(server)
            await cache.put_schema(TENANT, full_snapshot(), "f1")
            assert await cache.get_schema(TENANT, "sales_db", "f1") == full_snapshot()
            await cache.invalidate_schema(TENANT, "sales_db")
            assert await cache.get_schema(TENANT, "sales_db", "f1") is None
            assert not server.is_away
            assert (await server.probe.check()).status is ProbeStatus.UP
        assert redis.client.info("keyspace").keys() == {"db3"}
        for wrong in (replace(right, password=f"{CANARY}x"), replace(right, database=9)):
            assert CANARY not in repr(wrong)
            with capture_logs() as logs:
                async with opened_redis(wrong) as server:
                    assert await RedisTestLimiter(server).take("c1") == 0
                    assert server.is_away
                    probed = await server.probe.check()
            assert probed.status is ProbeStatus.DOWN
            assert CANARY not in repr([logs, probed])


async def test_tls(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.certificate("localhost")
    for name, text in (("c.pem", identity.cert), ("k.pem", identity.key), ("a.pem", authority.ca)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    port = free_port()
    arguments = [
        *("--tls-port", str(port), "--tls-auth-clients", "no"),
        *("--tls-cert-file", str(tmp_path / "c.pem"), "--tls-key-file", str(tmp_path / "k.pem")),
        *("--tls-ca-cert-file", str(tmp_path / "a.pem")),
    ]
    with own_redis(tmp_path, *arguments):
        right = RedisAddress(host="localhost", port=port, tls=True, ca_pem=authority.ca)
        async with opened_redis(right) as server:
            assert await RedisTestLimiter(server).take("c1") == 0
            assert not server.is_away
            probed = await server.probe.check()
            assert (probed.status, probed.tls) == (ProbeStatus.UP, True)
        for wrong in (
            replace(right, ca_pem=""),
            replace(right, ca_pem=Authority().ca),
            replace(right, host="127.0.0.1"),
        ):
            async with opened_redis(wrong) as server:
                assert await RedisTestLimiter(server).take("c1") == 0
                assert server.is_away
                assert (await server.probe.check()).status is ProbeStatus.DOWN
