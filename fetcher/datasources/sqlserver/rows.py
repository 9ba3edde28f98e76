"""The rows of one table, in batches (spec datasources, section 11)."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import trio

from fetcher.datasources.sqlserver.errors import (
    CELL_TOO_LARGE,
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    INVALID_TEXT,
    TIMEOUT,
)
from fetcher.datasources.sqlserver.query import TableQuery
from fetcher.datasources.sqlserver.rendering import NotRenderable, Renderer
from fetcher.datasources.sqlserver.session import Session
from fetcher.datasources.sqlserver.types import Column, is_long
from fetcher_engine import EncodedBatch, SourceFailure, Stage, encode_text

NO_PROGRESS_SECONDS: Final = 60.0
"""How long a source may send nothing while we wait for it (spec datasources, section 4)."""

BATCH_BYTES: Final = 256 * 1024
BATCH_SECONDS: Final = 1.0
"""After which a slow source's rows are handed on, however few."""


class RowReader:
    """Reads one table. To be used once, by one task. Every method raises SourceFailure."""

    def __init__(
        self,
        session: Session,
        query: TableQuery,
        renderer: Renderer,
        *,
        max_batch_bytes: int,
        max_cell_bytes: int,
    ) -> None:
        self._session = session
        self._query = query
        self._batch_bytes = min(max_batch_bytes, BATCH_BYTES)
        self._max_cell_bytes = max_cell_bytes
        self._renderers = [renderer.of(column) for column in query.columns]
        members = ",".join(
            f"{encode_text(column.name).replace('%', '%%')}:%s" for column in query.columns
        )
        self._template = f"{{{members}}}"
        self._has_ended = False
        self._seconds_left = session.statement_seconds
        """Of waiting for this statement; the time between two batches is not the source's."""

    async def start(self) -> None:
        """Send the statement and wait until its rows begin."""
        name = self._query.name
        failure: SourceFailure
        began = trio.current_time()
        try:
            await self._session.execute(self._query.statement, Stage.QUERY, table=name)
        except SourceFailure as refused:
            failure = refused
        else:
            for number, column in enumerate(self._query.columns):
                if is_long(column):
                    self._session.link.buffer(number, 2 * self._max_cell_bytes + 2, name)
            self._seconds_left -= trio.current_time() - began
            return
        if failure.reason in (INVALID_FILTER, INVALID_FILTER_VALUE):
            # without a value of ours the server speaks of the data
            reason = failure.reason if self._query.statement.values else "unknown"
            failure = SourceFailure(failure.stage, reason, table=name, column=self._query.suspect)
        raise failure

    async def next_batch(self) -> EncodedBatch | None:
        """Rows until the batch is full; None after the last."""
        if self._has_ended:
            return None
        rows: list[str] = []
        began = trio.current_time()
        with trio.move_on_after(max(0.0, self._seconds_left)) as waiting:
            await self._session.run(lambda: self._fill(rows))
        if waiting.cancelled_caught:
            raise self._failure(TIMEOUT)
        self._seconds_left -= trio.current_time() - began
        return self._encoded(rows) if rows else None

    def _fill(self, rows: list[str]) -> None:
        """In the driver's thread: gather rows until there are enough."""
        link, renderers, template = self._session.link, self._renderers, self._template
        narrow = self._max_cell_bytes // 4
        gathered = 0
        link.limit_silence(NO_PROGRESS_SECONDS)
        stop_at = time.monotonic() + BATCH_SECONDS
        while gathered < self._batch_bytes and not (rows and time.monotonic() > stop_at):
            row = link.row(Stage.ROWS, self._query.name)
            if row is None:
                self._has_ended = True
                break
            cells = self._cells(row, renderers)
            text = template % cells
            if len(text) > narrow:
                self._check_sizes(cells)
            rows.append(text)
            gathered += len(text)
        # the next statement may think for longer
        link.limit_silence(None)

    def _cells(
        self, row: Sequence[object], renderers: Sequence[Callable[[Any], str]]
    ) -> tuple[str, ...]:
        failure: SourceFailure
        try:
            return tuple(
                [
                    "null" if value is None else render(value)
                    for render, value in zip(renderers, row, strict=True)
                ]
            )
        except (UnicodeDecodeError, NotRenderable, ValueError, TypeError, AttributeError):
            failure = self._broken_cell(row)
        raise failure

    def _broken_cell(self, row: Sequence[object]) -> SourceFailure:
        """Which cell of the row has no form, looked for again."""
        for column, render, value in zip(self._query.columns, self._renderers, row, strict=False):
            if value is None:
                continue
            if self._is_cut(column, value):
                return self._failure(CELL_TOO_LARGE, column.name)
            try:
                render(value)
            except UnicodeDecodeError:
                return self._failure(INVALID_TEXT, column.name)
            except (NotRenderable, ValueError, TypeError, AttributeError):
                return self._failure("unsupported_value", column.name)
        return self._failure("protocol")

    def _is_cut(self, column: Column, value: object) -> bool:
        return (
            is_long(column) and isinstance(value, bytes) and len(value) > 2 * self._max_cell_bytes
        )

    def _check_sizes(self, cells: Sequence[str]) -> None:
        for column, cell in zip(self._query.columns, cells, strict=True):
            if len(cell.encode("utf-8")) > self._max_cell_bytes:
                raise self._failure(CELL_TOO_LARGE, column.name)

    def _encoded(self, rows: Sequence[str]) -> EncodedBatch:
        return EncodedBatch(self._query.name, ",".join(rows).encode("utf-8"), len(rows))

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)
