"""Rows as the server renders them, made into one piece of the document.

What the server leaves to us is little: control characters inside of strings, the line breaks of its
base64, and what it takes for JSON or for text and others do not.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

import orjson

from fetcher.datasources.mysql.errors import (
    CELL_TOO_LARGE,
    INVALID_JSON,
    INVALID_TEXT,
    PROTOCOL,
)
from fetcher.datasources.mysql.query import FENCE, MARKER, TableQuery
from fetcher.datasources.mysql.types import BROKEN
from fetcher.datasources.texts import Texts, is_valid
from fetcher_engine import SourceFailure, Stage, encode_text, encode_value

_CONTROLS: Final = bytes(range(32))
_ESCAPES: Final = [
    (bytes([code]), json.dumps(chr(code)).strip('"').encode("ascii")) for code in range(32)
]

_ON_ONE_LINE: Final = bytes.maketrans(b"\t\n\r", b"   ")

_WHOLE_TEXTS: Final = re.compile(rb'(?:[^"]++|"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+")*+')

_BROKEN_BEGINS: Final = re.compile(b'(?:":|' + FENCE + b")" + BROKEN)
_BROKEN_CELL: Final = re.compile(
    rb'(?<=[{,])("(?:[^"\\]++|\\.)*+"):('
    + FENCE
    + b"?)"
    + BROKEN
    + rb"(?:([a-z0-9-]+):)?([0-9A-F]*)",
    re.DOTALL,
)
"""In a string of a JSON column the quote before the colon would be escaped.

A name stands behind a bracket or a comma: were every quote tried as its beginning, a text of
escaped quotes would be gone through once for each of them.
"""

_PARSED_BYTES: Final = 1024 * 1024
"""More JSON than this is not made into objects, which would take many times its size."""

_TOKENS: Final = re.compile(
    rb'(?:"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"'
    rb"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+(?=[,\]} ]|\Z)"
    rb"|true|false|null|[\[\]{}:, ]){1,4096}+"
)
"""Of RFC 8259, on one line. No more at once than takes a moment: nothing else runs meanwhile."""


class RowTexts:
    """For one table. Blocking: some milliseconds a batch."""

    def __init__(
        self, query: TableQuery, *, max_cell_bytes: int, texts: Texts | None = None
    ) -> None:
        self._texts = texts or Texts()
        self._query = query
        self._max_cell_bytes = max_cell_bytes

    def joined(self, texts: Sequence[bytes | None]) -> bytes:
        """The rows with commas between them; raise SourceFailure with the column's name."""
        rows = [text for text in texts if text is not None]
        if len(rows) < len(texts):
            raise self._failure(PROTOCOL)
        data = b",".join(rows)
        if BROKEN in data and _BROKEN_BEGINS.search(data):
            rows = [_BROKEN_CELL.sub(self._mended, row) for row in rows]
            data = b",".join(rows)
        if max(map(len, rows)) > self._max_cell_bytes:
            self._check_cells(rows)
        if len(data.translate(None, _CONTROLS)) < len(data):
            self._check_markers(rows)
            data = _escaped(self._on_one_line(data))
        if self._query.unchecked_json:
            data = self._without_fences(data, rows)
        if not (data.isascii() or is_valid(data)):
            if self._texts.replaces:
                return self._texts.decoded(data).encode()
            self._check_text(data, rows)
        return data

    def _mended(self, cell: re.Match[bytes]) -> bytes:
        """A member whose text the server could not write as JSON."""
        column = str(json.loads(cell[1]))
        codec = (cell[3] or b"utf-8").decode("ascii")
        content = bytes.fromhex(cell[4].decode("ascii"))
        if codec == "utf-8" and is_valid(content):
            raise self._failure(CELL_TOO_LARGE, column)
        if codec == "-" or not self._texts.replaces:
            raise self._failure(INVALID_TEXT, column)
        text = encode_text(self._texts.decoded(content, codec)).encode()
        return b"%b:%b%b" % (cell[1], cell[2], text)

    def _check_markers(self, rows: Sequence[bytes]) -> None:
        for row in rows:
            if row.startswith(MARKER):
                sizes = [int(size) for size in row[len(MARKER) :].split(b",")]
                raise self._failure(CELL_TOO_LARGE, self._query.fields[sizes.index(max(sizes))])

    def _check_cells(self, rows: Sequence[bytes]) -> None:
        """Of a row that is larger than a cell may be, each cell as it is rendered."""
        for row in rows:
            if len(row) > self._max_cell_bytes and not row.startswith(MARKER):
                for name, value in self._cells(row).items():
                    if _size(value) > self._max_cell_bytes:
                        raise self._failure(CELL_TOO_LARGE, name)

    def _on_one_line(self, data: bytes) -> bytes:
        """Of JSON, tabs and line breaks between its tokens become blanks."""
        if not self._query.unchecked_json:
            return data
        parts = data.split(FENCE)
        cells = parts[1::2]
        if not _are_json(cells):
            cells = [each if _has_whole_texts(each) else _as_text(each) for each in cells]
        parts[1::2] = [cell.translate(_ON_ONE_LINE) for cell in cells]
        return FENCE.join(parts)

    def _without_fences(self, data: bytes, rows: Sequence[bytes]) -> bytes:
        """MariaDB takes ``1.`` and ``"\\x"`` for JSON; the document must not."""
        columns = self._query.unchecked_json
        parts = data.split(FENCE)
        if len(parts) != 2 * len(columns) * len(rows) + 1:
            # a byte that no text has
            self._check_text(data, rows)
            raise self._failure(PROTOCOL)
        cells = parts[1::2]
        if not _are_json(cells):
            for number, cell in enumerate(cells):
                if not _is_json(cell):
                    raise self._failure(INVALID_JSON, columns[number % len(columns)])
        return b"".join(parts)

    def _check_text(self, data: bytes, rows: Sequence[bytes]) -> None:
        """The server checks what is written, but not what a damaged or upgraded table holds."""
        if is_valid(data):
            return
        for row in rows:
            if row.count(FENCE) != 2 * len(self._query.unchecked_json) or not is_valid(
                row.replace(FENCE, b"")
            ):
                broken = (n for n, value in self._cells(row).items() if not _is_whole(value))
                raise self._failure(INVALID_TEXT, next(broken, None))

    def _cells(self, row: bytes) -> dict[str, object]:
        """By column, with broken bytes as half characters; JSON that is not checked as it is.

        Empty for a row that cannot be taken apart.
        """
        unchecked: dict[str, object] = {}
        for name in self._query.unchecked_json:
            key = f"{encode_text(name)}:".encode()
            before, fence, after = row.partition(key + FENCE)
            if fence:
                unchecked[name], _, rest = after.partition(FENCE)
                row = before + key + b"null" + rest
        try:
            parsed: dict[str, object] = json.loads(
                row.decode("utf-8", "surrogateescape"), strict=False
            )
        except ValueError:
            return {}
        return parsed | unchecked

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)


