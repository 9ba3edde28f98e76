"""The objects that must lie on the broker (spec worker-and-events 1.1)."""

from typing import Final

from aiormq import Channel

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import call_broker
from fetcher.adapters.dead_letters import DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY

WORK_EXCHANGE: Final = "fetcher.extract-external-data.exchange"
WORK_QUEUE: Final = "fetcher.extract-external-data.queue"
WORK_KEY: Final = "fetcher.job.key"
EVENTS_EXCHANGE: Final = "fetcher.job.events"
DEAD_LETTER_QUEUE: Final = "fetcher.dlq"
EVENT_QUEUES: Final = {
    "fetcher.job.completed.queue": "job.completed",
    "fetcher.job.failed.queue": "job.failed",
}

DEAD_LETTER_TTL_MS: Final = 604_800_000
DEAD_LETTER_MAX_MESSAGES: Final = 10_000
DECLARE_SECONDS: Final = 10.0


async def declare_topology(
    connection: BrokerConnection,
    *,
    work_queue: str = WORK_QUEUE,
    events_exchange: str = EVENTS_EXCHANGE,
) -> None:
    """Declare 3 exchanges, 4 queues and 4 bindings; idempotent.

    Raises PortUnavailable where the broker refuses, also because an object of that name has other
    attributes.
    """

    async def declare(channel: Channel) -> None:
        for exchange, kind in (
            (WORK_EXCHANGE, "direct"),
            (DEAD_LETTER_EXCHANGE, "direct"),
            (events_exchange, "topic"),
        ):
            await channel.exchange_declare(exchange, exchange_type=kind, durable=True)
        await channel.queue_declare(
            work_queue,
            durable=True,
            arguments={
                "x-dead-letter-exchange": DEAD_LETTER_EXCHANGE,
                "x-dead-letter-routing-key": DEAD_LETTER_KEY,
            },
        )
        await channel.queue_declare(
            DEAD_LETTER_QUEUE,
            durable=True,
            arguments={
                "x-message-ttl": DEAD_LETTER_TTL_MS,
                "x-max-length": DEAD_LETTER_MAX_MESSAGES,
            },
        )
        await channel.queue_bind(work_queue, WORK_EXCHANGE, WORK_KEY)
        await channel.queue_bind(DEAD_LETTER_QUEUE, DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY)
        for queue, routing_key in EVENT_QUEUES.items():
            await channel.queue_declare(queue, durable=True)
            await channel.queue_bind(queue, events_exchange, routing_key)

    channel = await connection.open_channel(confirms=False)
    try:
        await call_broker(DECLARE_SECONDS, declare, channel)
    finally:
        await connection.close_channel(channel)
