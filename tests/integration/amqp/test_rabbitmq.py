"""What only a real broker shows (spec worker-and-events 1.1, 2.1, 12.8)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage

from fetcher.adapters.amqp import connection as connection_module
from fetcher.adapters.amqp import publisher as publisher_module
from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.breaker import FAILURES_TO_OPEN
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import DeliveryLost, PortUnavailable, QueueFull, Unroutable
from fetcher.ports import Deliveries, Delivery, OutgoingMessage, RejectReason
from tests.contract.queue.work_queues import broker_address
from tests.faults.proxy import FaultProxy, fault_proxy
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 15.0


@pytest.fixture
def address(amqp_url: str) -> BrokerAddress:
    return broker_address(amqp_url)


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


@pytest.fixture
async def proxy(address: BrokerAddress) -> AsyncIterator[FaultProxy]:
    async with fault_proxy(address.host, address.port) as opened:
        yield opened


@pytest.fixture
def work(amqp_name: Callable[[str], str]) -> str:
    return amqp_name("work")


@pytest.fixture
async def broker(room: None, address: BrokerAddress, work: str) -> AsyncIterator[AmqpBroker]:
    async with open_amqp(address, work_queue=work, consumes=True, now=utc_now) as opened:
        await on_channel(opened.publishing, lambda channel: channel.queue_declare(work))
        yield opened


@pytest.fixture
async def fragile(
    room: None, proxy: FaultProxy, address: BrokerAddress, work: str, broker: AmqpBroker
) -> AsyncIterator[AmqpBroker]:
    """The same queue, over connections that the test can cut."""
    through = replace(address, host="127.0.0.1", port=proxy.port)
    async with open_amqp(through, work_queue=work, consumes=True, now=utc_now) as opened:
        yield opened


async def on_channel(
    connection: BrokerConnection, do: Callable[[Channel], Awaitable[object]]
) -> None:
    async def run(channel: Channel) -> None:
        await do(channel)

    channel = await connection.open_channel(confirms=False)
    await run_asyncio(run, channel)
    await connection.close_channel(channel)


def a_message(work: str, body: str = "{}") -> OutgoingMessage:
    return OutgoingMessage(exchange="", routing_key=work, body=body.encode(), headers={})


async def take(deliveries: Deliveries) -> Delivery:
    with trio.fail_after(DEADLINE_SECONDS):
        return await anext(aiter(deliveries))


async def wait_for_ready(broker: AmqpBroker, count: int) -> None:
    async def is_so() -> bool:
        return await broker.publisher.ready_count() == count

    await eventually(is_so, deadline_seconds=DEADLINE_SECONDS, what=f"{count} ready messages")


async def test_the_properties_are_the_ones_of_the_wire_and_no_other(
    broker: AmqpBroker, work: str
) -> None:
    await broker.publisher.publish(replace(a_message(work), headers={"x-retry-count": 0}))
    got: list[DeliveredMessage] = []

    async def get(channel: Channel) -> None:
        got.append(await channel.basic_get(work, no_ack=True))

    await on_channel(broker.publishing, get)
    properties = {name: value for name, value in got[0].header.properties if value}
    assert properties == {
        "content_type": "application/json",
        "headers": {"x-retry-count": 0},
        "delivery_mode": 2,
    }


async def test_messages_without_a_route_come_back_each_to_its_own_publisher(
    broker: AmqpBroker, work: str
) -> None:
    outcomes: dict[str, str] = {}

    async def publish(routing_key: str, name: str) -> None:
        try:
            await broker.publisher.publish(a_message(routing_key))
            outcomes[name] = "confirmed"
        except Unroutable:
            outcomes[name] = "returned"

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(publish, work, f"good {number}")
            nursery.start_soon(publish, "fetcher.t.nowhere", f"bad {number}")
    assert {outcomes[f"good {number}"] for number in range(20)} == {"confirmed"}
    assert {outcomes[f"bad {number}"] for number in range(20)} == {"returned"}
    assert await broker.publisher.ready_count() == 20


async def test_a_missing_exchange_is_unavailable_and_the_next_publish_works(
    broker: AmqpBroker, work: str
) -> None:
    missing = OutgoingMessage(
        exchange="fetcher.t.missing", routing_key="job.completed", body=b"{}", headers={}
    )
    with pytest.raises(PortUnavailable, match="no such queue or exchange"):
        await broker.events.publish(missing)
    await broker.events.publish(a_message(work))


async def test_a_queue_that_takes_nothing_is_full_and_opens_no_breaker_and_no_channel(
    broker: AmqpBroker, amqp_name: Callable[[str], str]
) -> None:
    full = amqp_name("full")

    async def declare(channel: Channel) -> None:
        await channel.queue_declare(
            full, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
        )

    await on_channel(broker.publishing, declare)
    await broker.publisher.publish(a_message(full))
    channels = list(broker.publisher._idle)
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(QueueFull, match="refused"):
            await broker.publisher.publish(a_message(full))
    assert len(channels) == 1
    assert broker.publisher._idle == channels


async def test_a_confirm_that_does_not_come_is_unavailable_and_the_next_publish_reconnects(
    fragile: AmqpBroker, proxy: FaultProxy, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "CONFIRM_SECONDS", 0.3)
    monkeypatch.setattr(connection_module, "CLOSE_SECONDS", 0.3)
    await fragile.publisher.publish(a_message(work))
    proxy.stall()
    with trio.fail_after(DEADLINE_SECONDS):
        with pytest.raises(PortUnavailable, match="timeout"):
            await fragile.publisher.publish(a_message(work))
    assert not fragile.publishing.is_open


async def test_a_cancelled_publish_ends_at_once_and_its_channel_is_not_used_again(
    fragile: AmqpBroker, proxy: FaultProxy, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "CLOSE_SECONDS", 0.3)
    await fragile.publisher.publish(a_message(work))
    proxy.stall()
    began = trio.current_time()
    with trio.move_on_after(0.2) as scope:
        await fragile.publisher.publish(a_message(work))
    assert scope.cancelled_caught
    assert trio.current_time() - began < 3
    assert not fragile.publishing.is_open


async def test_a_cut_connection_ends_the_iterator_and_a_new_consumer_gets_the_message_again(
    fragile: AmqpBroker, proxy: FaultProxy, work: str
) -> None:
    await fragile.publisher.publish(a_message(work, '"job"'))
    async with fragile.consumer.consume(prefetch=1) as deliveries:
        in_hand = await take(deliveries)
        proxy.cut()
        with pytest.raises(PortUnavailable, match="lost"):
            await take(deliveries)
        with pytest.raises(DeliveryLost, match="lost"):
            await in_hand.ack()
    async with fragile.consumer.consume(prefetch=1) as deliveries:
        again = await take(deliveries)
        assert again.body == b'"job"'
        await again.ack()
    await wait_for_ready(fragile, 0)


async def test_publishing_goes_on_after_a_cut(
    fragile: AmqpBroker, proxy: FaultProxy, work: str
) -> None:
    await fragile.publisher.publish(a_message(work))
    proxy.cut()

    async def is_published() -> bool:
        try:
            await fragile.publisher.publish(a_message(work))
        except PortUnavailable:
            return False
        return True

    await eventually(is_published, deadline_seconds=DEADLINE_SECONDS)
    assert await fragile.publisher.ready_count() >= 2


async def test_those_who_come_during_a_connect_wait_for_it(
    fragile: AmqpBroker, proxy: FaultProxy, work: str
) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(fragile.publisher.publish, a_message(work))
    assert proxy.accepted == 1


async def test_a_queue_deleted_under_the_consumer_ends_its_iterator(
    broker: AmqpBroker, work: str
) -> None:
    async with broker.consumer.consume(prefetch=1) as deliveries:
        await on_channel(broker.publishing, lambda channel: channel.queue_delete(work))
        with pytest.raises(PortUnavailable, match="lost"):
            await take(deliveries)


async def test_a_missing_queue_is_unavailable_until_it_is_declared(
    room: None, address: BrokerAddress, amqp_name: Callable[[str], str]
) -> None:
    later = amqp_name("later")
    async with open_amqp(address, work_queue=later, consumes=True, now=utc_now) as broker:
        with pytest.raises(PortUnavailable, match="no such queue"):
            async with broker.consumer.consume(prefetch=1):
                pytest.fail("a missing queue was consumed")
        with pytest.raises(PortUnavailable, match="no such queue"):
            await broker.publisher.ready_count()
        await on_channel(broker.publishing, lambda channel: channel.queue_declare(later))
        async with broker.consumer.consume(prefetch=1):
            assert await broker.publisher.ready_count() == 0


async def test_five_failures_open_the_breaker_and_the_probe_says_so(
    room: None, work: str, free_port: int
) -> None:
    nobody = BrokerAddress(
        scheme="amqp", host="127.0.0.1", port=free_port, user="u", password="canary-secret"
    )
    async with open_amqp(nobody, work_queue=work, consumes=True, now=utc_now) as broker:
        result = await broker.probe.check()
        assert (result.status, result.error, result.breaker_state, result.tls) == (
            "down",
            "rabbitmq connection not healthy",
            "closed",
            False,
        )
        for _ in range(5):
            with pytest.raises(PortUnavailable) as caught:
                await broker.publisher.publish(a_message(work))
            assert "canary-secret" not in f"{caught.value} {caught.value.__context__}"
        with pytest.raises(PortUnavailable, match="circuit breaker is open"):
            await broker.publisher.publish(a_message(work))
        with pytest.raises(PortUnavailable, match="circuit breaker is open"):
            async with broker.consumer.consume(prefetch=1):
                pytest.fail("the breaker is open")
        result = await broker.probe.check()
        assert (result.status, result.error, result.breaker_state) == (
            "down",
            "circuit breaker open",
            "open",
        )


@pytest.fixture
async def free_port() -> int:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listener.socket.getsockname()[1]
    await listener.aclose()
    return port


async def test_the_probe_is_up_on_a_live_broker(broker: AmqpBroker) -> None:
    result = await broker.probe.check()
    assert broker.probe.name == "rabbitmq"
    assert (result.status, result.error, result.breaker_state, result.tls) == (
        "up",
        None,
        "closed",
        False,
    )


async def test_the_probe_of_a_broker_that_hangs_ends_with_timeout_in_two_seconds(
    fragile: AmqpBroker, proxy: FaultProxy
) -> None:
    assert (await fragile.probe.check()).status == "up"
    proxy.stall()
    began = trio.current_time()
    result = await fragile.probe.check()
    assert trio.current_time() - began == pytest.approx(2, abs=0.5)
    assert (result.status, result.error) == ("down", "timeout")


async def test_wrong_credentials_are_unavailable_without_the_password(
    room: None, address: BrokerAddress, work: str
) -> None:
    wrong = replace(address, user="fetcher-nobody", password="canary-secret")
    async with open_amqp(wrong, work_queue=work, consumes=False, now=utc_now) as broker:
        with pytest.raises(PortUnavailable, match="credentials") as caught:
            await broker.publisher.publish(a_message(work))
    assert caught.value.__context__ is None


async def test_a_strangers_headers_do_not_keep_a_message_from_being_rejected(
    broker: AmqpBroker, work: str, amqp_name: Callable[[str], str]
) -> None:
    dead = amqp_name("dead")

    async def declare(channel: Channel) -> None:
        await channel.exchange_declare("fetcher.dlx", exchange_type="direct", durable=True)
        await channel.queue_declare(dead)
        await channel.queue_bind(dead, "fetcher.dlx", "fetcher.dlq.key")

    await on_channel(broker.publishing, declare)
    await broker.publisher.publish(replace(a_message(work), headers={"big": "x" * 100_000}))
    async with broker.consumer.consume(prefetch=1) as deliveries:
        delivery = await take(deliveries)
        assert delivery.headers == {"big": "x" * 100_000}
        await delivery.reject(RejectReason.BAD_SIGNATURE)
    await wait_for_ready(broker, 0)
    found: list[DeliveredMessage] = []

    async def get(channel: Channel) -> None:
        found.append(await channel.basic_get(dead, no_ack=True))

    await on_channel(broker.publishing, get)
    headers = found[0].header.properties.headers or {}
    assert headers["x-fetcher-original-headers-dropped"] == "true"
    assert headers["x-fetcher-reject-reason"] == "bad_signature"


async def test_probes_that_are_cut_off_leave_the_consumers_connection_alone(
    broker: AmqpBroker, work: str
) -> None:
    """They ask on that very connection, and a slow broker cuts them off anywhere."""
    async with broker.consumer.consume(prefetch=1) as deliveries:
        for number in range(300):
            with trio.move_on_after(number / 300 * 0.005):
                await broker.probe.check()
        await broker.publisher.publish(a_message(work))
        await (await take(deliveries)).ack()
