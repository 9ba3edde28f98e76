"""A broker that delivers at least once: it forgets no message, and promises nothing else."""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import trio

from fetcher.domain.errors import DeliveryLost, PortUnavailable, Unroutable
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import OutgoingMessage, RejectReason
from tests.simulation.faults import Link, Part

QUEUE = "fetcher.extract-external-data.queue"
EVENTS = "fetcher.job.events"


class SimBroker:
    """One work queue, whose messages now and then overtake each other, and an events exchange."""

    def __init__(self, rng: random.Random, on_ack: Callable[[OutgoingMessage], None]) -> None:
        self.ready: list[OutgoingMessage] = []
        self.events: list[OutgoingMessage] = []
        self.dead_letters: list[tuple[OutgoingMessage, RejectReason]] = []
        self.consumers: list[SimDeliveries] = []
        self.returns = 0
        """How many of the next publishes find no queue."""
        self.on_ack = on_ack
        self._rng = rng
        self._changed = trio.Event()

    def held(self) -> list[OutgoingMessage]:
        """Every work message that is still there: in the queue or in a consumer's hand."""
        in_hand = [m for consumer in self.consumers for m in consumer.in_hand.values()]
        return [*self.ready, *in_hand]

    async def publish(self, message: OutgoingMessage) -> None:
        await trio.lowlevel.checkpoint()
        if self.returns > 0:
            self.returns -= 1
            raise Unroutable("returned")
        if message.exchange == EVENTS:
            self.events.append(message)
            return
        assert (message.exchange, message.routing_key) == ("", QUEUE)
        self.ready.append(message)
        self.tell()

    def take(self) -> OutgoingMessage:
        place = self._rng.randrange(len(self.ready)) if self._rng.random() < 0.2 else 0
        return self.ready.pop(place)

    def lose(self, consumer: "SimDeliveries") -> None:
        """Its connection is gone: what it had in hand is delivered anew."""
        consumer.is_lost = True
        self.ready[:0] = consumer.in_hand.values()
        consumer.in_hand.clear()
        if consumer in self.consumers:
            self.consumers.remove(consumer)
        self.tell()

    def lose_all_of(self, link: Link) -> None:
        for consumer in [c for c in self.consumers if c.link is link]:
            self.lose(consumer)

    def tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def change(self) -> None:
        await self._changed.wait()


class SimPublisher:
    """MessagePublisher and WorkBacklog of one process."""

    def __init__(self, broker: SimBroker, link: Link) -> None:
        self._broker = broker
        self._link = link

    async def publish(self, message: OutgoingMessage) -> None:
        what = "publish event" if message.exchange == EVENTS else "publish work"
        await self._link.call(Part.BROKER, what, lambda: self._broker.publish(message))

    async def ready_count(self) -> int:
        async def count() -> int:
            return len(self._broker.ready)

        return await self._link.call(Part.BROKER, "ready_count", count)


class SimConsumer:
    """WorkConsumer of one process."""

    def __init__(self, broker: SimBroker, link: Link) -> None:
        self._broker = broker
        self._link = link

    @asynccontextmanager
    async def consume(self, *, prefetch: int) -> AsyncGenerator["SimDeliveries", None]:
        deliveries = SimDeliveries(self._broker, self._link, prefetch)

        async def register() -> None:
            self._broker.consumers.append(deliveries)

        try:
            await self._link.call(Part.BROKER, "consume", register)
            yield deliveries
        finally:
            # Closing a channel needs no answer: the broker sees it end.
            self._broker.lose(deliveries)


class SimDeliveries:
    def __init__(self, broker: SimBroker, link: Link, prefetch: int) -> None:
        self.link = link
        self.is_lost = False
        self.in_hand: dict[int, OutgoingMessage] = {}
        self._broker = broker
        self._prefetch = prefetch
        self._is_stopped = False
        self._delivered = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SimDelivery":
        while True:
            await trio.lowlevel.checkpoint()
            if self.is_lost:
                raise PortUnavailable("consumer lost")
            if self._is_stopped:
                raise StopAsyncIteration
            if self._broker.ready and len(self.in_hand) < self._prefetch:
                self._delivered += 1
                message = self._broker.take()
                self.in_hand[self._delivered] = message
                return SimDelivery(self, self._delivered, message)
            await self._broker.change()

    async def stop(self) -> None:
        async def stop() -> None:
            self._is_stopped = True
            self._broker.tell()

        await self.do("cancel", stop)

    async def do(self, name: str, action: Callable[[], Awaitable[None]]) -> None:
        """As the AMQP adapter: a channel on which one operation failed is of no more use."""

        async def act() -> None:
            self._refuse_lost()
            await action()

        self._refuse_lost()
        try:
            await self.link.call(Part.BROKER, name, act)
        except PortUnavailable:
            self._broker.lose(self)
            raise DeliveryLost("channel lost") from None

    def _refuse_lost(self) -> None:
        if self.is_lost:
            raise DeliveryLost("consumer lost")

    async def settle(
        self, tag: int, *, requeue: bool = False, reason: RejectReason | None = None
    ) -> None:
        message = self.in_hand.pop(tag, None)
        if message is None:
            return
        if requeue:
            self._broker.ready.insert(0, message)
        elif reason is not None:
            self._broker.dead_letters.append((message, reason))
        else:
            self._broker.on_ack(message)
        self._broker.tell()


class SimDelivery:
    def __init__(self, deliveries: SimDeliveries, tag: int, message: OutgoingMessage) -> None:
        self._deliveries = deliveries
        self._tag = tag
        self._message = message

    @property
    def body(self) -> bytes:
        return self._message.body

    @property
    def headers(self) -> Mapping[str, HeaderValue]:
        return self._message.headers

    @property
    def exchange(self) -> str:
        return self._message.exchange

    @property
    def routing_key(self) -> str:
        return self._message.routing_key

    async def ack(self) -> None:
        await self._deliveries.do("ack", lambda: self._deliveries.settle(self._tag))

    async def reject(self, reason: RejectReason) -> None:
        settle = self._deliveries.settle
        await self._deliveries.do("reject", lambda: settle(self._tag, reason=reason))

    async def requeue(self) -> None:
        settle = self._deliveries.settle
        await self._deliveries.do("requeue", lambda: settle(self._tag, requeue=True))
