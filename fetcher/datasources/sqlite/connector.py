"""SQLite as a source of the Engine: one read-only connection, one snapshot over all tables."""

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteSettings:
    """What the operator decides. Seconds and bytes."""

    statement_seconds: float = 300.0
    lock_seconds: float = 30.0
    max_cell_bytes: int = 16 * 1024 * 1024
    include_views: bool = False


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


class SqliteStream:
    """The rows of all asked tables, in the order of the request."""

    def __init__(self, database: SqliteDatabase, tables: Sequence[SqliteRows]) -> None:
        self._database = database
        self._waiting = deque(tables)

    async def next_batch(self) -> EncodedBatch | None:
        while self._waiting:
            batch = await self._database.run(self._waiting[0].next_batch, Stage.ROWS)
            if batch is not None:
                return batch
            self._waiting.popleft()
        return None

    async def aclose(self) -> None:
        self._waiting.clear()
        await self._database.close()


class SqliteConnector:
    """Opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        config_name: str,
        database_name: str,
        folder: SqliteFolder,
        renderer: ValueRenderer,
        settings: SqliteSettings,
    ) -> None:
        self._config_name = config_name
        self._database_name = database_name
        self._folder = folder
        self._renderer = renderer
        self._settings = settings
        self._database: SqliteDatabase | None = None

    async def test_connection(self) -> None:
        await self._open()

    async def discover_schema(self) -> SchemaSnapshot:
        database = await self._open()
        await database.begin(lock_seconds=self._settings.lock_seconds)
        return snapshot_of(await self._columns(database), self._config_name)

    async def open_stream(self, request: StreamRequest) -> SqliteStream:
        """Begin the snapshot and look the tables up in it; raise ``schema changed``."""
        database = await self._open()
        await database.begin(lock_seconds=self._settings.lock_seconds)
        found = await self._columns(database)
        names = NameIndex(found, ignores_case=True)
        tables = []
        for name, fields in request.tables.items():
            filters = request.filters.get(name, {})
            table = _only(names, name)
            columns = {column.name: column for column in found.get(table, ())}
            if not columns or {*fields, *filters} - set(columns):
                raise SourceFailure(Stage.SCHEMA, "schema changed", table=name)
            tables.append(
                SqliteRows(
                    prepare_table(name, table, columns, fields, filters),
                    self._renderer,
                    batch_bytes=min(request.max_batch_bytes, BATCH_BYTES),
                    max_cell_bytes=self._settings.max_cell_bytes,
                )
            )
        return SqliteStream(database, tables)

    async def close(self) -> None:
        """Idempotent."""
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    async def _columns(self, database: SqliteDatabase) -> dict[str, tuple[ColumnSnapshot, ...]]:
        read = partial(read_columns, include_views=self._settings.include_views)
        return await database.run(read, Stage.SCHEMA)

    async def _open(self) -> SqliteDatabase:
        if self._database is None:
            self._database = await SqliteDatabase.open(
                self._folder,
                self._database_name,
                statement_seconds=self._settings.statement_seconds,
                max_cell_bytes=self._settings.max_cell_bytes,
            )
        return self._database


def _only(names: NameIndex, wanted: str) -> str:
    """The table that a name means, by the rule that the plan was made by; else itself."""
    try:
        return names.find(wanted) or wanted
    except AmbiguousName:
        return wanted
