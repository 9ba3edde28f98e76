"""How much lies in the broker's queues, and what of a queue that is not there."""

from collections.abc import Callable

import pytest
from aiormq import Channel

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.queue_depths import AmqpQueueDepths
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import QueueDepth
from tests.contract.queue.work_queues import broker_address

pytestmark = pytest.mark.integration


async def test_messages_and_consumers_are_counted_and_a_missing_queue_is_said(
    amqp_url: str, amqp_name: Callable[[str], str]
) -> None:
    work, missing = amqp_name("work"), amqp_name("missing")
    async with open_asyncio(pytest.fail):
        connection = BrokerConnection(broker_address(amqp_url), name="test")
        try:
            channel = await connection.open_channel(confirms=True)

            async def fill(channel: Channel) -> None:
                await channel.queue_declare(work)
                for _ in range(3):
                    await channel.basic_publish(b"x", routing_key=work)

            await run_asyncio(fill, channel)
            depths = AmqpQueueDepths(connection, {missing: "work", work: "dead_letters"})
            for _ in range(2):
                assert await depths.depths() == [
                    QueueDepth(name=missing, purpose="work", ready=None),
                    QueueDepth(name=work, purpose="dead_letters", ready=3, consumers=0),
                ]
        finally:
            await connection.aclose()


async def test_broker_that_is_away_is_unavailable(amqp_url: str) -> None:
    async with open_asyncio(pytest.fail):
        address = broker_address(amqp_url)
        nobody = type(address)(
            scheme="amqp", host="127.0.0.1", port=1, user="u", password="canary-secret"
        )
        connection = BrokerConnection(nobody, name="test")
        with pytest.raises(PortUnavailable) as caught:
            await AmqpQueueDepths(connection, {"work": "work"}).depths()
        assert "canary" not in f"{caught.value} {caught.value.__context__}"
