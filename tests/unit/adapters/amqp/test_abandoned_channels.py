"""Channels left behind on a blocked connection are closed later, each once a time."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiormq import Channel

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.link import AbortableTransport, Link
from fetcher.adapters.amqp.watched_connection import WatchedConnection
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable

MOST_LOOKS = 50


class Connection:
    """aiormq's; whoever asks it without end is told so, since no deadline would end such a loop."""

    is_opened = True

    def __init__(self) -> None:
        self.blocked = False
        self.looks = 0
        self.opened: list[AChannel] = []

    @property
    def is_blocked(self) -> bool:
        self.looks += 1
        assert self.looks < MOST_LOOKS, "asked without end"
        return self.blocked

    async def channel(self, *, publisher_confirms: bool) -> "AChannel":
        self.opened.append(AChannel(self))
        return self.opened[-1]


class AChannel:
    """``blocks``: the broker says that it takes nothing any more while this one is closed."""

    def __init__(self, connection: Connection, *, blocks: bool = False) -> None:
        self.connection = connection
        self.blocks = blocks
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1
        self.connection.blocked |= self.blocks


@pytest.fixture
async def asyncio_side() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


def connected(to: Connection) -> BrokerConnection:
    address = BrokerAddress(scheme="amqp", host="broker", port=1, user="u", password="")
    connection = BrokerConnection(address, name="test")
    live = cast("WatchedConnection", cast("Any", to))
    connection._link = Link(live, AbortableTransport(tls=False))
    return connection


async def abandon(connection: BrokerConnection, channels: list[AChannel]) -> None:
    channels[0].connection.blocked = True
    for channel in channels:
        await connection.close_channel(cast("Channel", cast("Any", channel)))
    channels[0].connection.blocked = False


async def test_abandoned_channels_are_closed_by_whoever_opens_the_next_one(
    asyncio_side: None,
) -> None:
    link = Connection()
    channels = [AChannel(link), AChannel(link)]
    connection = connected(link)
    await abandon(connection, channels)
    assert [channel.closed for channel in channels] == [0, 0]
    assert await connection.open_channel(confirms=True) is cast("Any", link.opened[0])
    await connection.open_channel(confirms=True)
    assert [channel.closed for channel in channels] == [1, 1]


async def test_a_connection_that_is_blocked_anew_meanwhile_keeps_the_rest_for_the_next_time(
    asyncio_side: None,
) -> None:
    link = Connection()
    channels = [AChannel(link, blocks=True), AChannel(link), AChannel(link)]
    connection = connected(link)
    await abandon(connection, channels)
    with pytest.raises(PortUnavailable, match="blocked"):
        await connection.open_channel(confirms=True)
    assert [channel.closed for channel in channels] == [1, 0, 0]
    assert link.opened == []
    link.blocked = False
    await connection.open_channel(confirms=True)
    assert [channel.closed for channel in channels] == [1, 1, 1]
