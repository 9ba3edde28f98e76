"""One live connection of aiormq: made, watched and closed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import trio
from aiormq import Channel
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from aiormq.exceptions import ChannelInvalidStateError
from yarl import URL

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.failures import TRANSPORT_FAILURES
from fetcher.adapters.amqp.tls import tls_context
from fetcher.adapters.amqp.watched_connection import WatchedConnection
from fetcher.bridge import run_asyncio

CLOSE_SECONDS: Final = 2.0
HEARTBEAT_SECONDS: Final = 15


class AbortableTransport(TransportFactory):
    """Remembers the socket's writer, so that a broker that hangs cannot keep us from closing."""

    def __init__(self, *, tls: bool) -> None:
        self._factory = TLSTransportFactory() if tls else TCPTransportFactory()
        self._writer: Any = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[Any, Any]:
        reader, self._writer = await self._factory.create(url, **kwargs)
        return reader, self._writer

    @property
    def is_connected(self) -> bool:
        return self._writer is not None

    async def abort(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class ChannelsInUse:
    """Which channels of a connection are in use, and since when none is."""

    def __init__(self) -> None:
        self._channels: set[Channel] = set()
        self._opening = 0
        self._left_at = trio.current_time()

    @property
    def idle_seconds(self) -> float:
        """0 while one is in use."""
        if self._channels or self._opening:
            return 0.0
        return trio.current_time() - self._left_at

    def enter(self, channel: Channel) -> None:
        self._channels.add(channel)

    def leave(self, channel: Channel) -> None:
        if channel in self._channels:
            self._channels.remove(channel)
            self._left_at = trio.current_time()

    @contextmanager
    def being_opened(self) -> Iterator[None]:
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
            self._left_at = trio.current_time()


class Link:
    """One live aiormq connection."""

    def __init__(self, connection: WatchedConnection, transport: AbortableTransport) -> None:
        self.connection = connection
        self.abandoned: list[Channel] = []
        """Those on which a call ended while the broker read nothing: closed once it reads."""
        self.in_use = ChannelsInUse()
        self._transport = transport

    @property
    def is_lost(self) -> bool:
        return not self.connection.is_opened

    @property
    def is_blocked(self) -> bool:
        return self.connection.is_blocked and not self.is_lost

    @property
    def idle_seconds(self) -> float:
        return self.in_use.idle_seconds

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


async def open_link(
    address: BrokerAddress,
    transport: AbortableTransport,
    *,
    name: str,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
) -> Link:
    """Connect once, with the driver's own exceptions; the caller sets the deadline.

    Both sides send a heartbeat in half of ``heartbeat_seconds``. The broker lets go of us after two
    without one, aiormq of the broker after three, and three seconds.
    """
    context = await tls_context(address.ca_pem) if address.tls else None

    async def connect() -> WatchedConnection:
        kwargs: dict[str, Any] = (
            {"ssl_shutdown_timeout": CLOSE_SECONDS, "context": context} if address.tls else {}
        )
        connection = WatchedConnection(
            URL(address.url()).with_query(heartbeat=heartbeat_seconds, name=name),
            transport_factory=transport,
            **kwargs,
        )
        # What aiormq reads out of an address is another host's: "." is none, "%2F" a slash.
        connection.vhost = address.vhost
        await connection.connect()
        return connection

    return Link(await run_asyncio(connect), transport)
