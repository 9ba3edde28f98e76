"""One connection to the broker, opened when it is needed and again after it was lost."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

import aiormq
import trio
from aiormq import Channel
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from aiormq.exceptions import ChannelInvalidStateError
from yarl import URL

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.failures import TRANSPORT_FAILURES, call_broker
from fetcher.adapters.amqp.hostile_values import read_what_can_be_read
from fetcher.bridge import run_asyncio
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortUnavailable

T = TypeVar("T")

OPEN_SECONDS: Final = 5.0
OPEN_TRIES: Final = 3
OPEN_BACKOFF_BASE_SECONDS: Final = 0.1
OPEN_BACKOFF_CAP_SECONDS: Final = 2.0
CLOSE_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 1.5
HEARTBEAT_SECONDS: Final = 15

_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", re.ASCII)

read_what_can_be_read()


class _AbortableTransport(TransportFactory):
    """Remembers the socket's writer, so that a broker that hangs cannot keep us from closing."""

    def __init__(self, *, tls: bool) -> None:
        self._factory = TLSTransportFactory() if tls else TCPTransportFactory()
        self._writer: Any = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[Any, Any]:
        reader, self._writer = await self._factory.create(url, **kwargs)
        return reader, self._writer

    async def abort(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class _Link:
    """One live aiormq connection."""

    def __init__(self, connection: aiormq.Connection, transport: _AbortableTransport) -> None:
        self.connection = connection
        self._transport = transport

    @property
    def is_lost(self) -> bool:
        return not self.connection.is_opened

    async def open_channel(self, *, confirms: bool) -> Channel:
        """Runs on the asyncio side."""
        if self.is_lost:
            raise ChannelInvalidStateError
        return cast("Channel", await self.connection.channel(publisher_confirms=confirms))

    async def close(self) -> None:
        """Say goodbye within 2 seconds, else cut the socket. Shielded; raises nothing."""
        with trio.CancelScope(shield=True):
            try:
                with trio.fail_after(CLOSE_SECONDS):
                    await run_asyncio(self.connection.close)
            except TRANSPORT_FAILURES:
                with trio.move_on_after(CLOSE_SECONDS):
                    await run_asyncio(self._transport.abort)


class BrokerConnection:
    """Gives out channels. ``name`` is what the broker's operator sees.

    At most one connect runs at a time; those who come meanwhile wait for it. A connect is tried 3
    times within 5 seconds (full jitter); longer waits are the caller's duty.
    """

    def __init__(self, address: BrokerAddress, *, name: str) -> None:
        self._address = address
        self._name = name
        self._link: _Link | None = None
        self._opening = trio.Lock()

    @property
    def tls(self) -> bool:
        return self._address.tls

    @property
    def is_open(self) -> bool:
        return self._link is not None and not self._link.is_lost

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

        async def open_channel() -> Channel:
            return await link.open_channel(confirms=confirms)

        return await self._call_on(link, open_channel)

    async def check(self, look: Callable[[Channel], Awaitable[None]] | None = None) -> None:
        """Open and close a channel, and ``look`` at something with it. Raises PortUnavailable.

        Cancellation waits for the look and the closing, 6.5 seconds at most: cut off, aiormq says
        it a second time, upon which the broker closes the whole connection, consumer and all.
        """
        link = await self._live_link()

        async def open_channel() -> Channel:
            return await link.open_channel(confirms=False)

        channel = await self._call_on(link, open_channel)
        with trio.CancelScope(shield=True):
            try:
                if look is not None:
                    await call_broker(LOOK_SECONDS, look, channel)
            finally:
                await self._call_on(link, channel.close)
        await trio.lowlevel.checkpoint_if_cancelled()

    async def close_channel(self, channel: Channel) -> None:
        """Close a channel; unsettled deliveries go back. Shielded, bounded, raises nothing.

        A channel that does not close in time takes its connection along.
        """
        link = self._link
        with trio.CancelScope(shield=True):
            try:
                await call_broker(CLOSE_SECONDS, channel.close)
            except PortUnavailable:
                if link is not None and link.connection is channel.connection:
                    await self._drop(link)

    async def aclose(self) -> None:
        """Close the connection. Shielded and bounded; a later use opens it again."""
        if self._link is not None:
            await self._drop(self._link)

    async def _call_on(self, link: _Link, fn: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call_broker(OPEN_SECONDS, fn)
        except PortUnavailable:
            # A connection that opens no channel is of no use, whatever the reason.
            await self._drop(link)
            raise

    async def _live_link(self) -> _Link:
        with trio.move_on_after(OPEN_SECONDS):
            return await self._live_or_new_link()
        raise PortUnavailable("the broker did not answer in time: timeout")

    async def _live_or_new_link(self) -> _Link:
        async with self._opening:
            if self._link is not None and not self._link.is_lost:
                return self._link
            if self._link is not None:
                await self._drop(self._link)
            for tries in range(OPEN_TRIES - 1):
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

    async def _connect(self) -> _Link:
        transport = _AbortableTransport(tls=self._address.tls)

        async def connect() -> aiormq.Connection:
            kwargs: dict[str, Any] = (
                {"ssl_shutdown_timeout": CLOSE_SECONDS} if self._address.tls else {}
            )
            connection = aiormq.Connection(
                URL(self._address.url()).with_query(heartbeat=HEARTBEAT_SECONDS, name=self._name),
                transport_factory=transport,
                **kwargs,
            )
            await connection.connect()
            return connection

        self._link = _Link(await call_broker(OPEN_SECONDS, connect), transport)
        return self._link

    async def _drop(self, link: _Link) -> None:
        if self._link is link:
            self._link = None
        await link.close()
