"""SQL Server as a source of the Engine: one session, one snapshot where the database allows it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.sqlserver.errors import SCHEMA_CHANGED, TIMEOUT
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.names import TableNames
from fetcher.datasources.sqlserver.query import TableQuery, prepare_table
from fetcher.datasources.sqlserver.rendering import Renderer
from fetcher.datasources.sqlserver.rows import RowReader
from fetcher.datasources.sqlserver.schema import read_snapshot, read_tables
from fetcher.datasources.sqlserver.session import Session
from fetcher.datasources.targets import Target
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlServerSettings:
    """What the operator decides. Seconds and bytes."""

    statement_seconds: float = 300.0
    lock_seconds: float = 30.0
    max_cell_bytes: int = 16 * 1024 * 1024
    include_views: bool = False


class SqlServerStream:
    """The rows of all asked tables, in the order of the request."""

    def __init__(
        self, session: Session, queries: list[TableQuery], reader: Callable[[TableQuery], RowReader]
    ) -> None:
        self._session = session
        self._waiting = deque(queries)
        self._new_reader = reader
        self._reader: RowReader | None = None

    async def next_batch(self) -> EncodedBatch | None:
        while True:
            if self._reader is None:
                if not self._waiting:
                    return None
                reader = self._new_reader(self._waiting.popleft())
                await reader.start()
                self._reader = reader
            batch = await self._reader.next_batch()
            if batch is not None:
                return batch
            self._reader = None

    async def aclose(self) -> None:
        """End the session, and what it still does on the server."""
        self._waiting.clear()
        await self._session.close()


class SqlServerConnector:
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: Renderer,
        places: SessionPlaces,
        settings: SqlServerSettings,
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
            await session.rows(Statement("SELECT 1"), Stage.SESSION)
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, ``dbo`` by default."""
        session = await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            return await read_snapshot(
                session, self._names, self._config_name, views=self._settings.include_views
            )
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> SqlServerStream:
        """Begin the snapshot and look the tables up in it."""
        session = await self._open()
        traits = await session.begin()
        found = await read_tables(
            session, self._names, request.tables, views=self._settings.include_views
        )
        queries = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table, listed = found.get(name, (None, ()))
            columns = {column.name: column for column in listed}
            if table is None or {*fields, *filters} - set(columns):
                raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
            queries.append(
                prepare_table(
                    name=name,
                    table=table,
                    columns=columns,
                    fields=fields,
                    filters=filters,
                    max_cell_bytes=self._settings.max_cell_bytes,
                    takes_long_lists=traits.has_openjson,
                )
            )
        return SqlServerStream(
            session,
            queries,
            lambda query: RowReader(
                session,
                query,
                self._renderer,
                max_batch_bytes=request.max_batch_bytes,
                max_cell_bytes=self._settings.max_cell_bytes,
            ),
        )

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
                max_cell_bytes=self._settings.max_cell_bytes,
            )
        return self._session
