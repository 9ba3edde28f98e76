"""Connections that nobody uses are closed: of tenants there are hundreds, and few do something."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from fetcher.adapters.amqp.connection import BrokerConnection

LOOKS: Final = 4
"""In the time after which a connection is closed."""


@asynccontextmanager
async def closed_when_idle(
    connections: Sequence[BrokerConnection], *, idle_seconds: float
) -> AsyncGenerator[None, None]:
    """Close each that had no channel in use for ``idle_seconds`` (at most a quarter later), while
    the context is open. Whoever uses one afterwards opens it again."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_look_after, connections, idle_seconds)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it goes on below: the nursery would wrap it
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _look_after(connections: Sequence[BrokerConnection], idle_seconds: float) -> None:
    while True:
        await trio.sleep(idle_seconds / LOOKS)
        for connection in connections:
            await connection.close_idle(after_seconds=idle_seconds)