def _escaped(data: bytes) -> bytes:
    # a line breaks in base64 alone: the server escapes those of texts
    data = data.replace(b"\n", b"")
    # what is left of control characters stands inside of strings, unescaped
    for control, escape in _ESCAPES:
        data = data.replace(control, escape)
    return data


def _are_json(cells: Sequence[bytes]) -> bool:
    """False is a suspicion: of numbers that only a double cannot hold, for example."""
    data = b"[" + b",".join(cells) + b"]"
    if len(data) > _PARSED_BYTES:
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _has_whole_texts(cell: bytes) -> bool:
    """False: a control character, which no JSON text has, and which the server overlooks in one.

    It finds that of a member's name that begins with it only where it rewrites the JSON.
    """
    return _WHOLE_TEXTS.fullmatch(cell) is not None


def _as_text(cell: bytes) -> bytes:
    return encode_text(cell.decode()).encode() if is_valid(cell) else cell


def _is_json(cell: bytes) -> bool:
    """By its numbers and texts. The server has checked its brackets."""
    position = 0
    while position < len(cell):
        tokens = _TOKENS.match(cell, position)
        if tokens is None:
            return False
        position = tokens.end()
    return not cell.isspace() and position > 0


def _is_whole(value: object) -> bool:
    if isinstance(value, bytes):
        return is_valid(value)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _size(value: object) -> int:
    if isinstance(value, bytes):
        return len(value)
    text = encode_value(value) if not isinstance(value, float) else repr(value)
    return len(text.encode("utf-8", "surrogatepass"))
