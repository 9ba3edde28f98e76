"""The rows of one table, in batches (spec datasources, section 11).

A result ends when the server says so; every other end raises.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import oracledb

from fetcher.datasources.oracle.errors import (
    CELL_TOO_LARGE,
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    INVALID_TEXT,
    PROTOCOL,
)
from fetcher.datasources.oracle.query import TableQuery
from fetcher.datasources.oracle.rendering import ValueRenderer
from fetcher.datasources.oracle.session import Session
from fetcher.datasources.oracle.types import LARGE, UNBOUNDED
from fetcher.datasources.texts import has_halves
from fetcher_engine import EncodedBatch, SourceFailure, Stage

NO_PROGRESS_SECONDS: Final = 60.0
"""How long one round trip for rows may take (spec datasources, section 4)."""

BATCH_BYTES: Final = 256 * 1024

_FETCHED_AS: Final = {
    # a double would lose digits
    oracledb.DB_TYPE_NUMBER: oracledb.DB_TYPE_VARCHAR,
    # in line with their rows, instead of locators that cost a round trip each
    oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
    oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
    oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
}


_BROKEN: Final = {
    # half characters for broken bytes, so that we find whose they are
    oracledb.DB_TYPE_VARCHAR: "surrogateescape",
    oracledb.DB_TYPE_CHAR: "surrogateescape",
    oracledb.DB_TYPE_LONG: "surrogateescape",
    # these come in UTF-16, where what is broken is half a character already
    oracledb.DB_TYPE_NVARCHAR: "surrogatepass",
    oracledb.DB_TYPE_NCHAR: "surrogatepass",
    oracledb.DB_TYPE_LONG_NVARCHAR: "surrogatepass",
}


def output_type_handler(cursor: oracledb.Cursor, metadata: oracledb.FetchInfo) -> Any:
    """What the driver asks for each column of a result, and makes of text that is none."""
    fetched_as = _FETCHED_AS.get(metadata.type_code, metadata.type_code)
    errors = _BROKEN.get(fetched_as)
    if errors is None:
        is_same = fetched_as == metadata.type_code
        return None if is_same else cursor.var(fetched_as, arraysize=cursor.arraysize)
    size = metadata.internal_size if fetched_as == metadata.type_code else 0
    return cursor.var(fetched_as, size or 0, arraysize=cursor.arraysize, encoding_errors=errors)


class TableReader:
    """Reads one table. To be used once, by one task. Every method raises SourceFailure."""

    def __init__(
        self,
        session: Session,
        query: TableQuery,
        renderer: ValueRenderer,
        *,
        max_batch_bytes: int,
        max_cell_bytes: int,
    ) -> None:
        self._session = session
        self._query = query
        self._max_cell_bytes = max_cell_bytes
        self._batch_bytes = min(max_batch_bytes, BATCH_BYTES)
        self._template = renderer.row_template([each.field for each in query.selected])
        self._texts = renderer.texts
        self._renders = [renderer.column(each.type) for each in query.selected]
        self._cursor: oracledb.Cursor | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_ended = False

    async def start(self) -> None:
        """Execute the statement."""
        try:
            await self._session.run(self._execute, Stage.QUERY, table=self._query.name)
        except SourceFailure as refused:
            failure = refused
        else:
            return
        if failure.reason in (INVALID_FILTER, INVALID_FILTER_VALUE):
            failure = SourceFailure(
                failure.stage, failure.reason, table=failure.table, column=self._query.suspect
            )
        raise failure

    async def next_batch(self) -> EncodedBatch | None:
        """Rows until the batch is full; None after the last."""
        if not self._is_ended and self._waiting_bytes < self._batch_bytes:
            await self._session.run(
                self._fetch,
                Stage.ROWS,
                table=self._query.name,
                round_trip_seconds=NO_PROGRESS_SECONDS,
            )
        return self._batch()

    def _execute(self, connection: oracledb.Connection) -> None:
        cursor = connection.cursor()
        cursor.arraysize = self._query.fetch_rows
        cursor.prefetchrows = self._query.fetch_rows
        cursor.outputtypehandler = output_type_handler
        if self._query.bind_types:
            cursor.setinputsizes(*self._query.bind_types)
        cursor.execute(self._query.statement, list(self._query.values))
        self._cursor = cursor

    def _fetch(self, connection: oracledb.Connection) -> None:
        del connection
        cursor = self._cursor
        while cursor is not None and self._waiting_bytes < self._batch_bytes:
            rows = cursor.fetchmany(self._query.fetch_rows)
            if not rows:
                cursor.close()
                self._cursor = None
                self._is_ended = True
                return
            self._take(rows)

    def _take(self, rows: Sequence[Sequence[object]]) -> None:
        fetched = iter(zip(*rows, strict=True))
        cells = []
        for selected, render in zip(self._query.selected, self._renders, strict=True):
            values = next(fetched)
            if selected.type.kind in LARGE:
                self._check_lengths(selected.field, next(fetched))
            if (
                selected.type.kind in UNBOUNDED
                or selected.type.max_bytes * 4 > self._max_cell_bytes
            ):
                self._check_sizes(selected.field, values)
            cells.append(self._rendered(selected.field, render, values))
        texts = self._encoded(cells)
        self._waiting.extend(texts)
        self._waiting_bytes += sum(map(len, texts))

    def _rendered(
        self, field: str, render: Callable[[Sequence[object]], list[str]], values: Sequence[Any]
    ) -> list[str]:
        """A column's cells as JSON; its name is told where one is no value of its type."""
        try:
            return render(values)
        except (ValueError, ArithmeticError):
            pass
        raise self._failure(PROTOCOL, field)

    def _encoded(self, cells: Sequence[Sequence[str]]) -> list[bytes]:
        """The rows; broken bytes of texts stand in their cells as half characters."""
        texts = [self._template % row for row in zip(*cells, strict=True)]
        try:
            return [text.encode() for text in texts]
        except UnicodeEncodeError:
            if self._texts.replaces:
                return [self._texts.whole(text).encode() for text in texts]
        broken = (
            selected.field
            for selected, column in zip(self._query.selected, cells, strict=True)
            if any(map(has_halves, column))
        )
        raise self._failure(INVALID_TEXT, next(broken, None))

    def _check_lengths(self, field: str, lengths: Sequence[Any]) -> None:
        if any(length is not None and int(length) > self._max_cell_bytes for length in lengths):
            raise self._failure(CELL_TOO_LARGE, field)

    def _check_sizes(self, field: str, values: Sequence[Any]) -> None:
        for value in values:
            size = len(value) if isinstance(value, str | bytes) else 0
            if isinstance(value, str) and size * 4 > self._max_cell_bytes:
                size = len(value.encode("utf-8", "surrogatepass"))
            if size > self._max_cell_bytes:
                raise self._failure(CELL_TOO_LARGE, field)

    def _batch(self) -> EncodedBatch | None:
        rows: list[bytes] = []
        gathered = 0
        while self._waiting and (not rows or gathered + len(self._waiting[0]) < self._batch_bytes):
            rows.append(self._waiting.popleft())
            gathered += len(rows[-1]) + 1
            self._waiting_bytes -= len(rows[-1])
        return EncodedBatch(self._query.name, b",".join(rows), len(rows)) if rows else None

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)
