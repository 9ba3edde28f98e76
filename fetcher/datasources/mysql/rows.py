"""The rows of one table, in batches (design section 10; spec datasources, section 11)."""

import json
from collections.abc import Sequence
from typing import Final

import trio

from fetcher.datasources.mysql.errors import (
    CELL_TOO_LARGE,
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    INVALID_JSON,
    INVALID_TEXT,
    PROTOCOL,
    TIMEOUT,
)
from fetcher.datasources.mysql.query import MARKER, TableQuery
from fetcher.datasources.mysql.session import Session
from fetcher_engine import EncodedBatch, SourceFailure, Stage, encode_value

NO_PROGRESS_SECONDS: Final = 60.0
"""How long a source may send nothing while we wait for it (spec datasources, section 4)."""

BATCH_BYTES: Final = 512 * 1024
"""Some milliseconds of a thread's work."""

_CONTROLS: Final = bytes(range(32))
_ESCAPES: Final = [
    (bytes([code]), json.dumps(chr(code)).strip('"').encode("ascii")) for code in range(32)
]


class RowReader:
    """Reads one table. To be used once, by one task. Every method raises SourceFailure."""

    def __init__(
        self, session: Session, query: TableQuery, *, max_batch_bytes: int, max_cell_bytes: int
    ) -> None:
        self._session = session
        self._query = query
        self._batch_bytes = min(max_batch_bytes, BATCH_BYTES)
        self._max_cell_bytes = max_cell_bytes
        self._ended = False

    async def start(self) -> None:
        """Send the statement and wait until its rows begin."""
        query = self._query
        failure: SourceFailure | None = None
        try:
            await self._session.begin_rows(
                query.statement, table=query.name, filtered=bool(query.filtered)
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
        while not self._ended:
            found: tuple[list[bytes | None], bool] | None = None
            with trio.move_on_after(NO_PROGRESS_SECONDS):
                found = await self._session.read_rows(self._batch_bytes, table=self._query.name)
            if found is None:
                raise self._failure(TIMEOUT)
            rows, self._ended = found
            if rows:
                return EncodedBatch(self._query.name, self._joined(rows), len(rows))
        return None

    def _joined(self, texts: Sequence[bytes | None]) -> bytes:
        rows = [text for text in texts if text is not None]
        if len(rows) < len(texts):
            raise self._failure(PROTOCOL)
        data = b",".join(rows)
        if self._query.unchecked_json:
            self._check_json(data, rows)
        if max(map(len, rows)) > self._max_cell_bytes:
            self._check_cells(rows)
        if not data.isascii():
            self._check_text(data, rows)
        if len(data.translate(None, _CONTROLS)) == len(data):
            return data
        if MARKER in data:
            for row in rows:
                if row.startswith(MARKER):
                    raise self._failure(CELL_TOO_LARGE, self._largest_cell(row))
        # a line breaks in base64 alone: the server escapes those of texts
        data = data.replace(b"\n", b"")
        # what is left of control characters stands inside of strings, unescaped
        for control, escape in _ESCAPES:
            data = data.replace(control, escape)
        return data

    def _check_json(self, data: bytes, rows: Sequence[bytes]) -> None:
        """MariaDB takes ``1.`` and ``"\\x"`` for JSON; the document must not."""
        if _is_json(b"[" + data + b"]"):
            return
        if any(not row.startswith(MARKER) and not _is_json(row) for row in rows):
            columns = self._query.unchecked_json
            raise self._failure(INVALID_JSON, columns[0] if len(columns) == 1 else None)

    def _largest_cell(self, marker: bytes) -> str:
        sizes = [int(size) for size in marker[len(MARKER) :].split(b",")]
        return self._query.fields[sizes.index(max(sizes))]

    def _check_cells(self, rows: Sequence[bytes]) -> None:
        """Of a row that is larger than a cell may be, each cell as it is rendered."""
        for row in rows:
            if len(row) > self._max_cell_bytes and not row.startswith(MARKER):
                for name, value in _parsed(row).items():
                    if _size(value) > self._max_cell_bytes:
                        raise self._failure(CELL_TOO_LARGE, name)

    def _check_text(self, data: bytes, rows: Sequence[bytes]) -> None:
        """The server checks what is written, but not what a damaged or upgraded table holds."""
        if _is_utf8(data):
            return
        for row in rows:
            if not _is_utf8(row):
                broken = (n for n, value in _parsed(row).items() if not _is_whole(value))
                raise self._failure(INVALID_TEXT, next(broken, None))

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)


def _is_json(data: bytes) -> bool:
    """By RFC 8259 but for raw control characters, which are escaped later. Numbers of any size."""
    try:
        _STRICT.decode(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> object:
    raise ValueError(name)


_STRICT: Final = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=_refuse, strict=False
)


def _parsed(row: bytes) -> dict[str, object]:
    """Broken bytes as half characters."""
    found: dict[str, object] = json.loads(row.decode("utf-8", "surrogateescape"), strict=False)
    return found


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_whole(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _size(value: object) -> int:
    text = encode_value(value) if not isinstance(value, float) else repr(value)
    return len(text.encode("utf-8", "surrogatepass"))
