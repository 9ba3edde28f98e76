"""Tenants' events over a real Redis (spec configuration 11.6, 17.8)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.adapters.redis import subscriber
from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.tenant_events import (
    RedisTenantEvents,
    open_tenant_events,
    tenant_events_channel,
)
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenant_events import TenantEvent
from fetcher.ports import ProbeStatus
from scripts.servers.daemons import free_port
from tests.faults.proxy_thread import threaded_proxy
from tests.servers.certificates import Authority
from tests.servers.redis_servers import OwnRedis, deaf_server, own_redis
from tests.servers.waiting import eventually

CHANNEL = "tenant-events:production:"
CANARY = "canary-5ecret"


def a_message(number: int = 1, **members: object) -> bytes:
    envelope = {
        "event_id": f"e-{number}",
        "event_type": "tenant.service.associated",
        "tenant_id": "acme-7",
        "environment": "production",
        "payload": {"service_name": "fetcher", "modules": ["fetcher"]},
    }
    return json.dumps({**envelope, **members}).encode()


@asynccontextmanager
async def opened(address: RedisAddress) -> AsyncIterator[RedisTenantEvents]:
    async with open_asyncio(pytest.fail), open_tenant_events(address, "Production") as events:
        with trio.fail_after(30):
            yield events


async def heard(events: AsyncIterator[TenantEvent], count: int) -> list[str]:
    return [(await anext(events)).id for _ in range(count)]


def test_the_channels_name_ends_in_a_colon() -> None:
    assert tenant_events_channel("Production") == CHANNEL
    assert tenant_events_channel("staging") == "tenant-events:staging:"


async def test_events_are_heard_in_order_by_everyone_who_listens(redis: OwnRedis) -> None:
    async with opened(redis.address) as port, port.listen() as one, port.listen() as other:
        assert redis.client.pubsub_numsub(CHANNEL) == [(CHANNEL.encode(), 2)]
        for number in range(20):
            assert redis.client.publish(CHANNEL, a_message(number)) == 2
        for events in (one, other):
            assert await heard(events, 20) == [f"e-{number}" for number in range(20)]
        redis.client.publish(CHANNEL, a_message(21))
        event = await anext(one)
        assert (event.type, event.tenant_id, event.service) == (
            "tenant.service.associated",
            "acme-7",
            "fetcher",
        )
        assert event.payload["modules"] == ["fetcher"]


async def test_other_channels_are_not_heard_and_nothing_is_left_behind(redis: OwnRedis) -> None:
    async with opened(redis.address) as port:
        async with port.listen() as events:
            for other in ("tenant-events:production", "tenant-events:staging:", f"{CHANNEL}x"):
                assert redis.client.publish(other, a_message(1)) == 0
            redis.client.publish(CHANNEL, a_message(2))
            assert await heard(events, 1) == ["e-2"]
        assert redis.client.pubsub_channels() == []
    assert redis.client.info("clients")["connected_clients"] == 1


async def test_what_is_no_event_is_told_of_once_and_the_next_one_is_heard(
    redis: OwnRedis,
) -> None:
    wrong = [
        b"",
        b"   ",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        a_message(event_id=""),
        a_message(event_type=None),
        a_message(tenant_id=" "),
        a_message(event_type=[CANARY]),
        b'{"event_id": "' + b"x" * 500_000 + b'"}',
    ]
    with capture_logs() as logs:
        async with opened(redis.address) as port, port.listen() as events:
            for message in wrong:
                redis.client.publish(CHANNEL, message)
            redis.client.publish(CHANNEL, a_message(7))
            assert await heard(events, 1) == ["e-7"]
    told = [each for each in logs if each["event"] == "tenant_event_unreadable"]
    assert [(each["why"], each["count"]) for each in told] == [("it is empty", 1)]
    assert CANARY not in repr(logs)


async def test_a_message_of_many_megabytes_is_not_taken_in(redis: OwnRedis) -> None:
    async with opened(redis.address) as port:
        async with port.listen() as events:
            redis.client.publish(CHANNEL, b"x" * (subscriber.MAX_MESSAGE_BYTES + 1))
            redis.client.publish(CHANNEL, a_message(1))
            with pytest.raises(PortUnavailable, match="redis cannot be reached"):
                await anext(events)
        async with port.listen() as events:
            redis.client.publish(CHANNEL, a_message(2))
            assert await heard(events, 1) == ["e-2"]


async def test_a_connection_that_is_closed_is_lost_and_not_renewed_unheard(
    redis: OwnRedis,
) -> None:
    async with opened(redis.address) as port, port.listen() as events:
        redis.client.publish(CHANNEL, a_message(1))
        assert await heard(events, 1) == ["e-1"]
        redis.client.client_kill_filter(_type="pubsub")
        for _ in range(2):
            with pytest.raises(PortUnavailable, match="redis cannot be reached"):
                await anext(events)
        assert redis.client.pubsub_channels() == []


async def test_a_listener_that_is_too_slow_is_cut_off_by_the_server(tmp_path: Path) -> None:
    """The storm lies in the server's memory, up to its limit, and never in ours."""
    limit = ("--client-output-buffer-limit", "pubsub 1mb 1mb 1")
    with own_redis(tmp_path, *limit) as redis:
        async with opened(redis.address) as port, port.listen() as events:
            redis.client.publish(CHANNEL, a_message(0))
            assert await heard(events, 1) == ["e-0"]
            padding = "x" * 50_000
            for number in range(400):
                redis.client.publish(CHANNEL, a_message(number, slug=padding))
            with pytest.raises(PortUnavailable):
                await heard(events, 400)


