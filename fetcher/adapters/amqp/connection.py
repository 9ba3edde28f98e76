"""One connection to the broker, opened when it is needed and again after it was lost."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio
from aiormq import Channel

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connect_failures import connect_failure
from fetcher.adapters.amqp.failures import TRANSPORT_FAILURES, call_broker
from fetcher.adapters.amqp.hostile_values import read_what_can_be_read
from fetcher.adapters.amqp.link import (
    CLOSE_SECONDS,
    HEARTBEAT_SECONDS,
    AbortableTransport,
    Link,
    open_link,
)
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortUnavailable

T = TypeVar("T")

OPEN_SECONDS: Final = 5.0
OPEN_TRIES: Final = 3
OPEN_BACKOFF_BASE_SECONDS: Final = 0.1
OPEN_BACKOFF_CAP_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 1.5

_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", re.ASCII)

read_what_can_be_read()


class BrokerConnection:
    """Gives out channels. ``name`` is what the broker's operator sees.

    At most one connect runs at a time; those who come meanwhile wait for it. A connect is tried
    ``open_tries`` times within 5 seconds (full jitter); longer waits are the caller's duty.
    """

    def __init__(
        self,
        address: BrokerAddress,
        *,
        name: str,
        open_tries: int = OPEN_TRIES,
        heartbeat_seconds: int = HEARTBEAT_SECONDS,
    ) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._address = address
        self._name = name
        self._open_tries = open_tries
        self._link: Link | None = None
        self._opening = trio.Lock()
        self._transport: AbortableTransport | None = None

    @property
    def tls(self) -> bool:
        return self._address.tls

    @property
    def is_open(self) -> bool:
        return self._link is not None and not self._link.is_lost

    @property
    def is_blocked(self) -> bool:
        """The broker, for want of memory or disk, takes nothing from this connection for now."""
        return self._link is not None and self._link.is_blocked

    def rest(self, channel: Channel) -> None:
        """The channel stays open and is not in use until :meth:`resume`."""
        if self._link is not None:
            self._link.in_use.leave(channel)

    def resume(self, channel: Channel) -> bool:
        """A channel that rested is in use again; False where its connection is gone, or going."""
        if self._link is None or self._link.connection is not channel.connection:
            return False
        self._link.in_use.enter(channel)
        return True

    def silence(self) -> PortUnavailable:
        """What to tell of a question that was given up: on a connection, or to get one."""
        if self.is_open:
            return PortUnavailable("the broker did not answer in time: timeout")
        is_connected = self._transport is not None and self._transport.is_connected
        return connect_failure(trio.TooSlowError(), self._address, is_connected=is_connected)

    async def broker_version(self) -> tuple[int, ...]:
        """What the broker says of itself, ``(3, 12, 1)``; empty where it says nothing of the kind.

        Raises PortUnavailable.
        """
        link = await self._live_link()
        told = link.connection.server_properties.get("version", "")
        found = _VERSION.match(
            told.decode("ascii", "replace") if isinstance(told, bytes) else str(told)
        )
        return tuple(int(part) for part in found.groups("0")) if found is not None else ()

    async def open_channel(self, *, confirms: bool) -> Channel:
        """A channel of its own on the live connection. Raises PortUnavailable."""
        link = await self._live_link()
        self._refuse_blocked(link)
        if link.abandoned:
            await self._close_abandoned(link)
            link = await self._live_link()
            self._refuse_blocked(link)
        return await self._channel_on(link, confirms=confirms)

    async def check(self, look: Callable[[Channel], Awaitable[None]] | None = None) -> None:
        """Open and close a channel, and ``look`` at something with it. Raises PortUnavailable.

        Cancellation waits for the look and the closing, 6.5 seconds at most: cut off, aiormq says
        it a second time, upon which the broker closes the whole connection, consumer and all.
        """
        link = await self._live_link()
        self._refuse_blocked(link)
        channel = await self._channel_on(link, confirms=False)
        with trio.CancelScope(shield=True):
            try:
                if look is not None:
                    await call_broker(LOOK_SECONDS, look, channel)
            finally:
                link.in_use.leave(channel)
                await self._call_on(link, channel.close)
        await trio.lowlevel.checkpoint_if_cancelled()

    async def close_channel(self, channel: Channel) -> None:
        """Close a channel; unsettled deliveries go back. Shielded, bounded, raises nothing.

        A channel that does not close in time takes its connection along, unless the broker reads
        nothing from that for now: another connection would be blocked by its first message too.
        """
        link = self._link
        if link is not None and link.is_blocked and link.connection is channel.connection:
            link.abandoned.append(channel)
            link.in_use.leave(channel)
            return
        with trio.CancelScope(shield=True):
            try:
                await call_broker(CLOSE_SECONDS, channel.close)
            except PortUnavailable:
                is_ours = link is not None and link.connection is channel.connection
                if link is not None and is_ours and not link.is_blocked:
                    await self._drop(link)
            finally:
                if link is not None:
                    link.in_use.leave(channel)

    async def close_idle(self, *, after_seconds: float) -> None:
        """Close the connection if no channel of it was in use for so long. Shielded and bounded."""
        if self._link is not None and self._link.idle_seconds >= after_seconds:
            await self._drop(self._link)

    async def aclose(self) -> None:
        """Close the connection. Shielded and bounded; a later use opens it again."""
        if self._link is not None:
            await self._drop(self._link)

    async def _channel_on(self, link: Link, *, confirms: bool) -> Channel:
        async def open_channel() -> Channel:
            return await link.open_channel(confirms=confirms)

        # Before the first checkpoint, so that nobody takes the connection for an idle one.
        with link.in_use.being_opened():
            channel = await self._call_on(link, open_channel)
            link.in_use.enter(channel)
        return channel

    def _refuse_blocked(self, link: Link) -> None:
        if link.is_blocked:
            raise PortUnavailable("the broker takes no messages for now: blocked")

    async def _close_abandoned(self, link: Link) -> None:
        """Each once: those that find the connection blocked again wait for the next time."""
        waiting, link.abandoned = link.abandoned, []
        for channel in waiting:
            await self.close_channel(channel)

    async def _call_on(self, link: Link, fn: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call_broker(OPEN_SECONDS, fn)
        except PortUnavailable:
            # A connection that opens no channel is of no use, unless it is only blocked.
            if not link.is_blocked:
                await self._drop(link)
            raise

    async def _live_link(self) -> Link:
        with trio.move_on_after(OPEN_SECONDS):
            return await self._live_or_new_link()
        raise self.silence()

    async def _live_or_new_link(self) -> Link:
        async with self._opening:
            if self._link is not None and not self._link.is_lost:
                return self._link
            if self._link is not None:
                await self._drop(self._link)
            for tries in range(self._open_tries - 1):
                try:
                    return await self._connect()
                except PortUnavailable:
                    wait = full_jitter(
                        tries,
                        base_seconds=OPEN_BACKOFF_BASE_SECONDS,
                        cap_seconds=OPEN_BACKOFF_CAP_SECONDS,
                    )
                await trio.sleep(wait)
            return await self._connect()

    async def _connect(self) -> Link:
        self._transport = transport = AbortableTransport(tls=self._address.tls)
        try:
            with trio.fail_after(OPEN_SECONDS):
                self._link = await open_link(
                    self._address,
                    transport,
                    name=self._name,
                    heartbeat_seconds=self._heartbeat_seconds,
                )
            return self._link
        except TRANSPORT_FAILURES as error:
            failure = connect_failure(error, self._address, is_connected=transport.is_connected)
        # Raised out here, so that the driver's text does not travel on as context.
        raise failure

    async def _drop(self, link: Link) -> None:
        if self._link is link:
            self._link = None
        await link.close()
