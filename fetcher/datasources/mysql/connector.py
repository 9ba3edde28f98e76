"""MySQL and MariaDB as a source of the Engine: one session, one snapshot over all its tables."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

from fetcher.datasources.mysql.errors import TIMEOUT
from fetcher.datasources.mysql.query import TableQuery, table_query
from fetcher.datasources.mysql.rows import RowReader
from fetcher.datasources.mysql.schema import Catalogue
from fetcher.datasources.mysql.session import Session
from fetcher.datasources.mysql.types import Renderer
from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.targets import Target
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlSettings:
    """What the operator decides. Seconds and bytes."""

    statement_seconds: float
    lock_seconds: float
    max_cell_bytes: int
    include_views: bool = False


class MysqlStream:
    """The rows of all asked tables, in the order of the request."""

    def __init__(
        self,
        session: Session,
        queries: list[TableQuery],
        *,
        max_batch_bytes: int,
        max_cell_bytes: int,
    ) -> None:
        self._session = session
        self._waiting = deque(queries)
        self._max_batch_bytes = max_batch_bytes
        self._max_cell_bytes = max_cell_bytes
        self._reader: RowReader | None = None

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

    async def _start(self, query: TableQuery) -> RowReader:
        reader = RowReader(
            self._session,
            query,
            max_batch_bytes=self._max_batch_bytes,
            max_cell_bytes=self._max_cell_bytes,
        )
        await reader.start()
        return reader


class MysqlConnector:
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        requested: tuple[str, ...] | None,
        renderer: Renderer,
        places: SessionPlaces,
        settings: MysqlSettings,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed.

        ``requested`` are the names of tables that were asked for; None where nobody asked.
        """
        self._config_name = config_name
        self._target = target
        self._requested = requested
        self._renderer = renderer
        self._places = places
        self._settings = settings
        self._session: Session | None = None
        self._has_place = False

    async def test_connection(self) -> None:
        session = await self._open()
        with trio.move_on_after(PING_SECONDS):
            await session.execute("SELECT 1", Stage.SESSION)
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        """The asked tables, else all of the connected database."""
        session = await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            catalogue = Catalogue(session, include_views=self._settings.include_views)
            return await catalogue.snapshot(self._requested, self._config_name)
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> MysqlStream:
        """Begin the snapshot, and look the tables up again.

        A table that changes its form afterwards is refused by the server: the snapshot is older.
        """
        session = await self._open()
        await session.begin_snapshot()
        catalogue = Catalogue(session, include_views=self._settings.include_views)
        found = await catalogue.tables(request.tables)
        queries = [
            table_query(
                name=name,
                table=found.get(name),
                fields=fields,
                filters=request.filters.get(name, {}),
                renderer=self._renderer,
                max_cell_bytes=self._settings.max_cell_bytes,
                is_mariadb=session.is_mariadb,
            )
            for name, fields in request.tables.items()
        ]
        return MysqlStream(
            session,
            queries,
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
                self._target(),
                statement_seconds=self._settings.statement_seconds,
                lock_seconds=self._settings.lock_seconds,
            )
        return self._session