async def test_silence_is_noticed_and_an_idle_connection_is_kept(
    redis: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber, "QUIET_SECONDS", 0.2)
    with threaded_proxy("127.0.0.1", redis.address.port) as gate:
        through = replace(redis.address, port=gate.port)
        async with opened(through) as port, port.listen() as events:
            with trio.move_on_after(1.5):
                await anext(events)
                pytest.fail("something was heard")
        async with opened(through) as port, port.listen() as events:
            gate.silence()
            silent_at = trio.current_time()
            with pytest.raises(PortUnavailable, match="timeout"):
                await anext(events)
            assert trio.current_time() - silent_at < 1.5


async def test_asking_an_idle_connection_loses_no_event(
    redis: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as long as the answer may take, also on a machine with much to do
    monkeypatch.setattr(subscriber, "QUIET_SECONDS", 0.25)

    async def publish() -> None:
        for number in range(10):
            await trio.sleep(0.35)
            redis.client.publish(CHANNEL, a_message(number))

    async with (
        opened(redis.address) as port,
        port.listen() as events,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(publish)
        assert await heard(events, 10) == [f"e-{number}" for number in range(10)]


async def test_a_redis_that_is_down_fails_the_check_the_listening_and_the_probe(
    tmp_path: Path,
) -> None:
    with own_redis(tmp_path) as redis:
        async with opened(redis.address) as port:
            await port.check()
            assert port.probe.name == "multi_tenant_redis"
            up = await port.probe.check()
            assert (up.status, up.tls, up.reason) == (ProbeStatus.UP, False, None)
            redis.kill()
            with pytest.raises(PortUnavailable, match="redis cannot be reached"):
                await port.check()
            with pytest.raises(PortUnavailable, match="redis cannot be reached"):
                async with port.listen():
                    pytest.fail("it listens")
            down = await port.probe.check()
            assert (down.status, down.reason) == (ProbeStatus.DOWN, None)
            assert down.error


async def test_a_redis_that_never_answers_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriber, "SUBSCRIBE_SECONDS", 0.3)
    async with deaf_server() as (address, _), opened(address) as port:
        started_at = trio.current_time()
        with pytest.raises(PortUnavailable, match="timeout"):
            async with port.listen():
                pytest.fail("it listens")
        assert trio.current_time() - started_at < 2
        probed = await port.probe.check()
        assert (probed.status, probed.error) == (ProbeStatus.DOWN, "timeout")


async def test_who_may_not_subscribe_and_who_has_a_wrong_password(tmp_path: Path) -> None:
    with own_redis(tmp_path) as redis, capture_logs() as logs:
        redis.client.acl_setuser(
            "kim", enabled=True, passwords=[f"+{CANARY}"], commands=["+ping", "+select"]
        )
        kim = replace(redis.address, user="kim", password=CANARY)
        async with opened(kim) as port:
            await port.check()
            with pytest.raises(PortUnavailable, match="does not permit"):
                async with port.listen():
                    pytest.fail("it listens")
        redis.client.acl_setuser("kim", enabled=True, commands=["+subscribe"], channels=[CHANNEL])
        async with opened(kim) as port, port.listen() as events:
            redis.client.publish(CHANNEL, a_message(1))
            assert await heard(events, 1) == ["e-1"]
        async with opened(replace(kim, password="wrong")) as port:
            with pytest.raises(PortUnavailable, match="refused the credentials"):
                await port.check()
            with pytest.raises(PortUnavailable, match="refused the credentials"):
                async with port.listen():
                    pytest.fail("it listens")
    assert CANARY not in repr([logs, kim])


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
    with own_redis(tmp_path, *arguments) as redis:
        right = RedisAddress(host="localhost", port=port, tls=True, ca_pem=authority.ca)
        async with opened(right) as tenant_events:
            await tenant_events.check()
            assert (await tenant_events.probe.check()).tls is True
            async with tenant_events.listen() as events:
                redis.client.publish(CHANNEL, a_message(1))
                assert await heard(events, 1) == ["e-1"]
        for wrong in (
            replace(right, ca_pem=""),
            replace(right, ca_pem=Authority().ca),
            replace(right, host="127.0.0.1"),
        ):
            async with opened(wrong) as tenant_events:
                with pytest.raises(PortUnavailable):
                    await tenant_events.check()
                with pytest.raises(PortUnavailable):
                    async with tenant_events.listen():
                        pytest.fail("it listens")


async def test_a_listener_that_is_cancelled_leaves_no_connection(redis: OwnRedis) -> None:
    async with opened(redis.address) as port:
        for patience_seconds in (0.0, 0.001, 0.003, 0.01, 0.03):
            with trio.move_on_after(patience_seconds):
                async with port.listen() as events:
                    await anext(events)
        await eventually(lambda: redis.client.pubsub_channels() == [], deadline_seconds=5)
