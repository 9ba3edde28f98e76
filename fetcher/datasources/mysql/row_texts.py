"""Rows as the server renders them, made into one piece of the document.

What the server leaves to us is little: control characters inside of strings, the line breaks of its
base64, what it takes for text and others do not, and whether what is stored as JSON is any.
"""

import json
import re
from collections import deque
from collections.abc import Sequence
from typing import Final

import orjson

from fetcher.datasources.cell_sizes import place_of_largest
from fetcher.datasources.controls import escaped, has_controls
from fetcher.datasources.mysql.errors import CELL_TOO_LARGE, INVALID_TEXT, PROTOCOL
from fetcher.datasources.mysql.fenced_packets import FENCE, CutRows
from fetcher.datasources.mysql.query import MARKER, TableQuery
from fetcher.datasources.mysql.strict_json import PARSED_BYTES, is_json
from fetcher.datasources.mysql.types import BROKEN
from fetcher.datasources.texts import Texts, is_valid
from fetcher_engine import SourceFailure, Stage, encode_text, encode_value

_ON_ONE_LINE: Final = bytes.maketrans(b"\t\n\r", b"   ")

_BROKEN_BEGINS: Final = b'":' + BROKEN
_BROKEN_CELL: Final = re.compile(
    rb'(?<=[{,])("(?:[^"\\]++|\\.)*"):' + BROKEN + rb"(?:([a-z0-9-]+):)?([0-9A-F]*)", re.DOTALL
)
"""A name stands behind a bracket or a comma: were every quote tried as its beginning, a text of
escaped quotes would be gone through once for each of them.
"""

_COMMA: Final = b","


