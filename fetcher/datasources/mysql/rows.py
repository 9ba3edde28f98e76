"""The rows of one table, in batches (design section 10; spec datasources, section 11)."""

from typing import Final

import trio

from fetcher.datasources.mysql.errors import INVALID_FILTER, INVALID_FILTER_VALUE, TIMEOUT
from fetcher.datasources.mysql.query import TableQuery
from fetcher.datasources.mysql.row_texts import RowTexts
from fetcher.datasources.mysql.session import Session
from fetcher.datasources.texts import Texts
from fetcher_engine import EncodedBatch, SourceFailure, Stage

NO_PROGRESS_SECONDS: Final = 60.0
"""How long a source may send nothing while we wait for it (spec datasources, section 4)."""

BATCH_BYTES: Final = 512 * 1024
"""Some milliseconds of a thread's work."""


class RowReader:
    """Reads one table. To be used once, by one task. Every method raises SourceFailure."""

    def __init__(
        self,
        session: Session,
        query: TableQuery,
        *,
        max_batch_bytes: int,
        max_cell_bytes: int,
        texts: Texts,
    ) -> None:
        self._session = session
        self._query = query
        self._batch_bytes = min(max_batch_bytes, BATCH_BYTES)
        self._texts = RowTexts(query, max_cell_bytes=max_cell_bytes, texts=texts)
        self._ended = False

    async def start(self) -> None:
        """Send the statement and wait until its rows begin."""
        query = self._query
        failure: SourceFailure | None = None
        try:
            await self._session.begin_rows(
                query.statement,
                fences=query.fences,
                table=query.name,
                filtered=bool(query.filtered),
            )
        except SourceFailure as refused:
            failure = refused
        if failure is not None and failure.reason in (INVALID_FILTER, INVALID_FILTER_VALUE):
            suspect = query.filtered[0] if len(query.filtered) == 1 else None
            failure = SourceFailure(failure.stage, failure.reason, table=query.name, column=suspect)
        if failure is not None:
            raise failure

    async def next_batch(self) -> EncodedBatch | None:
        """Rows until the batch is full; None after the last."""
        name = self._query.name
        while not self._ended:
            found: EncodedBatch | None = None
            with trio.move_on_after(NO_PROGRESS_SECONDS):
                data, row_count, self._ended = await self._session.read_rows(
                    self._batch_bytes, self._texts.joined_cut, table=name
                )
                found = EncodedBatch(name, data, row_count)
            if found is None:
                raise SourceFailure(Stage.ROWS, TIMEOUT, table=name)
            if found.row_count:
                return found
        return None
