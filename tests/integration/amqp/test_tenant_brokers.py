"""Tenants' virtual hosts: reached by their exact names, over few connections, closed when idle."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.tenant_address import tenant_broker_address
from fetcher.adapters.amqp.tls import tls_context
from fetcher.adapters.amqp.watched_connection import WatchedConnection
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import BrokerPlace
from tests.contract.queue.work_queues import broker_address
from tests.faults.proxy import fault_proxy
from tests.integration.amqp.test_rabbitmq import a_message, on_channel, take
from tests.servers.certificates import Authority, Identity
from tests.servers.vhosts import Vhost
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

WORK = "fetcher.extract-external-data.queue"
IDLE_SECONDS = 0.4


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


async def address_of(vhost: Vhost) -> BrokerAddress:
    place = BrokerPlace(
        host=vhost.host,
        port=vhost.port,
        vhost=vhost.name,
        user=vhost.user,
        password=vhost.password,
    )
    return await tenant_broker_address(place, default_tls=False, allow_plaintext=True)


@asynccontextmanager
async def opened(
    address: BrokerAddress, *, idle_seconds: float = 300.0
) -> AsyncIterator[AmqpBroker]:
    async with open_amqp(
        address, work_queue=WORK, consumes=True, now=utc_now, idle_seconds=idle_seconds
    ) as broker:
        yield broker


@pytest.mark.parametrize(
    "suffix",
    ["", "/a", "%2Fa", "a b", "+", "é", "?x=1", "#", "\\", "/../..", "%", "a//b/", ";:@&="],
)
async def test_a_virtual_host_is_reached_by_its_exact_name(
    room: None, vhost: Callable[[str], Vhost], suffix: str
) -> None:
    connection = BrokerConnection(await address_of(vhost(suffix)), name="test")
    try:
        await connection.check()
    finally:
        await connection.aclose()


@pytest.mark.parametrize(("real", "asked"), [("/a", "%2Fa"), ("", "/."), ("", "/..")])
async def test_a_name_that_only_looks_alike_is_another_virtual_host(
    room: None, vhost: Callable[[str], Vhost], real: str, asked: str
) -> None:
    made = vhost(real)
    name = made.name.removesuffix(real) + asked
    connection = BrokerConnection(
        replace(await address_of(made), vhost=name), name="test", open_tries=1
    )
    with pytest.raises(PortUnavailable):
        await connection.check()
    await connection.aclose()


async def test_the_default_virtual_host_is_not_what_a_dot_leads_to(
    room: None, amqp_url: str
) -> None:
    for name in (".", "..", "%2F"):
        address = replace(broker_address(amqp_url), vhost=name)
        connection = BrokerConnection(address, name="test", open_tries=1)
        with pytest.raises(PortUnavailable):
            await connection.check()
        await connection.aclose()


async def test_what_is_published_for_a_tenant_is_in_no_other_virtual_host(
    room: None, vhost: Callable[[], Vhost]
) -> None:
    async with (
        opened(await address_of(vhost())) as first,
        opened(await address_of(vhost())) as second,
    ):
        for broker in (first, second):
            await on_channel(broker.publishing, lambda channel: channel.queue_declare(WORK))
        await first.publisher.publish(a_message(WORK))
        assert await first.publisher.ready_count() == 1
        assert await second.publisher.ready_count() == 0


async def test_a_tenant_has_two_connections_at_most(room: None, vhost: Callable[[], Vhost]) -> None:
    address = await address_of(vhost())
    async with (
        fault_proxy(address.host, address.port) as proxy,
        opened(replace(address, port=proxy.port)) as broker,
    ):
        await on_channel(broker.operating, lambda channel: channel.queue_declare(WORK))
        await broker.publisher.publish(a_message(WORK))
        await broker.publisher.ready_count()
        assert proxy.accepted == 1
        async with broker.consumer.consume(prefetch=1) as deliveries:
            await (await take(deliveries)).ack()
        assert proxy.accepted == 2


async def test_hundreds_of_connections_say_less_often_that_they_live(
    room: None, vhost: Callable[[], Vhost], amqp_url: str
) -> None:
    address = await address_of(vhost())
    async with (
        opened(address) as tenants,
        open_amqp(broker_address(amqp_url), work_queue=WORK, consumes=True, now=utc_now) as own,
    ):
        seconds = []
        for broker in (tenants, own):
            channel = await broker.publishing.open_channel(confirms=False)
            assert isinstance(channel.connection, WatchedConnection)
            seconds.append(channel.connection.heartbeat_timeout)
        assert seconds == [30, 15]


async def test_a_connection_that_nobody_uses_is_closed_and_opened_again(
    room: None, vhost: Callable[[], Vhost]
) -> None:
    address = await address_of(vhost())
    async with (
        fault_proxy(address.host, address.port) as proxy,
        opened(replace(address, port=proxy.port), idle_seconds=IDLE_SECONDS) as broker,
    ):
        await on_channel(broker.publishing, lambda channel: channel.queue_declare(WORK))
        async with broker.consumer.consume(prefetch=1) as deliveries:
            await broker.publisher.publish(a_message(WORK))
            await eventually(lambda: not broker.publishing.is_open, deadline_seconds=10)
            await trio.sleep(2 * IDLE_SECONDS)
            await (await take(deliveries)).ack()
            await broker.publisher.publish(a_message(WORK))
            assert proxy.accepted == 3
            await (await take(deliveries)).ack()


async def test_publishing_without_a_pause_keeps_the_connection(
    room: None, vhost: Callable[[], Vhost]
) -> None:
    address = await address_of(vhost())
    async with (
        fault_proxy(address.host, address.port) as proxy,
        opened(replace(address, port=proxy.port), idle_seconds=3 * IDLE_SECONDS) as broker,
    ):
        await on_channel(broker.publishing, lambda channel: channel.queue_declare(WORK))
        for _ in range(15):
            await broker.publisher.publish(a_message(WORK))
            await trio.sleep(IDLE_SECONDS / 3)
        assert proxy.accepted == 1


async def test_only_the_tenants_trust_roots_count(
    room: None, vhost: Callable[[], Vhost], tmp_path: Path
) -> None:
    known, other = Authority(), Authority()
    address = await address_of(vhost())
    async with tls_in_front_of(address, known.certificate("127.0.0.1"), tmp_path) as port:
        outcomes: dict[str, str] = {}
        for name, ca in {"known": known.ca, "other": other.ca, "system": ""}.items():
            connection = BrokerConnection(
                replace(address, scheme="amqps", host="127.0.0.1", port=port, ca_pem=ca),
                name="test",
                open_tries=1,
            )
            try:
                await connection.check()
                outcomes[name] = "connected"
            except PortUnavailable as failure:
                outcomes[name] = str(failure).rpartition(": ")[2]
            await connection.aclose()
    refused = "the broker's certificate was not accepted"
    assert outcomes == {"known": "connected", "other": refused, "system": refused}


async def test_connections_with_the_same_roots_share_a_context_and_none_outlives_them() -> None:
    ca = Authority().ca
    first = await tls_context(ca)
    assert await tls_context(ca) is first
    assert first.minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(first.get_ca_certs()) == 1
    assert await tls_context("") is not first


@asynccontextmanager
async def tls_in_front_of(
    address: BrokerAddress, identity: Identity, folder: Path
) -> AsyncIterator[int]:
    """The port of a server with TLS that hands everything on to the broker."""
    (folder / "identity.pem").write_text(f"{identity.cert}\n{identity.key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "identity.pem")

    async def copy(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        async for piece in source:
            await sink.send_all(piece)

    async def serve(client: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            broker = await trio.open_tcp_stream(address.host, address.port)
            async with broker, trio.open_nursery() as nursery:
                nursery.start_soon(copy, client, broker)
                await copy(broker, client)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        listening: Any = listeners[0].transport_listener
        yield listening.socket.getsockname()[1]
        nursery.cancel_scope.cancel()
