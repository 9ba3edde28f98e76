"""Try whether a connection's database can be reached (spec rest-api 8.7)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from fetcher.domain.connections import Connection
from fetcher.domain.errors import RateLimited
from fetcher.domain.ids import ConnectionId
from fetcher.domain.jobs import JobOptions
from fetcher.domain.tls_modes import refuse_stored_tls_mode
from fetcher.ports import ConnectionRecovery, SourceEngines, TestLimiter
from fetcher_engine import EngineError, ErrorCategory, TenantContext

OPEN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reached:
    latency_ms: int
    """Whole milliseconds of name look-up, connecting and logging in."""


class ConnectionTest:
    """At most as often as the limiter allows; an id that does not exist takes from it too."""

    def __init__(
        self,
        *,
        find: Callable[[ConnectionId], Awaitable[Connection]],
        limiter: TestLimiter,
        sources: SourceEngines,
        recover: ConnectionRecovery,
    ) -> None:
        """``find`` raises ``FET-1001`` where there is no such connection."""
        self._find = find
        self._limiter = limiter
        self._sources = sources
        self._recover = recover

    async def __call__(self, connection_id: ConnectionId, *, tenant: TenantContext) -> Reached:
        """Raise 429, ``FET-1001``, or an EngineError that says where connecting failed."""
        if (wait_seconds := await self._limiter.take(str(connection_id))) > 0:
            raise RateLimited(wait_seconds)
        connection = await self._find(connection_id)
        refuse_stored_tls_mode(connection)
        engine = self._sources.engine_for([connection], JobOptions())
        started = trio.current_time()
        with trio.move_on_after(OPEN_SECONDS) as scope:
            await engine.test_connection(tenant, connection.config_name)
        if scope.cancelled_caught:
            raise EngineError(ErrorCategory.TIMEOUT, "connection test exceeded its deadline")
        latency_ms = int((trio.current_time() - started) * 1000)
        await self._recover(connection.id, connection.config_name)
        return Reached(latency_ms=latency_ms)
