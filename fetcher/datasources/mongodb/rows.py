"""The rows of one collection: raw batches of the server's, as JSON in batches of ours.

Blocking: it runs in the session's thread.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from bson import Int64
from pymongo.client_session import ClientSession
from pymongo.cursor import RawBatchCursor
from pymongo.errors import PyMongoError

from fetcher.datasources.mongodb.batch_sizes import BatchSize
from fetcher.datasources.mongodb.bson_json import CellTooLarge, document_starts
from fetcher.datasources.mongodb.bson_walk import InvalidText, MalformedBson
from fetcher.datasources.mongodb.driver_internals import ask_for
from fetcher.datasources.mongodb.errors import (
    CELL_TOO_LARGE,
    INVALID_TEXT,
    PROTOCOL,
    RESET,
    SNAPSHOT_REFUSED_CODES,
    code_of,
    statement_failure,
)
from fetcher.datasources.mongodb.layout import RowWriter
from fetcher.datasources.mongodb.query import CollectionQuery
from fetcher.datasources.mongodb.schema import Source
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher_engine import EncodedBatch, SourceFailure, Stage

CHUNK_BYTES: Final = 256 * 1024
"""BSON that becomes one batch, if it is more than one document."""

_SERVER_BATCH_DOCUMENTS: Final = 4000

_Cursor: TypeAlias = "RawBatchCursor[Any]"


class CollectionRows:
    """One collection being read."""

    def __init__(
        self,
        database: Source,
        query: CollectionQuery,
        writer: RowWriter,
        *,
        session: ClientSession | None,
        statement_seconds: float,
        chunk_bytes: int,
    ) -> None:
        self._query = query
        self._writer = writer
        self._chunk_bytes = min(chunk_bytes, CHUNK_BYTES)
        self._stage = Stage.QUERY
        self._raw = b""
        self._starts: Sequence[int] = ()
        self._next = 0
        self._ended = False
        self._database = database
        self._open_cursor = 0
        self._batch_size = BatchSize(_SERVER_BATCH_DOCUMENTS)
        self._cursor: _Cursor = database[query.collection].find_raw_batches(
            query.condition,
            query.projection,
            session=session,
            batch_size=self._batch_size.documents,
            max_time_ms=max(1, int(statement_seconds * 1000)),
        )

    @property
    def stage(self) -> Stage:
        """Whether rows have come yet."""
        return self._stage

    @property
    def waits_for_server(self) -> bool:
        """Whether all that has come is written, and more is to come."""
        return self._next >= len(self._starts) and not self._ended

    def next_batch(self) -> EncodedBatch | None:
        """Write some of what has come; None where nothing is left. It does not wait for the server.

        Raise SourceFailure.
        """
        if self._next >= len(self._starts):
            return None
        first = self._next
        at = self._starts[first]
        while self._next < len(self._starts) and (
            self._next == first or self._end(self._next) - at <= self._chunk_bytes
        ):
            self._next += 1
        data = self._raw[at : self._end(self._next - 1)]
        starts = [start - at for start in self._starts[first : self._next]]
        return EncodedBatch(self._query.name, self._written(data, starts), len(starts))

    def close(self) -> None:
        """Tell the server that no more is wanted.

        A cursor whose call was interrupted is dead for pymongo, and lives on the server.
        """
        if self._cursor.alive:
            self._cursor.close()
        elif self._open_cursor:
            self._database.command(
                {"killCursors": self._query.collection, "cursors": [Int64(self._open_cursor)]}
            )

    def _end(self, number: int) -> int:
        following = number + 1
        return self._starts[following] if following < len(self._starts) else len(self._raw)

    def fetch(self) -> None:
        """Wait for more from the server. Raise SourceFailure; SnapshotRefused the first time."""
        failure: SourceFailure | None = None
        # all of it is written: it need not be held while the next one comes
        self._raw, self._starts, self._next = b"", (), 0
        try:
            raw = bytes(next(self._cursor))
            self._open_cursor = self._cursor.cursor_id or 0
            self._starts = document_starts(raw)
            self._raw = raw
            self._stage = Stage.ROWS
            self._batch_size.learn(len(self._starts), len(raw))
            ask_for(self._cursor, self._batch_size.documents)
        except StopIteration:
            # also what a cursor says that was given up
            self._ended = self._cursor.cursor_id == 0
            if not self._ended:
                failure = self._failure(RESET)
        except (MalformedBson, LookupError, TypeError, ValueError, AttributeError):
            # also what pymongo trips over in an answer that is none
            failure = self._failure(PROTOCOL)
        except (PyMongoError, OSError) as error:
            failure = self._refusal(error)
        if failure is not None:
            raise failure

    def _refusal(self, error: Exception) -> SourceFailure:
        is_first = self._stage is Stage.QUERY
        if is_first and code_of(error) in SNAPSHOT_REFUSED_CODES:
            return SnapshotRefused()
        return statement_failure(self._stage, error, table=self._query.name)

    def _written(self, data: bytes, starts: Sequence[int]) -> bytes:
        try:
            return ",".join(self._writer.rows(data, starts)).encode()
        except InvalidText as error:
            failure = self._failure(INVALID_TEXT, error.args[0])
        except CellTooLarge as error:
            failure = self._failure(CELL_TOO_LARGE, error.args[0])
        except MalformedBson:
            failure = self._failure(PROTOCOL)
        raise failure

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column or None)
