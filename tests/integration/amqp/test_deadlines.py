"""Calls to a broker that hangs end by a deadline; the window of unconfirmed messages is bounded."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
import trio

from fetcher.adapters.amqp import connection as connection_module
from fetcher.adapters.amqp import consumer as consumer_module
from fetcher.adapters.amqp import dead_letter_level as level_module
from fetcher.adapters.amqp import dead_letter_queue as dead_letters_module
from fetcher.adapters.amqp import link as link_module
from fetcher.adapters.amqp import publisher as publisher_module
from fetcher.adapters.amqp import topology_check as topology_module
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Deliveries, Delivery, RejectReason
from tests.contract.queue.work_queues import broker_address
from tests.faults.proxy import FaultProxy, fault_proxy
from tests.integration.amqp.test_rabbitmq import a_message, on_channel, take

pytestmark = pytest.mark.integration

DEADLINES = (
    (connection_module, "OPEN_SECONDS"),
    (connection_module, "CLOSE_SECONDS"),
    (link_module, "CLOSE_SECONDS"),
    (consumer_module, "START_SECONDS"),
    (consumer_module, "SETTLE_SECONDS"),
    (consumer_module, "CANCEL_SECONDS"),
    (level_module, "LOOK_SECONDS"),
    (dead_letters_module, "PAGE_SECONDS"),
    (publisher_module, "CONFIRM_SECONDS"),
    (publisher_module, "PLACE_SECONDS"),
    (publisher_module, "DECLARE_SECONDS"),
    (topology_module, "DECLARE_SECONDS"),
)
SHORT_SECONDS = 0.3
HANGS_SECONDS = 30.0
"""A call without a deadline would be found out by this."""


@dataclass(frozen=True, kw_only=True)
class Hung:
    """A broker that answers nothing any more, with a delivery in hand."""

    broker: AmqpBroker
    proxy: FaultProxy
    work: str
    deliveries: Deliveries
    delivery: Delivery


async def enter_consumer(hung: Hung) -> None:
    async with hung.broker.consumer.consume(prefetch=1):
        pytest.fail("the broker answered")


async def open_dead_letters(hung: Hung) -> None:
    async with AmqpDeadLetterQueue(hung.broker.publishing, queue=hung.work).open():
        pytest.fail("the broker answered")


CALLS: dict[str, Callable[[Hung], Awaitable[object]]] = {
    "publish work": lambda hung: hung.broker.publisher.publish(a_message(hung.work)),
    "publish event": lambda hung: hung.broker.events.publish(a_message(hung.work)),
    "ready_count": lambda hung: hung.broker.publisher.ready_count(),
    "consume": enter_consumer,
    "reject": lambda hung: hung.delivery.reject(RejectReason.MALFORMED),
    "stop": lambda hung: hung.deliveries.stop(),
    "level of dead letters": lambda hung: hung.broker.dead_letters.level(),
    "open dead letters": open_dead_letters,
    "topology": lambda hung: hung.broker.topology.settle(TopologyNames(), create=False),
}

SENT_ALONE: dict[str, Callable[[Hung], Awaitable[object]]] = {
    "ack": lambda hung: hung.delivery.ack(),
    "requeue": lambda hung: hung.delivery.requeue(),
}
"""AMQP answers neither: a broker that did not take it delivers the message again."""


@pytest.fixture
def work(amqp_name: Callable[[str], str]) -> str:
    return amqp_name("work")


@pytest.fixture
async def proxy(amqp_url: str) -> AsyncIterator[FaultProxy]:
    address = broker_address(amqp_url)
    async with fault_proxy(address.host, address.port) as opened:
        yield opened


@pytest.fixture
async def broker(amqp_url: str, proxy: FaultProxy, work: str) -> AsyncIterator[AmqpBroker]:
    address = replace(broker_address(amqp_url), host="127.0.0.1", port=proxy.port)
    async with (
        open_asyncio(pytest.fail),
        open_amqp(address, work_queue=work, consumes=True, now=utc_now) as opened,
    ):
        await on_channel(opened.publishing, lambda channel: channel.queue_declare(work))
        yield opened


@pytest.mark.parametrize("call", [*CALLS, *SENT_ALONE])
async def test_a_call_to_a_broker_that_hangs_ends_by_a_deadline(
    broker: AmqpBroker,
    proxy: FaultProxy,
    work: str,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await broker.publisher.publish(a_message(work))
    async with broker.consumer.consume(prefetch=1) as deliveries:
        hung = Hung(
            broker=broker,
            proxy=proxy,
            work=work,
            deliveries=deliveries,
            delivery=await take(deliveries),
        )
        proxy.stall()
        for module, name in DEADLINES:
            monkeypatch.setattr(module, name, SHORT_SECONDS)
        with trio.fail_after(HANGS_SECONDS):
            if call in SENT_ALONE:
                await SENT_ALONE[call](hung)
                return
            with pytest.raises(PortUnavailable):
                await CALLS[call](hung)


async def test_eight_messages_at_most_are_unconfirmed_and_others_give_up_waiting(
    broker: AmqpBroker, proxy: FaultProxy, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(broker.publisher.publish, a_message(work))
    assert await broker.publisher.ready_count() == 40
    monkeypatch.setattr(publisher_module, "PLACE_SECONDS", SHORT_SECONDS)
    monkeypatch.setattr(connection_module, "CLOSE_SECONDS", SHORT_SECONDS)
    monkeypatch.setattr(link_module, "CLOSE_SECONDS", SHORT_SECONDS)
    proxy.stall()
    outcomes: list[str] = []

    async def publish() -> None:
        try:
            await broker.publisher.publish(a_message(work))
        except PortUnavailable as failure:
            outcomes.append(str(failure))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(publish)
    waited_in_vain = outcomes.count("too many messages wait to be published")
    assert (len(outcomes), waited_in_vain) == (20, 20 - publisher_module.CHANNELS)


async def test_a_channel_that_the_broker_closes_ends_the_iterator_and_is_replaced(
    broker: AmqpBroker, proxy: FaultProxy, work: str
) -> None:
    await broker.publisher.publish(a_message(work, '"job"'))
    connections = proxy.accepted
    async with broker.consumer.consume(prefetch=1) as deliveries:
        delivery = await take(deliveries)
        channel = delivery._message.channel  # type: ignore[attr-defined] # what only the broker sees
        await run_asyncio(channel.basic_ack, 4711)  # a tag that it never gave out: 406
        with pytest.raises(PortUnavailable, match="lost"):
            await take(deliveries)
    async with broker.consumer.consume(prefetch=1) as deliveries:
        again = await take(deliveries)
        assert again.body == b'"job"'
        await again.ack()
    assert proxy.accepted == connections + 1