class RowTexts:
    """For one table. Blocking: some milliseconds a batch."""

    def __init__(
        self, query: TableQuery, *, max_cell_bytes: int, texts: Texts | None = None
    ) -> None:
        self._texts = texts or Texts()
        self._query = query
        self._max_cell_bytes = max_cell_bytes
        self._fences = query.fences
        self._json_places = {
            2 + 2 * number: column for number, column in enumerate(query.unchecked_json)
        }
        """Of a row's parts; the first is the comma before it."""

    def joined_cut(self, rows: CutRows) -> bytes:
        """The rows with commas between them; raise SourceFailure with the column's name.

        They are taken out of ``rows``: a large one is not held twice.
        """
        pieces = []
        if rows.parts:
            pieces.append(self._document(rows.parts))
        if rows.whole:
            parts = self._parts(rows.whole)
            rows.whole.clear()
            pieces.append(self._document(parts))
        return _COMMA.join(pieces)

    def joined(self, texts: Sequence[bytes | None]) -> bytes:
        """The same of rows as they came, fences and all."""
        return self._document(self._parts(texts))

    def _parts(self, texts: Sequence[bytes | None]) -> list[bytes]:
        parts: list[bytes] = []
        for text in texts:
            if text is None:
                raise self._failure(PROTOCOL)
            if text.startswith(MARKER):
                raise self._too_large(text)
            before, *inner = text.split(FENCE)
            if len(inner) > self._fences and self._json_places:
                # of bytes that no text has, in a column that may hold anything
                columns = self._query.unchecked_json
                raise self._failure(INVALID_TEXT, columns[0] if len(columns) == 1 else None)
            if len(inner) != self._fences or before or inner[-1]:
                raise self._failure(PROTOCOL)
            parts += [_COMMA, *inner[:-1]]
        return parts

    def _document(self, parts: list[bytes]) -> bytes:
        """Of parts that are a row's comma and what stood between its fences."""
        parts[0] = b""
        data = b"".join(parts)
        if self._mend_json(parts, are_small=len(data) <= PARSED_BYTES):
            data = b"".join(parts)
        if BROKEN in data and _BROKEN_BEGINS in data:
            self._mend_texts(parts)
            data = b"".join(parts)
        if len(data) > self._max_cell_bytes:
            self._check_sizes(parts)
        if has_controls(data):
            del data  # of a large row there is one copy less
            self._put_on_one_line(parts)
            # a line breaks in base64 alone: the server escapes those of texts
            data = escaped(b"".join(parts).replace(b"\n", b""))
        if not (data.isascii() or is_valid(data)):
            if self._texts.replaces:
                return self._texts.decoded(data).encode()
            raise self._failure(INVALID_TEXT, self._broken_column(parts))
        return data

    def _mend_json(self, parts: list[bytes], *, are_small: bool) -> bool:
        """What is no JSON becomes a text, so that no structure is ever made of it.

        False: all is as it was.
        """
        was_mended = False
        for place, column in self._json_places.items():
            cells = parts[place :: self._fences]
            if not (are_small and _are_json(cells)):
                mended = [each if is_json(each) else self._as_text(each, column) for each in cells]
                parts[place :: self._fences] = mended
                was_mended = was_mended or mended != cells
        return was_mended

    def _as_text(self, cell: bytes, column: str) -> bytes:
        if not (self._texts.replaces or is_valid(cell)):
            raise self._failure(INVALID_TEXT, column)
        return encode_text(self._texts.decoded(cell)).encode()

    def _put_on_one_line(self, parts: list[bytes]) -> None:
        """Of JSON, tabs and line breaks between its tokens become blanks."""
        for place in self._json_places:
            cells = parts[place :: self._fences]
            parts[place :: self._fences] = [cell.translate(_ON_ONE_LINE) for cell in cells]

    def _mend_texts(self, parts: list[bytes]) -> None:
        for number, part in enumerate(parts):
            if number % self._fences not in self._json_places and BROKEN in part:
                parts[number] = _BROKEN_CELL.sub(self._mended, part)

    def _mended(self, cell: re.Match[bytes]) -> bytes:
        """A member whose text the server could not write as JSON."""
        column = str(json.loads(cell[1]))
        codec = (cell[2] or b"utf-8").decode("ascii")
        content = bytes.fromhex(cell[3].decode("ascii"))
        if codec == "utf-8" and is_valid(content):
            raise self._failure(CELL_TOO_LARGE, column)
        if codec == "-" or not self._texts.replaces:
            raise self._failure(INVALID_TEXT, column)
        text = encode_text(self._texts.decoded(content, codec)).encode()
        return b"%b:%b" % (cell[1], text)

    def _check_sizes(self, parts: list[bytes]) -> None:
        """Of rows that are larger than a cell may be, each cell as it is rendered."""
        for start in range(0, len(parts), self._fences):
            row = parts[start : start + self._fences]
            if sum(map(len, row)) > self._max_cell_bytes:
                for name, value in self._cells(row).items():
                    if _size(value) > self._max_cell_bytes:
                        raise self._failure(CELL_TOO_LARGE, name)

    def _broken_column(self, parts: list[bytes]) -> str | None:
        """The server checks what is written, but not what a damaged or upgraded table holds."""
        for start in range(0, len(parts), self._fences):
            row = parts[start : start + self._fences]
            if not is_valid(b"".join(row)):
                broken = (n for n, value in self._cells(row).items() if not _is_whole(value))
                return next(broken, None)
        return None

    def _cells(self, row: list[bytes]) -> dict[str, object]:
        """By column, with broken bytes as half characters; JSON that came unchecked as it is.

        Empty for a row that cannot be taken apart.
        """
        unchecked = {column: row[place] for place, column in self._json_places.items()}
        text = [b"null" if place in self._json_places else part for place, part in enumerate(row)]
        try:
            parsed: dict[str, object] = json.loads(
                b"".join(text[1:]).decode("utf-8", "surrogateescape"), strict=False
            )
        except (ValueError, RecursionError):
            return {}
        return parsed | unchecked

    def _too_large(self, marker: bytes) -> SourceFailure:
        largest = place_of_largest(marker[len(MARKER) :], len(self._query.fields))
        if largest is None:
            return self._failure(PROTOCOL)
        return self._failure(CELL_TOO_LARGE, self._query.fields[largest])

    def _failure(self, reason: str, column: str | None = None) -> SourceFailure:
        return SourceFailure(Stage.ROWS, reason, table=self._query.name, column=column)


def _are_json(cells: Sequence[bytes]) -> bool:
    """False is a suspicion. Each for itself: two that are none may be some together."""
    try:
        # each is freed before the next is read
        deque(map(orjson.loads, cells), maxlen=0)
    except orjson.JSONDecodeError:
        return False
    return True


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
