"""How many dead letters lie on the broker, and since when the oldest does (decision 041).

AMQP tells how many are ready; of their age it tells nothing. The letter at the head of the queue is
taken and put back, which counts as a delivery of it: that is done as seldom as the answer allows,
and never to a queue that drops a letter after some deliveries.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage
from pamqp.commands import Basic

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import count_ready
from fetcher.adapters.amqp.failures import call_broker
from fetcher.adapters.amqp.harmless_looks import may_look
from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE, dead_since
from fetcher.ports import DeadLetterLevel

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 3600.0


class AmqpDeadLetterLevels:
    """DeadLetterLevels. It remembers the head: it is looked at anew only when letters were taken
    away since, or after an hour."""

    def __init__(
        self,
        connection: BrokerConnection,
        *,
        now: Callable[[], datetime],
        queue: str = DEAD_LETTER_QUEUE,
    ) -> None:
        self._connection = connection
        self._now = now
        self._queue = queue
        self._oldest_at: datetime | None = None
        self._looked_at: float | None = None
        self._count = 0
        self._is_told = False

    async def level(self) -> DeadLetterLevel:
        count = await self._ready()
        if count == 0:
            self._oldest_at = self._looked_at = None
        elif self._is_look_due(count):
            await self._look()
        self._count = count
        return DeadLetterLevel(messages=count, oldest_at=self._oldest_at)

    def _is_look_due(self, count: int) -> bool:
        if self._looked_at is None or count < self._count:
            return True
        return trio.current_time() - self._looked_at >= LOOK_AGAIN_SECONDS

    async def _ready(self) -> int:
        channel = await self._connection.open_channel(confirms=False)
        try:
            return await call_broker(LOOK_SECONDS, count_ready, channel, self._queue)
        finally:
            await self._connection.close_channel(channel)

    async def _look(self) -> None:
        if not await may_look(self._connection, self._queue):
            if not self._is_told:
                log.warning("dead_letter_age_unknown", queue=self._queue, why="delivery limit")
            self._is_told = True
            self._keep(None)
            return
        channel = await self._connection.open_channel(confirms=False)
        try:
            head = await call_broker(LOOK_SECONDS, _peek, channel, self._queue)
        finally:
            # Not acknowledged: the broker puts it back where it was.
            await self._connection.close_channel(channel)
        if head is None:
            return  # somebody has them all in hand: the next round looks again
        # One that tells no time lies there since now at the latest.
        known = self._oldest_at if self._oldest_at is not None else self._now()
        self._keep(dead_since(head.header.properties.headers or {}) or known)

    def _keep(self, oldest_at: datetime | None) -> None:
        self._oldest_at = oldest_at
        self._looked_at = trio.current_time()


async def _peek(channel: Channel, queue: str) -> DeliveredMessage | None:
    """Runs on the asyncio side."""
    message = await channel.basic_get(queue)
    return None if isinstance(message.delivery, Basic.GetEmpty) else message
