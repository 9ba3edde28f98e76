"""The dead letters on the broker, looked at without losing one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import call_broker
from fetcher.adapters.amqp.harmless_looks import may_look
from fetcher.adapters.dead_letters import DEAD_LETTER_QUEUE, read_dead_letter
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.errors import PortUnavailable

PAGE_SECONDS: Final = 30.0
PAGE_BYTES: Final = 8 * 1024 * 1024
MOST_AT_ONCE: Final = 50
QUIET_SECONDS: Final = 2.0
TRIES: Final = 5


class AmqpDeadLetterQueue:
    """DeadLetterQueue over one channel a window."""

    def __init__(self, connection: BrokerConnection, *, queue: str = DEAD_LETTER_QUEUE) -> None:
        self._connection = connection
        self._queue = queue

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["AmqpDeadLetterWindow", None]:
        """Letters stay unacknowledged: the broker puts them back with the channel, also when the
        connection or this process is lost. Raises PortUnavailable."""

        channel = await self._connection.open_channel(confirms=False)
        try:
            total = await call_broker(PAGE_SECONDS, count_ready, channel, self._queue)
            yield AmqpDeadLetterWindow(channel, self._queue, total)
        finally:
            await self._connection.close_channel(channel)

    async def survives_looks(self) -> bool:
        return await may_look(self._connection, self._queue)


class AmqpDeadLetterWindow:
    """DeadLetterWindow: a letter's tag is its delivery tag.

    A get is a round trip a letter, 5 ms on a quorum queue. A consumer is given some letters at
    once instead, is cancelled, and leaves them in our hands; the next one gets the next ones. How
    many follows their size, since what a consumer may get is in memory before we can look at it.
    """

    def __init__(self, channel: Channel, queue: str, total: int) -> None:
        self._channel = channel
        self._queue = queue
        self._left = total
        self._at_once = 1
        self.total = total
        self.gone = 0

    async def next_page(self, *, limit: int) -> list[DeadLetter]:
        """About 8 MiB, unless letters suddenly grow."""
        page: list[DeadLetter] = []
        size = 0
        while len(page) < limit and size < PAGE_BYTES and self._left > 0:
            messages = await self._take(min(self._at_once, limit - len(page), self._left))
            self._left = self._left - len(messages) if messages else 0
            page += [_letter(message) for message in messages]
            largest = max((len(message.body) for message in messages), default=0)
            size += sum(len(message.body) for message in messages)
            self._at_once = max(
                1, min(2 * self._at_once, MOST_AT_ONCE, PAGE_BYTES // (largest + 1))
            )
        return page

    async def remove(self, letters: Sequence[DeadLetter]) -> None:
        async def acknowledge() -> None:
            for letter in letters:
                await self._channel.basic_ack(letter.tag)
                self.gone += 1

        await call_broker(PAGE_SECONDS, acknowledge)

    async def _take(self, count: int) -> list[DeliveredMessage]:
        """So many letters, or fewer where there are no more; none after the last."""
        for _ in range(TRIES):
            taken = await self._consume(count)
            if (
                taken
                or await call_broker(PAGE_SECONDS, count_ready, self._channel, self._queue) == 0
            ):
                return taken
        raise PortUnavailable("the broker did not answer in time: timeout")

    async def _consume(self, count: int) -> list[DeliveredMessage]:
        arrived, waiting = trio.open_memory_channel[DeliveredMessage](count)

        async def on_message(message: DeliveredMessage) -> None:
            arrived.send_nowait(message)

        async def start() -> str:
            await self._channel.basic_qos(prefetch_count=count)
            answer = await self._channel.basic_consume(self._queue, on_message)
            return answer.consumer_tag or ""

        taken: list[DeliveredMessage] = []
        tag = await call_broker(PAGE_SECONDS, start)
        with trio.move_on_after(QUIET_SECONDS):
            while len(taken) < count:
                taken.append(await waiting.receive())
        await call_broker(PAGE_SECONDS, self._channel.basic_cancel, tag)
        with suppress(trio.WouldBlock):
            while True:
                taken.append(waiting.receive_nowait())
        return taken


async def count_ready(channel: Channel, queue: str) -> int:
    """Runs on the asyncio side."""
    answer = await channel.queue_declare(queue, passive=True)
    return answer.message_count or 0


def _letter(message: DeliveredMessage) -> DeadLetter:
    if message.delivery_tag is None:
        raise PortUnavailable("the broker delivered a message without a tag")
    headers = message.header.properties.headers or {}
    return read_dead_letter(tag=message.delivery_tag, body=message.body, headers=headers)
