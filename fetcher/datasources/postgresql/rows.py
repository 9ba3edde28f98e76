"""The rows of one COPY, in batches (design section 10; spec datasources, section 11).

libpq hands over a row a message; nothing else is made of it but its bytes without the frame. A
result ends with the protocol's end and with the row count that the server itself reports: every
other end is a failure.
"""

import struct
from collections.abc import Sequence
from typing import Final

import psycopg
import trio
from psycopg import pq

from fetcher.datasources.cell_sizes import place_of_largest
from fetcher.datasources.controls import escaped, has_controls
from fetcher.datasources.postgresql.errors import (
    CELL_TOO_LARGE,
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    INVALID_TEXT,
    PROTOCOL,
    RESET,
    TIMEOUT,
)
from fetcher.datasources.postgresql.query import MARKER, UTF_8, TableQuery
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.texts import Texts, broken_member, is_valid
from fetcher_engine import EncodedBatch, SourceFailure, Stage

NO_PROGRESS_SECONDS: Final = 60.0
"""How long a source may send nothing while we wait for it (spec datasources, section 4)."""

BATCH_BYTES: Final = 256 * 1024
"""Some milliseconds of work between two turns of the loop."""

FINDING_SECONDS: Final = 10.0
"""How long the column with the invalid text is looked for."""

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_TRAILER: Final = b"\xff\xff"
_LOST: Final = -2
"""What libpq calls an error of the connection."""
_FRAME_BYTES: Final = 6
"""A tuple of one field: its count (2 bytes), the field's length (4 bytes)."""


