"""The work queue inside one process (design section 8)."""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self, TypeAlias

import trio

from fetcher.adapters.dead_letters import dead_letter
from fetcher.domain.errors import DeliveryLost, QueueFull, Unroutable
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import (
    Deliveries,
    Delivery,
    MessagePublisher,
    OutgoingMessage,
    Probe,
    ProbeResult,
    ProbeStatus,
    RejectReason,
    UtcNow,
)

CAPACITY: Final = 1000

Reject: TypeAlias = Callable[[OutgoingMessage, RejectReason], Awaitable[None]]


class LocalWorkQueue:
    """MessagePublisher for the work route, WorkConsumer and WorkBacklog.

    It forgets everything with the process: the job records are the truth, and their sweep fills it
    again. A full queue is QueueFull, and the sweep comes back. What is put back may exceed
    the capacity by what was in hand.
    """

    def __init__(
        self,
        name: str,
        *,
        dead_letters: MessagePublisher,
        now: UtcNow,
        capacity: int = CAPACITY,
    ) -> None:
        self.name = name
        self._capacity = capacity
        self._dead_letters = dead_letters
        self._now = now
        self._ready: deque[OutgoingMessage] = deque()
        self._changed = trio.Condition()

    async def publish(self, message: OutgoingMessage) -> None:
        if (message.exchange, message.routing_key) != ("", self.name):
            raise Unroutable("the local queue takes work messages only")
        async with self._changed:
            if len(self._ready) >= self._capacity:
                raise QueueFull("the local queue is full")
            self._ready.append(message)
            self._changed.notify_all()

    async def ready_count(self) -> int:
        return len(self._ready)

    @asynccontextmanager
    async def consume(self, *, prefetch: int) -> AsyncGenerator[Deliveries, None]:
        if prefetch < 1:
            raise ValueError("prefetch must be at least 1")
        deliveries = LocalDeliveries(self._ready, self._changed, self._reject, prefetch)
        try:
            yield deliveries
        finally:
            with trio.CancelScope(shield=True):  # waits for the queue's own lock only
                await deliveries.put_back_all()

    async def _reject(self, message: OutgoingMessage, reason: RejectReason) -> None:
        await self._dead_letters.publish(
            dead_letter(
                body=message.body,
                headers=message.headers,
                exchange=message.exchange,
                routing_key=message.routing_key,
                reason=reason,
                rejected_at=self._now(),
            )
        )

    def probe(self) -> Probe:
        """The ``queue`` entry of readiness: it is up for as long as the process is."""

        async def check() -> ProbeResult:
            return ProbeResult(status=ProbeStatus.UP)

        return Probe(name="queue", timeout_seconds=2.0, check=check)


class LocalDeliveries:
    """One consumer's view: what it may take, and what it has in hand."""

    def __init__(
        self,
        ready: deque[OutgoingMessage],
        changed: trio.Condition,
        reject: Reject,
        prefetch: int,
    ) -> None:
        self._ready = ready
        self._changed = changed
        self._reject = reject
        self._prefetch = prefetch
        self._in_hand: dict[LocalDelivery, OutgoingMessage] = {}
        self._is_stopped = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        async with self._changed:
            while not self._is_stopped:
                if self._ready and len(self._in_hand) < self._prefetch:
                    message = self._ready.popleft()
                    delivery = LocalDelivery(message, self)
                    self._in_hand[delivery] = message
                    return delivery
                await self._changed.wait()
        raise StopAsyncIteration

    async def stop(self) -> None:
        async with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    async def put_back_all(self) -> None:
        async with self._changed:
            self._is_stopped = True
            self._ready.extendleft(reversed(self._in_hand.values()))
            self._in_hand.clear()
            self._changed.notify_all()

    async def settle(self, delivery: "LocalDelivery", *, requeue: bool) -> None:
        """Raises DeliveryLost after the consumer was left: the message is back in the queue."""
        async with self._changed:
            message = self._in_hand.pop(delivery, None)
            if message is None:
                raise DeliveryLost("the consumer of this delivery is closed")
            if requeue:
                self._ready.appendleft(message)
            self._changed.notify_all()

    async def reject(self, delivery: "LocalDelivery", reason: RejectReason) -> None:
        message = self._in_hand.get(delivery)
        if message is not None:
            await self._reject(message, reason)
        await self.settle(delivery, requeue=False)


class LocalDelivery:
    def __init__(self, message: OutgoingMessage, deliveries: LocalDeliveries) -> None:
        self._message = message
        self._deliveries = deliveries
        self._is_settled = False

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
        self._spend()
        await self._deliveries.settle(self, requeue=False)

    async def reject(self, reason: RejectReason) -> None:
        self._check_unsettled()
        await self._deliveries.reject(self, reason)
        self._spend()

    async def requeue(self) -> None:
        self._spend()
        await self._deliveries.settle(self, requeue=True)

    def _spend(self) -> None:
        self._check_unsettled()
        self._is_settled = True

    def _check_unsettled(self) -> None:
        if self._is_settled:
            raise RuntimeError("this delivery has been settled already")
