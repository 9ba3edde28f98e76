"""One Redis that may go away: who uses it learns that at once, and does without."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, TypeAlias, TypeVar

import structlog
import trio
from redis.asyncio import Redis

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.client import MAX_CONNECTIONS, new_client
from fetcher.adapters.redis.failures import call_redis
from fetcher.adapters.redis.probe import redis_probe
from fetcher.bridge import asyncio_context
from fetcher.domain.errors import PortUnavailable
from fetcher.fair_places import FairPlaces
from fetcher.ports import Probe

log = structlog.get_logger(__name__)

T = TypeVar("T")

OPERATION_SECONDS: Final = 0.5
"""Of one operation, connecting and logging in included: a request waits for it."""
PLACE_SECONDS: Final = 0.25
"""For the wait that comes before it, where all connections are in use."""
AWAY_SECONDS: Final = 5.0
"""How long Redis is left alone after a failure; then one operation tries it."""
REMEMBERED_SECONDS: Final = 60.0
"""For how long a failure counts where nothing has asked Redis since."""

Operation: TypeAlias = Callable[[Redis], Awaitable[T]]
"""A coroutine function that runs on the asyncio side: it may await redis-py and nothing else."""


class RedisServer:
    """Runs operations, one crossing each. One failure is enough to leave it alone for 5 s."""

    def __init__(self, client: Redis, *, probe: Probe) -> None:
        self._client = client
        self._breaker = CircuitBreaker(failures_to_open=1, open_seconds=AWAY_SECONDS)
        self._places = FairPlaces(MAX_CONNECTIONS)
        self._away_since: float | None = None
        self._failed_at = -math.inf
        self.probe = probe

    @property
    def is_away(self) -> bool:
        """Whether the last use of it failed, a minute ago at most."""
        if self._away_since is None:
            return False
        return trio.current_time() - self._failed_at < REMEMBERED_SECONDS

    async def run(self, operation: Operation[T], *, tenant_id: str = "") -> T:
        """The operation's result. Connections are given out in turn by tenant.

        Raise PortUnavailable: at the latest after half a second with a connection, after a quarter
        of one without, which says nothing against Redis, and without any I/O while Redis is left
        alone. What an operation that was cut off did in Redis stays done.
        """
        places = self._places.of(tenant_id, MAX_CONNECTIONS)
        with trio.move_on_after(PLACE_SECONDS) as waiting:
            await places.acquire()
        if waiting.cancelled_caught:
            raise PortUnavailable("redis has no connection to spare")
        try:
            with self._breaker.attempt():
                result = await self._call(operation)
        finally:
            places.release()
        self._tell_back()
        return result

    async def version(self) -> str:
        """What the server says of itself. Raise PortUnavailable, as :meth:`run` does."""

        async def ask(client: Redis) -> str:
            told = await client.info("server")
            return str(told.get("redis_version", ""))

        return await self.run(ask)

    async def _call(self, operation: Operation[T]) -> T:
        try:
            return await call_redis(OPERATION_SECONDS, operation, self._client)
        except PortUnavailable as failure:
            self._tell_away(failure)
            raise

    def _tell_away(self, failure: PortUnavailable) -> None:
        self._failed_at = trio.current_time()
        if self._away_since is None:
            self._away_since = self._failed_at
            log.warning("redis_away", why=str(failure), meaning="serving from process memory")

    def _tell_back(self) -> None:
        if self._away_since is not None:
            seconds = round(trio.current_time() - self._away_since, 1)
            self._away_since = None
            log.info("redis_back", away_seconds=seconds)


@asynccontextmanager
async def open_redis(address: RedisAddress) -> AsyncIterator[RedisServer]:
    """Nothing is connected before it is used. The probe has a client of its own."""
    if not address.tls:
        log.warning("plaintext_connection", feature="redis_tls", env_var="ALLOW_INSECURE_TLS")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(asyncio_context(partial(new_client, address)))
        probed = await stack.enter_async_context(asyncio_context(partial(new_client, address)))
        yield RedisServer(client, probe=redis_probe(probed, tls=address.tls))
