"""SQLite as a source of the Engine: one read-only connection, one snapshot over all tables."""

from functools import partial

from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.sqlite.connect import SqliteFolder
from fetcher.datasources.sqlite.query import prepare_table
from fetcher.datasources.sqlite.rows import BATCH_BYTES, TableReader, TableRows
from fetcher.datasources.sqlite.schema import read_columns, read_estimates, snapshot_of
from fetcher.datasources.sqlite.session import Session
from fetcher.datasources.sqlite.types import ValueRenderer
from fetcher_engine import (
    AmbiguousName,
    ColumnSnapshot,
    NameIndex,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)


class SqliteSource:
    """One file as one request reads it."""

    def __init__(
        self,
        *,
        config_name: str,
        database_name: str,
        folder: SqliteFolder,
        renderer: ValueRenderer,
        settings: ReadSettings,
    ) -> None:
        self._config_name = config_name
        self._database_name = database_name
        self._folder = folder
        self._renderer = renderer
        self._settings = settings

    async def open(self) -> Session:
        return await Session.open(
            self._folder,
            self._database_name,
            statement_seconds=self._settings.statement_seconds,
            max_cell_bytes=self._settings.max_cell_bytes,
        )

    async def ping(self, session: Session) -> None:
        """Its settings are read from the file when it is opened."""

    async def discover(self, session: Session) -> SchemaSnapshot:
        await session.begin(lock_seconds=self._settings.lock_seconds)
        columns = await self._columns(session)
        estimates = await session.run(read_estimates, Stage.SCHEMA)
        return snapshot_of(columns, estimates, self._config_name)

    async def readers(self, session: Session, request: StreamRequest) -> list[TableReader]:
        """Begin the snapshot and look the tables up in it; raise ``schema changed``."""
        await session.begin(lock_seconds=self._settings.lock_seconds)
        found = await self._columns(session)
        names = NameIndex(found, ignores_case=True)
        readers = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table = _only(names, name)
            columns = {column.name: column for column in found.get(table, ())}
            if not columns or {*fields, *filters} - set(columns):
                raise SourceFailure(Stage.SCHEMA, "schema changed", table=name)
            rows = TableRows(
                prepare_table(name, table, columns, fields, filters),
                self._renderer,
                batch_bytes=min(request.max_batch_bytes, BATCH_BYTES),
                max_cell_bytes=self._settings.max_cell_bytes,
            )
            readers.append(TableReader(session, rows))
        return readers

    async def _columns(self, session: Session) -> dict[str, tuple[ColumnSnapshot, ...]]:
        read = partial(read_columns, include_views=self._settings.include_views)
        return await session.run(read, Stage.SCHEMA)


def _only(names: NameIndex, wanted: str) -> str:
    """The table that a name means, by the rule that the plan was made by; else itself."""
    try:
        return names.find(wanted) or wanted
    except AmbiguousName:
        return wanted
