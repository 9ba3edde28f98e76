"""Oracle as a source of the Engine: one session, one read-only snapshot over all its tables."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

from fetcher.datasources.oracle.errors import SCHEMA_CHANGED, TIMEOUT
from fetcher.datasources.oracle.names import TableNames
from fetcher.datasources.oracle.query import TableQuery, prepare_table
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.oracle.rows import TableReader
from fetcher.datasources.oracle.schema import read_catalogue, read_snapshot
from fetcher.datasources.oracle.session import CURRENT_USER, Session
from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.targets import Target
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSettings:
    """What the operator decides. Seconds and bytes."""

    statement_seconds: float = 300.0
    max_cell_bytes: int = 16 * 1024 * 1024
    include_views: bool = False


class OracleStream:
    """The rows of all asked tables, in the order of the request."""

    def __init__(
        self,
        session: Session,
        queries: list[TableQuery],
        renderer: ValueRenderer,
        *,
        max_batch_bytes: int,
        max_cell_bytes: int,
    ) -> None:
        self._session = session
        self._waiting = deque(queries)
        self._renderer = renderer
        self._max_batch_bytes = max_batch_bytes
        self._max_cell_bytes = max_cell_bytes
        self._reader: TableReader | None = None

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

    async def _start(self, query: TableQuery) -> TableReader:
        reader = TableReader(
            self._session,
            query,
            self._renderer,
            max_batch_bytes=self._max_batch_bytes,
            max_cell_bytes=self._max_cell_bytes,
        )
        await reader.start()
        return reader


class OracleConnector:
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: ValueRenderer,
        places: SessionPlaces,
        settings: OracleSettings,
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
            await session.rows(CURRENT_USER, (), Stage.SESSION)
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, the user's own by default."""
        session = await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            return await read_snapshot(
                session,
                self._names,
                self._config_name,
                include_views=self._settings.include_views,
            )
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> OracleStream:
        """Begin the snapshot and look the tables up in it."""
        session = await self._open()
        await session.begin_snapshot()
        found = None
        with trio.move_on_after(DISCOVERY_SECONDS):
            found = await read_catalogue(
                session,
                self._names,
                request.tables,
                include_views=self._settings.include_views,
            )
        if found is None:
            raise SourceFailure(Stage.SCHEMA, TIMEOUT)
        queries = []
        for name, fields in request.tables.items():
            meant = self._names.meant(name, found, session.user)
            if len(meant) != 1:
                raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
            queries.append(
                prepare_table(
                    name=name,
                    table=meant[0],
                    columns=found[meant[0]],
                    fields=fields,
                    filters=request.filters.get(name, {}),
                    max_cell_bytes=self._settings.max_cell_bytes,
                )
            )
        return OracleStream(
            session,
            queries,
            self._renderer,
            max_batch_bytes=request.max_batch_bytes,
            max_cell_bytes=self._settings.max_cell_bytes,
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
                self._target(), statement_seconds=self._settings.statement_seconds
            )
        return self._session
