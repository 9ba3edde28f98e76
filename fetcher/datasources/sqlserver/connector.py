"""SQL Server as a source of the Engine: one session, one snapshot where the database allows it."""

from collections.abc import Callable

from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.sqlserver.errors import SCHEMA_CHANGED
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.names import TableNames
from fetcher.datasources.sqlserver.query import prepare_table
from fetcher.datasources.sqlserver.rendering import Renderer
from fetcher.datasources.sqlserver.rows import RowReader
from fetcher.datasources.sqlserver.schema import read_snapshot, read_tables
from fetcher.datasources.sqlserver.session import Session
from fetcher.datasources.targets import Target
from fetcher_engine import SchemaSnapshot, SourceFailure, Stage, StreamRequest


class SqlServerSource:
    """One database as one request reads it."""

    def __init__(
        self,
        *,
        config_name: str,
        target: Callable[[], Target],
        names: TableNames,
        renderer: Renderer,
        settings: ReadSettings,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed.

        ``on_refusal`` is told of a read that has no snapshot.
        """
        self._on_refusal = on_refusal
        self._config_name = config_name
        self._target = target
        self._names = names
        self._renderer = renderer
        self._settings = settings

    async def open(self) -> Session:
        return await Session.open(
            self._target(),
            statement_seconds=self._settings.statement_seconds,
            lock_seconds=self._settings.lock_seconds,
            max_cell_bytes=self._settings.max_cell_bytes,
        )

    async def rest(self, session: Session) -> None:
        await session.rest()

    async def resume(self, session: Session) -> None:
        await session.resume(
            statement_seconds=self._settings.statement_seconds,
            lock_seconds=self._settings.lock_seconds,
        )

    async def ping(self, session: Session) -> None:
        await session.rows(Statement("SELECT 1"), Stage.SESSION)

    async def discover(self, session: Session) -> SchemaSnapshot:
        """The asked tables, else those of the connection's schema, ``dbo`` by default."""
        return await read_snapshot(
            session, self._names, self._config_name, views=self._settings.include_views
        )

    async def readers(self, session: Session, request: StreamRequest) -> list[RowReader]:
        """Begin the snapshot and look the tables up in it."""
        traits = await session.begin()
        if not traits.has_snapshot:
            self._on_refusal()
        found = await read_tables(
            session, self._names, request.tables, views=self._settings.include_views
        )
        readers = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table, listed = found.get(name, (None, ()))
            columns = {column.name: column for column in listed}
            if table is None or {*fields, *filters} - set(columns):
                raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
            query = prepare_table(
                name=name,
                table=table,
                columns=columns,
                fields=fields,
                filters=filters,
                max_cell_bytes=self._settings.max_cell_bytes,
                takes_long_lists=traits.has_openjson,
            )
            readers.append(
                RowReader(
                    session,
                    query,
                    self._renderer,
                    max_batch_bytes=request.max_batch_bytes,
                    max_cell_bytes=self._settings.max_cell_bytes,
                )
            )
        return readers
