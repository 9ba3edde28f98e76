"""What a connection's database holds, read from it now (spec rest-api 8.8)."""

from dataclasses import dataclass

import trio

from fetcher.domain.connections import Connection
from fetcher.domain.errors import RateLimited
from fetcher.domain.ids import ConnectionId
from fetcher.domain.jobs import JobOptions
from fetcher.domain.tls_modes import refuse_stored_tls_mode
from fetcher.ports import SourceEngines, TestLimiter
from fetcher.queries.find_connection import FindConnection
from fetcher_engine import EngineError, ErrorCategory, SchemaSnapshot, TenantContext

DISCOVERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ConnectionSchema:
    connection: Connection
    snapshot: SchemaSnapshot


class GetConnectionSchema:
    """Neither reads nor writes a cache; limited like a test, in a count of its own."""

    def __init__(
        self, *, find: FindConnection, limiter: TestLimiter, sources: SourceEngines
    ) -> None:
        self._find = find
        self._limiter = limiter
        self._sources = sources

    async def __call__(
        self, connection_id: ConnectionId, *, tenant: TenantContext
    ) -> ConnectionSchema:
        """Raise 429, ``FET-1001``, or an EngineError (``connect``: it was not reached at all)."""
        if (wait_seconds := await self._limiter.take(f"schema:{connection_id}")) > 0:
            raise RateLimited(wait_seconds)
        connection = await self._find(connection_id)
        refuse_stored_tls_mode(connection)
        engine = self._sources.engine_for([connection], JobOptions())
        with trio.move_on_after(DISCOVERY_SECONDS):
            snapshot = await engine.discover_schema_fresh(tenant, connection.config_name)
            return ConnectionSchema(connection, snapshot)
        raise EngineError(ErrorCategory.TIMEOUT, "schema discovery exceeded its deadline")
