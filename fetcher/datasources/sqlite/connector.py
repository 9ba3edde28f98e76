"""SQLite as a source of the Engine: one read-only connection, one snapshot over all tables."""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.sqlite.database import SqliteDatabase, SqliteFolder, failure_of
from fetcher.datasources.sqlite.query import TableQuery, prepare_table
from fetcher.datasources.sqlite.rendering import ValueRenderer
from fetcher.datasources.sqlite.schema import read_columns, snapshot_of
from fetcher_engine import (
    AmbiguousName,
    ColumnSnapshot,
    EncodedBatch,
    NameIndex,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

BATCH_BYTES: Final = 256 * 1024


class SqliteRows:
    """One table being read. Blocking; :meth:`next_batch` runs in the database's thread."""

    def __init__(
        self,
        query: TableQuery,
        renderer: ValueRenderer,
        *,
        batch_bytes: int,
        max_cell_bytes: int,
    ) -> None:
        self._query = query
        self._renderer = renderer
        self._template = renderer.row_template(query.fields)
        self._batch_bytes = batch_bytes
        self._max_cell_bytes = max_cell_bytes
        self._rows: Iterator[Sequence[object]] | None = None

    def next_batch(self, connection: sqlite3.Connection) -> EncodedBatch | None:
        """None after the last row. Raise SourceFailure or sqlite3.Error."""
        if self._rows is None:
            if self._renderer.texts.replaces:
                # the sqlite3 module's own factory would refuse what is no text
                connection.text_factory = self._renderer.texts.decoded
            self._rows = connection.execute(self._query.statement, self._query.values)
        texts: list[str] = []
        gathered = 0
        while gathered < self._batch_bytes and (row := self._next_row()) is not None:
            text = self._template % self._renderer.cells(row)
            texts.append(text)
            gathered += len(text)
        if not texts:
            return None
        return EncodedBatch(self._query.name, ",".join(texts).encode(), len(texts))

    def _next_row(self) -> Sequence[object] | None:
        row: Sequence[object] | None = None
        failure: SourceFailure | None = None
        try:
            row = next(self._rows, None) if self._rows is not None else None
        except sqlite3.OperationalError as error:
            failure = self._failure_of(error)
        if failure is not None:
            raise failure
        for name, value in zip(self._query.fields, row or (), strict=False):
            if isinstance(value, str | bytes) and len(value) > self._max_cell_bytes:
                raise self._failure("cell_too_large", name)
        return row

    def _failure_of(self, error: sqlite3.OperationalError) -> SourceFailure:
        """The sqlite3 module names the column whose bytes are no text, then quotes its value."""
        text = str(error)
        for name in self._query.fields:
            if text.startswith(f"Could not decode to UTF-8 column '{name}' with text"):
                return self._failure("invalid_text", name)
        return failure_of(error, Stage.ROWS, self._query.name)

    def _failure(self, reason: str, column: str) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)


class SqliteReader:
    """One table being read, in the database's thread."""

    def __init__(self, database: SqliteDatabase, rows: SqliteRows) -> None:
        self._database = database
        self._rows = rows

    async def start(self) -> None:
        """The statement begins with the first batch."""

    async def next_batch(self) -> EncodedBatch | None:
        return await self._database.run(self._rows.next_batch, Stage.ROWS)


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

    async def open(self) -> SqliteDatabase:
        return await SqliteDatabase.open(
            self._folder,
            self._database_name,
            statement_seconds=self._settings.statement_seconds,
            max_cell_bytes=self._settings.max_cell_bytes,
        )

    async def ping(self, session: SqliteDatabase) -> None:
        """Its settings are read from the file when it is opened."""

    async def discover(self, session: SqliteDatabase) -> SchemaSnapshot:
        await session.begin(lock_seconds=self._settings.lock_seconds)
        return snapshot_of(await self._columns(session), self._config_name)

    async def readers(self, session: SqliteDatabase, request: StreamRequest) -> list[SqliteReader]:
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
            rows = SqliteRows(
                prepare_table(name, table, columns, fields, filters),
                self._renderer,
                batch_bytes=min(request.max_batch_bytes, BATCH_BYTES),
                max_cell_bytes=self._settings.max_cell_bytes,
            )
            readers.append(SqliteReader(session, rows))
        return readers

    async def _columns(self, database: SqliteDatabase) -> dict[str, tuple[ColumnSnapshot, ...]]:
        read = partial(read_columns, include_views=self._settings.include_views)
        return await database.run(read, Stage.SCHEMA)


def _only(names: NameIndex, wanted: str) -> str:
    """The table that a name means, by the rule that the plan was made by; else itself."""
    try:
        return names.find(wanted) or wanted
    except AmbiguousName:
        return wanted
