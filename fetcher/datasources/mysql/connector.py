"""MySQL and MariaDB as a source of the Engine: one session, one snapshot over all its tables."""

from collections.abc import Callable

from fetcher.datasources.mysql.query import table_query
from fetcher.datasources.mysql.rows import RowReader
from fetcher.datasources.mysql.schema import Catalogue
from fetcher.datasources.mysql.session import Session
from fetcher.datasources.mysql.types import Renderer
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.targets import Target
from fetcher_engine import SchemaSnapshot, Stage, StreamRequest


class MysqlSource:
    """One database as one request reads it."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        requested: tuple[str, ...] | None,
        renderer: Renderer,
        settings: ReadSettings,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed.

        ``requested`` are the names of tables that were asked for; None where nobody asked.
        """
        self._config_name = config_name
        self._target = target
        self._requested = requested
        self._renderer = renderer
        self._settings = settings
        self._has_snapshots = True

    async def open(self) -> Session:
        return await Session.open(
            self._target(),
            statement_seconds=self._settings.statement_seconds,
            lock_seconds=self._settings.lock_seconds,
        )

    async def rest(self, session: Session) -> None:
        await session.rest()

    async def resume(self, session: Session) -> None:
        await session.resume(
            statement_seconds=self._settings.statement_seconds,
            lock_seconds=self._settings.lock_seconds,
        )

    async def ping(self, session: Session) -> None:
        await session.execute("SELECT 1", Stage.SESSION)

    async def discover(self, session: Session) -> SchemaSnapshot:
        """The asked tables, else all of the connected database."""
        return await self._catalogue(session).snapshot(self._requested, self._config_name)

    async def readers(self, session: Session, request: StreamRequest) -> list[RowReader]:
        """Begin the snapshot, and look the tables up again.

        A table that changes its form afterwards is refused by the server: the snapshot is older.
        """
        if self._has_snapshots:
            self._has_snapshots = await session.begin_snapshot()
            if not self._has_snapshots:
                raise SnapshotRefused
        else:
            await session.check_settings()
        found = await self._catalogue(session).tables(request.tables)
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
        return [
            RowReader(
                session,
                query,
                max_batch_bytes=request.max_batch_bytes,
                max_cell_bytes=self._settings.max_cell_bytes,
                texts=self._renderer.texts,
            )
            for query in queries
        ]

    def _catalogue(self, session: Session) -> Catalogue:
        return Catalogue(session, include_views=self._settings.include_views)
