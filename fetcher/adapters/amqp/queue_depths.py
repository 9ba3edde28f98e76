"""How much lies in the broker's queues."""

from collections.abc import Mapping, Sequence
from typing import Final

from aiormq import Channel
from aiormq.exceptions import ChannelNotFoundEntity

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import call_broker
from fetcher.ports import QueueDepth

DECLARE_SECONDS: Final = 5.0


class AmqpQueueDepths:
    """QueueDepths by passive declares; ``purposes`` are of queues by their names, in the order in
    which they are told. What consumers hold is not counted: AMQP does not tell it."""

    def __init__(self, connection: BrokerConnection, purposes: Mapping[str, str]) -> None:
        self._connection = connection
        self._purposes = purposes

    async def depths(self) -> Sequence[QueueDepth]:
        return [await self._depth(name, purpose) for name, purpose in self._purposes.items()]

    async def _depth(self, name: str, purpose: str) -> QueueDepth:
        async def declare(channel: Channel) -> QueueDepth:
            try:
                found = await channel.queue_declare(name, passive=True)
            except ChannelNotFoundEntity:
                return QueueDepth(name=name, purpose=purpose, ready=None)
            return QueueDepth(
                name=name,
                purpose=purpose,
                ready=found.message_count or 0,
                consumers=found.consumer_count or 0,
            )

        # One channel a queue: the broker closes it where the queue is missing.
        channel = await self._connection.open_channel(confirms=False)
        try:
            return await call_broker(DECLARE_SECONDS, declare, channel)
        finally:
            await self._connection.close_channel(channel)