class CopyReader:
    """Reads one table. To be used once, by one task. Every method raises SourceFailure."""

    def __init__(
        self, session: Session, query: TableQuery, *, max_batch_bytes: int, texts: Texts
    ) -> None:
        self._texts = texts
        self._session = session
        self._query = query
        self._copy, self._codec = query.copy, UTF_8
        if texts.replaces and query.stored is not None:
            self._copy, self._codec = query.stored, query.codec
        self._batch_bytes = min(max_batch_bytes, BATCH_BYTES)
        self._begun = False
        self._ended = False
        self._trailer_seen = False
        self._row_count = 0

    async def start(self) -> None:
        """Send the statement and wait until its rows begin."""
        name = self._query.name
        failure = SourceFailure(Stage.QUERY, PROTOCOL, table=name)
        try:
            started = await self._session.execute(self._copy, Stage.QUERY, table=name)
        except SourceFailure as refused:
            failure = refused
        else:
            if started.status == pq.ExecStatus.COPY_OUT:
                return
        if failure.reason in (INVALID_FILTER, INVALID_FILTER_VALUE):
            failure = SourceFailure(
                failure.stage, failure.reason, table=name, column=self._query.suspect
            )
        raise failure

    async def next_batch(self) -> EncodedBatch | None:
        """Rows until the batch is full; None after the last."""
        if self._ended:
            return None
        rows: list[bytes] = []
        with trio.move_on_after(NO_PROGRESS_SECONDS) as waiting:
            self._ended = await self._fill(rows, waiting)
            self._row_count += len(rows)
            if self._ended:
                await self._check_end()
        if waiting.cancelled_caught:
            raise self._failure(TIMEOUT)
        return EncodedBatch(self._query.name, self._joined(rows), len(rows)) if rows else None

    async def _fill(self, rows: list[bytes], waiting: trio.CancelScope) -> bool:
        """Gather rows until there are enough; True at the end. An arrival starts the time anew."""
        if not self._begun:
            await self._skip_header(rows)
        take = self._session.pgconn.get_copy_data
        gathered = 0
        looked = ended = False
        while gathered < self._batch_bytes and not ended:
            try:
                while (found := take(1))[0] > _FRAME_BYTES and gathered < self._batch_bytes:
                    # copied: joining views would take longer than copying and joining bytes
                    rows.append(bytes(found[1][_FRAME_BYTES:]))
                    gathered += found[0]
                    looked = False
            except psycopg.Error:
                found = (_LOST, memoryview(b""))
            size, data = found
            if size > _FRAME_BYTES:
                rows.append(bytes(data[_FRAME_BYTES:]))
            elif size > 0:
                self._trailer_seen = bytes(data) == _TRAILER
            elif size == 0 and not looked:
                # libpq's buffer is small: often the socket has the next rows already
                self._session.take_input(Stage.ROWS, table=self._query.name)
                looked = True
            elif size == 0:
                await self._session.wait_for_input(Stage.ROWS, table=self._query.name)
                waiting.deadline = trio.current_time() + NO_PROGRESS_SECONDS
                looked = False
            elif size == _LOST:
                raise self._failure(RESET)
            else:
                ended = True
        await trio.lowlevel.checkpoint()
        return ended

    async def _skip_header(self, rows: list[bytes]) -> None:
        """The format's header; the first row comes in the same message."""
        message = await self._receive()
        header_bytes = len(_SIGNATURE) + 8
        if message is None or len(message) < header_bytes or bytes(message[:11]) != _SIGNATURE:
            if message is None:
                await self._check_end()
            raise self._failure(PROTOCOL)
        (extension_bytes,) = struct.unpack_from("!i", message, len(_SIGNATURE) + 4)
        rest = message[header_bytes + extension_bytes :]
        self._begun = True
        self._trailer_seen = bytes(rest) == _TRAILER
        if rest and not self._trailer_seen:
            rows.append(bytes(rest[_FRAME_BYTES:]))

    async def _receive(self) -> memoryview | None:
        """One message; None at the end of the data."""
        while True:
            try:
                size, data = self._session.pgconn.get_copy_data(1)
            except psycopg.Error:
                size, data = _LOST, memoryview(b"")
            if size == _LOST:
                raise self._failure(RESET)
            if size != 0:
                return data if size > 0 else None
            await self._session.wait_for_input(Stage.ROWS, table=self._query.name)

    async def _check_end(self) -> None:
        """The statement must have succeeded, and have sent as many rows as we have."""
        failure: SourceFailure | None = None
        try:
            result = await self._session.result(Stage.ROWS, table=self._query.name)
        except SourceFailure as refused:
            failure = refused
        else:
            if self._trailer_seen and result.command_tuples == self._row_count:
                return
        if failure is not None and failure.reason == INVALID_TEXT:
            raise self._failure(INVALID_TEXT, await self._column_with_invalid_text())
        raise failure or self._failure(PROTOCOL)

    def _joined(self, rows: Sequence[bytes]) -> bytes:
        data = b",".join(rows)
        if not data.isascii():
            data = self._in_utf8(data, rows)
        if not has_controls(data):
            return data
        if MARKER in data:
            for row in rows:
                if row.startswith(MARKER):
                    raise self._too_large(row)
        return escaped(data)

    def _in_utf8(self, data: bytes, rows: Sequence[bytes]) -> bytes:
        """What a server sends is not valid where nothing had to be converted: it does not look."""
        if self._codec != UTF_8 or not is_valid(data):
            if not self._texts.replaces:
                columns = filter(None, map(broken_member, rows))
                raise self._failure(INVALID_TEXT, next(columns, None))
            return self._texts.decoded(data, self._codec).encode()
        return data

    def _too_large(self, marker: bytes) -> SourceFailure:
        """Which cell: our statement gives the size of each."""
        largest = place_of_largest(marker[len(MARKER) :], len(self._query.fields))
        if largest is None:
            return self._failure(PROTOCOL)
        return self._failure(CELL_TOO_LARGE, self._query.fields[largest])

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)

    async def _column_with_invalid_text(self) -> str | None:
        """Read again without the server's check, to name the column; None where that fails."""
        if self._query.stored is None:
            return None
        with trio.move_on_after(FINDING_SECONDS):
            try:
                return await self._first_bad_column(self._query.stored)
            except SourceFailure:
                return None
        return None

    async def _first_bad_column(self, stored: bytes) -> str | None:
        await self._session.begin_again()
        await self._session.execute(stored, Stage.ROWS)
        skipped: list[bytes] = []
        self._begun = False
        await self._skip_header(skipped)
        row_bytes = skipped[0] if skipped else None
        while row_bytes is not None:
            if (column := broken_member(row_bytes, self._query.codec)) is not None:
                return column
            following = await self._receive()
            row_bytes = bytes(following[_FRAME_BYTES:]) if following is not None else None
        return None
