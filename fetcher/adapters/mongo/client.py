"""A client of the driver: made, and closed again. Its address and its options are the caller's."""

import warnings
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.driver_locks import keep_locks
from fetcher.adapters.mongo.pool_count import PoolCount
from fetcher.bridge import asyncio_context, run_asyncio

SELECTION_MS: Final = 5_000
CONNECT_MS: Final = 5_000
HEARTBEAT_MS: Final = 10_000


class AddressRefused(ValueError):
    """The driver does not accept the address or an option. Its own text may hold a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClient:
    driver: AsyncMongoClient[Document] = field(repr=False)
    tls: bool
    connection_use: Callable[[], tuple[int, int]]
    """Connections to the servers: open, and in use."""


@asynccontextmanager
async def open_client(
    uri: str, options: Mapping[str, Any], *, tls: bool, max_pool_size: int
) -> AsyncGenerator[OpenClient, None]:
    """Open a client inside the asyncio room. Nothing is dialled before it is used.

    ``tls`` is told on, and decides nothing. ``options`` win over the address's. Raise
    AddressRefused.
    """
    keep_locks()
    pool = PoolCount()

    async def make() -> AsyncMongoClient[Document]:
        with warnings.catch_warnings():
            # The driver warns of a parameter that it will ignore, such as tls=perhaps.
            warnings.simplefilter("error", UserWarning)
            return AsyncMongoClient(
                uri,
                appname="fetcher",
                serverSelectionTimeoutMS=SELECTION_MS,
                connectTimeoutMS=CONNECT_MS,
                heartbeatFrequencyMS=HEARTBEAT_MS,
                maxPoolSize=max_pool_size,
                event_listeners=[pool],
                **options,
            )

    client = None
    # What it raises is told below, so that its text does not travel on as context.
    with suppress(PyMongoError, OSError, ValueError, TypeError, UserWarning):
        client = await run_asyncio(make)
    if client is None:
        raise AddressRefused("the driver does not accept the address or its parameters")
    made = client
    async with asyncio_context(lambda: made):
        yield OpenClient(driver=made, tls=tls, connection_use=pool.use)
