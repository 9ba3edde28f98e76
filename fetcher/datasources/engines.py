"""The Engine over a request's connections: what bootstrap opens as ``SourceEngines``."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import copy

import trio

from fetcher.concurrency import TrioConcurrency
from fetcher.datasources.idle_sessions import IdlePeers, IdleSessions, open_idle_sessions
from fetcher.datasources.records import ResolvedConnectionStore
from fetcher.datasources.registry import SourceRegistry, load_connectors
from fetcher.datasources.row_encoding import OrjsonRowEncoding
from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.tls_warnings import TlsWarnings
from fetcher.datasources.traced import EngineSpans
from fetcher.domain.connections import Connection
from fetcher.domain.jobs import Filters, JobOptions, MappedFields
from fetcher.ports import UNTRACED, Tracer
from fetcher_engine import Engine, SchemaCache, Spool

__all__ = ["RequestEngines", "SourceSettings", "open_source_engines"]


class RequestEngines:
    """Implements :class:`fetcher.ports.SourceEngines`."""

    def __init__(
        self,
        settings: SourceSettings,
        *,
        idle: IdleSessions | None = None,
        spool: Spool | None = None,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self._settings = settings
        self._spool = spool
        self._tracer = tracer
        self._schema_cache: SchemaCache | None = None
        self._sessions = SessionLimits(idle)
        self._tls_warnings = TlsWarnings(sqlserver_trusts_all=settings.sqlserver_trusts_all)
        self._concurrency = TrioConcurrency()

    def remembering(self, schema_cache: SchemaCache | None) -> "RequestEngines":
        """The same sources and sessions, by Engines that look for a schema in the cache first.

        Not for jobs: what a job reads is looked up when it runs.
        """
        twin = copy(self)
        twin._schema_cache = schema_cache
        return twin

    def session_use(self) -> tuple[int, int]:
        """How many sessions to sources are in use, and how many wait for the next job."""
        idle = self._sessions.idle
        return self._sessions.in_use, idle.total if idle is not None else 0

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: MappedFields | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        """No I/O. ``requested`` decides which tables discovery reads."""
        for connection in connections:
            self._tls_warnings.look_at(connection)
        scope = RequestScope(options=options, requested=requested, filters=filters or {})
        return Engine(
            SourceRegistry(self._settings, self._sessions, scope, self._tracer),
            connection_store=ResolvedConnectionStore(connections, scope),
            schema_cache=self._schema_cache,
            limits=self._settings.limits,
            concurrency=self._concurrency,
            spool=self._spool,
            row_encoding=OrjsonRowEncoding(),
            observability=None if self._tracer is UNTRACED else EngineSpans(self._tracer),
        )


@asynccontextmanager
async def open_source_engines(
    settings: SourceSettings,
    *,
    spool: Spool | None = None,
    tracer: Tracer = UNTRACED,
    peers: IdlePeers | None = None,
) -> AsyncIterator[RequestEngines]:
    """Nothing is opened before a source is used. A session may wait for the next job of its
    connection for a minute; when the context is left, all have ended. ``peers`` are the idle
    sessions of other tenants' engines in this process."""
    await trio.to_thread.run_sync(load_connectors)
    async with open_idle_sessions(peers) as idle:
        yield RequestEngines(settings, idle=idle, spool=spool, tracer=tracer)
