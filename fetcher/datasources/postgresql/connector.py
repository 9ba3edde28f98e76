"""PostgreSQL as a source of the Engine: one session, one read-only snapshot over all its tables."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio
from psycopg import sql

from fetcher.datasources.postgresql.errors import SCHEMA_CHANGED, TIMEOUT
from fetcher.datasources.postgresql.names import TableId, TableNames
from fetcher.datasources.postgresql.query import TableQuery, prepare_table
from fetcher.datasources.postgresql.rows import CopyReader
from fetcher.datasources.postgresql.schema import Catalogue
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.postgresql.types import Renderer
from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.targets import Target
from fetcher_engine import (
    ColumnSnapshot,
    EncodedBatch,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0

_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresqlSettings:
    """What the operator decides. Seconds and bytes."""

    statement_seconds: float = 300.0
    lock_seconds: float = 30.0
    max_cell_bytes: int = 16 * 1024 * 1024
    include_views: bool = False


class PostgresqlStream:
    """The rows of all asked tables, in the order of the request."""

    def __init__(
        self, session: Session, queries: list[TableQuery], *, max_batch_bytes: int
    ) -> None:
        self._session = session
        self._waiting = deque(queries)
        self._max_batch_bytes = max_batch_bytes
        self._reader: CopyReader | None = None

    async def next_batch(self) -> EncodedBatch | None:
        while True:
            if self._reader is None:
                if not self._waiting:
                    return None
                self._reader = await self._start(self._waiting.popleft())
            batch = await self._reader.next_batch()
            if batch is not None:
                return batch
            self._reader = None

    async def aclose(self) -> None:
        """End the session, and what it still does on the server."""
        self._waiting.clear()
        await self._session.close()

    async def _start(self, query: TableQuery) -> CopyReader:
        reader = CopyReader(self._session, query, max_batch_bytes=self._max_batch_bytes)
        await reader.start()
        return reader


class PostgresqlConnector:
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: Renderer,
        places: SessionPlaces,
        settings: PostgresqlSettings,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed."""
        self._config_name = config_name
        self._target = target
        self._names = names
        self._renderer = renderer
        self._places = places
        self._settings = settings
        self._session: Session | None = None
        self._has_place = False

    async def test_connection(self) -> None:
        session = await self._open()
        with trio.move_on_after(PING_SECONDS):
            await session.execute(sql.SQL("SELECT 1"), Stage.SESSION)
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, ``public`` by default."""
        session = await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            catalogue = Catalogue(session, self._names, include_views=self._settings.include_views)
            return await catalogue.snapshot(self._config_name)
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> PostgresqlStream:
        """Begin the snapshot, look the tables up in it, and learn the types of their columns."""
        session = await self._open()
        await session.execute(sql.SQL(_SNAPSHOT), Stage.SESSION)
        catalogue = Catalogue(session, self._names, include_views=self._settings.include_views)
        found = await catalogue.tables(request.tables)
        queries = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table, columns = found.get(name, (None, ()))
            queries.append(
                await prepare_table(
                    session,
                    name=name,
                    table=_unchanged(name, table, columns, {*fields, *filters}),
                    fields=fields,
                    filters=filters,
                    renderer=self._renderer,
                    max_cell_bytes=self._settings.max_cell_bytes,
                )
            )
        return PostgresqlStream(session, queries, max_batch_bytes=request.max_batch_bytes)

    async def close(self) -> None:
        """Idempotent; never raises."""
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            self._session = None
            if self._has_place:
                self._has_place = False
                self._places.give_back(self)

    async def _open(self) -> Session:
        if self._session is None:
            await self._places.take(self)
            self._has_place = True
            self._session = await Session.open(
                self._target(),
                statement_seconds=self._settings.statement_seconds,
                lock_seconds=self._settings.lock_seconds,
            )
        return self._session


def _unchanged(
    name: str,
    table: TableId | None,
    columns: tuple[ColumnSnapshot, ...],
    wanted: set[str],
) -> TableId:
    """The table, if it still has what the plan found; raise SourceFailure ``schema changed``."""
    if table is None or wanted - {column.name for column in columns}:
        raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
    return table
