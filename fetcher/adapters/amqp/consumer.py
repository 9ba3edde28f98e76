"""Consumes the work queue."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Self, TypeAlias
from uuid import uuid4

import trio
from aiormq import Channel
from aiormq.abc import DeliveredMessage

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letters import publish_dead_letter
from fetcher.adapters.amqp.failures import call_broker
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.domain.errors import DeliveryLost, PortUnavailable
from fetcher.ports import Deliveries, Delivery, MessagePublisher, RejectReason, UtcNow

Reject: TypeAlias = Callable[[Delivery, RejectReason], Awaitable[None]]

START_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 5.0
CANCEL_SECONDS: Final = 2.0


class AmqpConsumer:
    """WorkConsumer on a connection of its own. ``dead_letters`` publishes what is rejected."""

    def __init__(
        self,
        connection: BrokerConnection,
        *,
        queue: str,
        dead_letters: MessagePublisher,
        breaker: CircuitBreaker,
        now: UtcNow,
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._dead_letters = dead_letters
        self._breaker = breaker
        self._now = now

    @asynccontextmanager
    async def consume(self, *, prefetch: int) -> AsyncGenerator[Deliveries, None]:
        """As the port says; a queue that is missing is PortUnavailable like a broker that is away.

        A broker that cancels the consumer (its queue was deleted) counts as a lost connection.
        Leaving is shielded and takes at most some seconds.
        """
        if prefetch < 1:
            raise ValueError("prefetch must be at least 1: without a bound deliveries pile up here")
        with self._breaker.attempt():
            channel = await self._connection.open_channel(confirms=False)
            deliveries = AmqpDeliveries(channel, self._reject, prefetch=prefetch)
            try:
                await call_broker(START_SECONDS, deliveries.start, self._queue)
            except BaseException:
                await self._connection.close_channel(channel)
                deliveries.close()
                raise
        try:
            yield deliveries
        finally:
            await self._leave(channel, deliveries)

    async def _reject(self, delivery: Delivery, reason: RejectReason) -> None:
        await publish_dead_letter(self._dead_letters, delivery, reason, rejected_at=self._now())

    async def _leave(self, channel: Channel, deliveries: "AmqpDeliveries") -> None:
        with trio.CancelScope(shield=True):  # each step has its own deadline
            with suppress(PortUnavailable):  # closing the channel puts back what is not settled
                await deliveries.stop()
            await self._connection.close_channel(channel)
            deliveries.close()


class AmqpDeliveries:
    """Deliveries of one consumer: its callback puts them into a channel, tasks settle them."""

    def __init__(self, channel: Channel, reject: Reject, *, prefetch: int) -> None:
        self._channel = channel
        self.publish_dead_letter = reject
        self._prefetch = prefetch
        self._arrived, self._waiting = trio.open_memory_channel[DeliveredMessage](prefetch)
        self._consumer_tag = ""
        self._is_stopped = False
        self._is_lost = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        try:
            message = await self._waiting.receive()
        except trio.EndOfChannel:
            message = None
        self.refuse_lost()
        if message is None:
            raise StopAsyncIteration
        return AmqpDelivery(message, self)

    async def stop(self) -> None:
        """Cancel the consumer; what came and was not taken yet goes back to the queue."""
        if self._is_stopped or self._is_lost:
            return
        self._is_stopped = True
        await self.do(self._cancel_and_put_back, seconds=CANCEL_SECONDS)
        self._arrived.close()

    async def do(self, action: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        """One bridged operation on the channel, which is of no use once one has failed."""
        self.refuse_lost()
        try:
            await call_broker(seconds, action)
        except PortUnavailable:
            self.lose()
        self.refuse_lost()

    def refuse_lost(self) -> None:
        if self._is_lost:
            raise DeliveryLost("the consumer's connection to the broker was lost")

    def lose(self) -> None:
        """Nothing can be settled any more, and the iterator says so."""
        self._is_lost = True
        self._arrived.close()

    def close(self) -> None:
        self._arrived.close()
        self._waiting.close()

    async def start(self, queue: str) -> None:
        """Runs on the asyncio side."""
        self._consumer_tag = f"{queue}-{uuid4()}"
        self._channel.closing.add_done_callback(lambda _closed: self.lose())
        self._channel.on_consumer_cancel_callbacks.add(lambda _frame: self.lose())
        await self._channel.basic_qos(prefetch_count=self._prefetch)
        await self._channel.basic_consume(queue, self._on_message, consumer_tag=self._consumer_tag)

    async def _on_message(self, message: DeliveredMessage) -> None:
        """Runs on the asyncio side, so it waits for nobody of ours."""
        try:
            self._arrived.send_nowait(message)
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            await _put_back(message)

    async def _cancel_and_put_back(self) -> None:
        """Runs on the asyncio side."""
        await self._channel.basic_cancel(self._consumer_tag)
        self._arrived.close()
        with suppress(trio.EndOfChannel, trio.WouldBlock):
            while True:
                await _put_back(self._waiting.receive_nowait())


class AmqpDelivery:
    """A settlement that failed or was cancelled is not tried again: the broker delivers anew."""

    def __init__(self, message: DeliveredMessage, deliveries: AmqpDeliveries) -> None:
        self._message = message
        self._deliveries = deliveries
        self._is_settled = False

    @property
    def body(self) -> bytes:
        return self._message.body

    @property
    def headers(self) -> Mapping[str, object]:
        return self._message.header.properties.headers or {}

    @property
    def exchange(self) -> str:
        return self._message.exchange or ""

    @property
    def routing_key(self) -> str:
        return self._message.routing_key or ""

    async def ack(self) -> None:
        self._check_unsettled()
        await self._settle(self._acknowledge)

    async def reject(self, reason: RejectReason) -> None:
        """Where the dead letters cannot be reached the delivery stays in hand, unsettled."""
        self._check_unsettled()
        self._deliveries.refuse_lost()
        await self._deliveries.publish_dead_letter(self, reason)
        await self._settle(self._acknowledge)

    async def requeue(self) -> None:
        self._check_unsettled()
        await self._settle(self._put_back)

    def _check_unsettled(self) -> None:
        if self._is_settled:
            raise RuntimeError("this delivery has been settled already")

    async def _settle(self, action: Callable[[], Awaitable[None]]) -> None:
        self._is_settled = True
        await self._deliveries.do(action, seconds=SETTLE_SECONDS)

    async def _acknowledge(self) -> None:
        await self._message.channel.basic_ack(_tag(self._message))

    async def _put_back(self) -> None:
        await _put_back(self._message)


async def _put_back(message: DeliveredMessage) -> None:
    await message.channel.basic_nack(_tag(message), requeue=True)


def _tag(message: DeliveredMessage) -> int:
    tag = message.delivery_tag
    if tag is None:
        raise PortUnavailable("the broker delivered a message without a tag")
    return tag
