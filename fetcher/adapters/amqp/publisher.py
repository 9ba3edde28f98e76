"""Publishes with confirms; knows how much work lies ready."""

from typing import Final
from uuid import uuid4

import trio
from aiormq import Channel, spec
from aiormq.abc import DeliveredMessage, GetResultType
from pamqp.header import ContentHeader

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import call_broker
from fetcher.adapters.amqp.wire import WireProperties
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.domain.errors import PortUnavailable, QueueFull, Unroutable
from fetcher.ports import OutgoingMessage

CONFIRM_SECONDS: Final = 5.0
PLACE_SECONDS: Final = 5.0
DECLARE_SECONDS: Final = 5.0
CHANNELS: Final = 8


class AmqpPublisher:
    """MessagePublisher and WorkBacklog over one connection.

    Each channel has one unconfirmed message at a time (spec worker-and-events 2.1), so that what
    comes back on it belongs to that message; up to 8 channels publish side by side and a further
    call waits for one. A channel whose call failed, timed out or was cancelled is never used again.
    Nothing is sent twice here: who sends again signs anew.
    """

    def __init__(
        self, connection: BrokerConnection, *, work_queue: str, breaker: CircuitBreaker
    ) -> None:
        self._connection = connection
        self._work_queue = work_queue
        self._breaker = breaker
        self._places = trio.Semaphore(CHANNELS)
        self._idle: list[_ConfirmedChannel] = []

    async def publish(self, message: OutgoingMessage) -> None:
        """As the port says; PortUnavailable comes without I/O while the breaker is open, and while
        the broker blocks the connection, which says nothing of its being down."""
        await self._take_place()
        try:
            if self._connection.is_blocked:
                raise PortUnavailable("the broker takes no messages for now: blocked")
            with self._breaker.attempt():
                await self._publish(message)
        finally:
            self._places.release()

    async def ready_count(self) -> int:
        async def declare(channel: Channel) -> int:
            answer = await channel.queue_declare(self._work_queue, passive=True)
            return answer.message_count or 0

        channel = await self._connection.open_channel(confirms=False)
        try:
            return await call_broker(DECLARE_SECONDS, declare, channel)
        finally:
            await self._connection.close_channel(channel)

    async def _take_place(self) -> None:
        with trio.move_on_after(PLACE_SECONDS) as waiting:
            await self._places.acquire()
        if waiting.cancelled_caught:
            raise PortUnavailable("too many messages wait to be published")

    async def _publish(self, message: OutgoingMessage) -> None:
        channel = await self._idle_channel()
        is_sound = False
        try:
            await call_broker(CONFIRM_SECONDS, channel.publish, message)
            is_sound = True
        except (QueueFull, Unroutable):
            # It has the broker's word on its one message, and is good for the next.
            is_sound = True
            raise
        finally:
            if is_sound:
                self._connection.rest(channel.channel)
                self._idle.append(channel)
            else:
                await self._connection.close_channel(channel.channel)

    async def _idle_channel(self) -> "_ConfirmedChannel":
        while self._idle:
            channel = self._idle.pop()
            if not channel.channel.is_closed and self._connection.resume(channel.channel):
                return channel
        return _ConfirmedChannel(await self._connection.open_channel(confirms=True))


class _ConfirmedChannel:
    """A channel with at most one message unconfirmed.

    aiormq finds the message that was returned by its ``message-id``, which the Wire does not have:
    the id is put back into what the broker returned before aiormq looks for it.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._in_flight = ""
        self._read_content = channel._read_content
        channel._read_content = self._read_content_with_id  # type: ignore[method-assign]  # see above

    async def publish(self, message: OutgoingMessage) -> None:
        """Runs on the asyncio side."""
        self._in_flight = uuid4().hex
        await self.channel.basic_publish(
            message.body,
            exchange=message.exchange,
            routing_key=message.routing_key,
            properties=WireProperties(message.headers, message_id=self._in_flight),
            mandatory=True,
        )

    async def _read_content_with_id(
        self, frame: spec.Basic.Deliver | spec.Basic.Return | GetResultType, header: ContentHeader
    ) -> DeliveredMessage:
        header.properties.message_id = self._in_flight
        return await self._read_content(frame, header)
