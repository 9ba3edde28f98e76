"""The rows of one table, in batches."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from fetcher.datasources.sqlite.errors import failure_of
from fetcher.datasources.sqlite.query import TableQuery
from fetcher.datasources.sqlite.session import Session
from fetcher.datasources.sqlite.types import ValueRenderer
from fetcher_engine import EncodedBatch, SourceFailure, Stage

BATCH_BYTES: Final = 256 * 1024
LARGE_BYTES: Final = 1024 * 1024


class TableRows:
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
        self._large_bytes = min(LARGE_BYTES, max_cell_bytes)
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
        pieces: list[bytes] = []
        while gathered < self._batch_bytes and (row := self._next_row()) is not None:
            if self._is_large(row):
                pieces = [*self._renderer.pieces(self._query.fields, row)]
                break
            text = self._template % self._renderer.cells(row)
            texts.append(text)
            gathered += len(text)
        row = None  # a large one is not held while its pieces are joined
        count = len(texts) + bool(pieces)
        if texts:
            pieces = [",".join(texts).encode(), *([b","] if pieces else []), *pieces]
        return EncodedBatch(self._query.name, b"".join(pieces), count) if count else None

    def _next_row(self) -> Sequence[object] | None:
        row: Sequence[object] | None = None
        failure: SourceFailure | None = None
        try:
            row = next(self._rows, None) if self._rows is not None else None
        except sqlite3.OperationalError as error:
            failure = self._failure_of(error)
        if failure is not None:
            raise failure
        return row

    def _is_large(self, row: Sequence[object]) -> bool:
        """Whether a cell of it is so large that copies of it count; none may be too large."""
        is_large = False
        for name, value in zip(self._query.fields, row, strict=True):
            if isinstance(value, str | bytes) and len(value) > self._large_bytes:
                if len(value) > self._max_cell_bytes:
                    raise self._failure("cell_too_large", name)
                is_large = True
        return is_large

    def _failure_of(self, error: sqlite3.OperationalError) -> SourceFailure:
        """The sqlite3 module names the column whose bytes are no text, then quotes its value."""
        text = str(error)
        for name in self._query.fields:
            if text.startswith(f"Could not decode to UTF-8 column '{name}' with text"):
                return self._failure("invalid_text", name)
        return failure_of(error, Stage.ROWS, self._query.name)

    def _failure(self, reason: str, column: str) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)


class TableReader:
    """One table being read, in the database's thread."""

    def __init__(self, session: Session, rows: TableRows) -> None:
        self._session = session
        self._rows = rows

    async def start(self) -> None:
        """The statement begins with the first batch."""

    async def next_batch(self) -> EncodedBatch | None:
        return await self._session.run(self._rows.next_batch, Stage.ROWS)
