"""Events of tenants over Redis pub/sub (spec configuration 11.6)."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog
import trio
from redis.asyncio import Redis

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.client import new_client
from fetcher.adapters.redis.failures import call_redis
from fetcher.adapters.redis.probe import redis_probe
from fetcher.adapters.redis.subscriber import Subscriber
from fetcher.bridge import asyncio_context
from fetcher.domain.tenant_events import TenantEvent, TenantEventInvalid, tenant_event
from fetcher.ports import Probe

log = structlog.get_logger(__name__)

CHECK_SECONDS: Final = 5.0
TELL_SECONDS: Final = 60.0


def tenant_events_channel(environment: str) -> str:
    """The trailing colon is a part of the name."""
    return f"tenant-events:{environment.lower()}:"


class RedisTenantEvents:
    """Implements :class:`fetcher.ports.tenants.TenantEvents`.

    Nothing is kept here between two events: who is slower than they come slows the connection
    down, until the server cuts it off, and that is a lost connection like any other.
    """

    def __init__(
        self, address: RedisAddress, environment: str, *, asked: Redis, probe: Probe
    ) -> None:
        self._address = address
        self._asked = asked
        self.channel = tenant_events_channel(environment)
        self.probe = probe

    async def check(self) -> None:
        """Raise PortUnavailable where Redis does not answer within 5 s."""
        await call_redis(CHECK_SECONDS, self._asked.execute_command, "PING")

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[TenantEvent]]:
        subscriber = partial(Subscriber, self._address, self.channel)
        async with asyncio_context(subscriber) as connection:
            await connection.subscribe()
            yield _Events(connection)


class _Events:
    """What is no event is told of once a minute and left out."""

    def __init__(self, connection: Subscriber) -> None:
        self._connection = connection
        self._invalid = 0
        self._told_at = -math.inf

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> TenantEvent:
        while True:
            message = await self._connection.next_message()
            try:
                return tenant_event(message)
            except TenantEventInvalid as fault:
                self._tell(fault)

    def _tell(self, fault: TenantEventInvalid) -> None:
        self._invalid += 1
        if trio.current_time() - self._told_at >= TELL_SECONDS:
            self._told_at = trio.current_time()
            log.warning("tenant_event_unreadable", why=str(fault), count=self._invalid)
            self._invalid = 0


@asynccontextmanager
async def open_tenant_events(
    address: RedisAddress, environment: str
) -> AsyncIterator[RedisTenantEvents]:
    """Nothing is connected before it is used. Probe and check have a client of their own."""
    if not address.tls:
        log.warning(
            "plaintext_connection", feature="multi_tenant_redis_tls", env_var="ALLOW_INSECURE_TLS"
        )
    async with asyncio_context(partial(new_client, address)) as asked:
        probe = redis_probe(asked, tls=address.tls, name="multi_tenant_redis", meaning=None)
        yield RedisTenantEvents(address, environment, asked=asked, probe=probe)
