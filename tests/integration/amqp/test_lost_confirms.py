"""A message, or the broker's word on it, is lost on the way: what the publisher makes of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
from aiormq import Channel

from fetcher.adapters.amqp import publisher as publisher_module
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import PortUnavailable, QueueFull
from fetcher.ports import OutgoingMessage
from tests.contract.queue.work_queues import broker_address
from tests.faults.amqp_proxy import AmqpFault, AmqpFaultProxy, Spoken

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 20.0


@asynccontextmanager
async def behind_proxy(
    amqp_url: str, work: str
) -> AsyncIterator[tuple[AmqpFaultProxy, AmqpBroker]]:
    address = broker_address(amqp_url)
    proxy = AmqpFaultProxy(address.host, address.port, work_queue=work, events_exchange="none")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.run)
        through = replace(address, host="127.0.0.1", port=proxy.port)
        async with (
            open_asyncio(pytest.fail),
            open_amqp(through, work_queue=work, consumes=True, now=utc_now) as broker,
        ):
            yield proxy, broker
        nursery.cancel_scope.cancel()


async def declare(broker: AmqpBroker, work: str) -> None:
    async def run(channel: Channel) -> None:
        await channel.queue_declare(work)

    channel = await broker.publishing.open_channel(confirms=False)
    await run_asyncio(run, channel)
    await broker.publishing.close_channel(channel)


@pytest.mark.parametrize(
    ("fault", "kind", "taken"),
    [
        (AmqpFault.LOST, PortUnavailable, 0),
        (AmqpFault.UNANSWERED, PortUnavailable, 1),
        (AmqpFault.CUT, PortUnavailable, 1),
        (AmqpFault.NACKED, QueueFull, 1),
        (AmqpFault.CHANNEL_CLOSED, PortUnavailable, 1),
    ],
)
async def test_a_publish_that_is_not_confirmed_fails_and_the_next_one_works(
    amqp_url: str,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    fault: AmqpFault,
    kind: type[PortUnavailable],
    taken: int,
) -> None:
    monkeypatch.setattr(publisher_module, "CONFIRM_SECONDS", 2.0)
    work = amqp_name("work")
    message = OutgoingMessage(exchange="", routing_key=work, body=b"{}", headers={})
    with trio.fail_after(DEADLINE_SECONDS):
        async with behind_proxy(amqp_url, work) as (proxy, broker):
            await declare(broker, work)
            proxy.arm(Spoken.WORK, fault)
            with pytest.raises(PortUnavailable) as caught:
                await broker.publisher.publish(message)
            assert type(caught.value) is kind
            assert proxy.struck == 1
            await broker.publisher.publish(message)
            assert await broker.publisher.ready_count() == taken + 1


@pytest.mark.parametrize(
    ("fault", "left"),
    [(AmqpFault.LOST, 1), (AmqpFault.CUT, 0), (AmqpFault.CHANNEL_CLOSED, 0)],
)
async def test_a_delivery_whose_acknowledgement_is_lost_comes_again_or_is_gone(
    amqp_url: str, amqp_name: Callable[[str], str], fault: AmqpFault, left: int
) -> None:
    work = amqp_name("work")
    message = OutgoingMessage(exchange="", routing_key=work, body=b"{}", headers={})
    with trio.fail_after(DEADLINE_SECONDS):
        async with behind_proxy(amqp_url, work) as (proxy, broker):
            await declare(broker, work)
            await broker.publisher.publish(message)
            proxy.arm(Spoken.SETTLEMENT, fault)
            async with broker.consumer.consume(prefetch=1) as deliveries:
                delivery = await anext(aiter(deliveries))
                await delivery.ack()
                with pytest.raises(PortUnavailable, match="lost"):
                    await anext(aiter(deliveries))
            assert proxy.struck == 1
            assert await broker.publisher.ready_count() == left
