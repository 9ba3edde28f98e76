"""PostgreSQL as a source of the Engine: one session, one read-only snapshot over all its tables."""

from collections.abc import Callable

from psycopg import sql

from fetcher.datasources.postgresql.errors import SCHEMA_CHANGED
from fetcher.datasources.postgresql.names import TableNames
from fetcher.datasources.postgresql.query import prepare_table
from fetcher.datasources.postgresql.rows import CopyReader
from fetcher.datasources.postgresql.schema import Catalogue
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.postgresql.types import Renderer
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.table_names import TableId
from fetcher.datasources.targets import Target
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, SourceFailure, Stage, StreamRequest


class PostgresqlSource:
    """One database as one request reads it."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: Renderer,
        settings: ReadSettings,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed."""
        self._config_name = config_name
        self._target = target
        self._names = names
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
        await session.execute(sql.SQL("SELECT 1"), Stage.SESSION)

    async def discover(self, session: Session) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, ``public`` by default."""
        return await self._catalogue(session).snapshot(self._config_name)

    async def readers(self, session: Session, request: StreamRequest) -> list[CopyReader]:
        """Begin the snapshot, look the tables up in it, and learn the types of their columns."""
        if self._has_snapshots:
            self._has_snapshots = await session.begin_snapshot()
            if not self._has_snapshots:
                raise SnapshotRefused
        else:
            session.check_quoting()
        found = await self._catalogue(session).tables(request.tables)
        readers = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table, columns = found.get(name, (None, ()))
            query = await prepare_table(
                session,
                name=name,
                table=_unchanged(name, table, columns, {*fields, *filters}),
                fields=fields,
                filters=filters,
                renderer=self._renderer,
                max_cell_bytes=self._settings.max_cell_bytes,
            )
            readers.append(
                CopyReader(
                    session,
                    query,
                    max_batch_bytes=request.max_batch_bytes,
                    texts=self._renderer.texts,
                )
            )
        return readers

    def _catalogue(self, session: Session) -> Catalogue:
        return Catalogue(session, self._names, include_views=self._settings.include_views)


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
