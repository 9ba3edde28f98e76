"""The first rows of a result document, cut out of its bytes.

Nothing is parsed into values, so every number stays as it is and the cost in memory is that of the
document. The document is our own (compact JSON, ``{config: {table: [row, …]}}``) and verified.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

# Only characters are repeated possessively: of groups Python does it wrongly before 3.11.5, which
# Debian 12 has not (gh-106052). The document is our own: there is hardly anything to go back over.
_STRING: Final = rb'"(?:[^"\\]++|\\.)*"'
_KEY: Final = re.compile(rb"(" + _STRING + rb"):")
_FLAT_ROW: Final = re.compile(rb'\{(?:[^"{}\[\]]++|' + _STRING + rb")*\}", re.DOTALL)
_BETWEEN_BRACKETS: Final = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]|\\.){0,1000}")*', re.DOTALL)
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)+', re.DOTALL)
_WINDOW_BYTES: Final = 256 * 1024
"""How far a pattern may look: it holds the interpreter all the while, some 10 ms a MiB."""
_QUOTE = ord('"')
_OPENING, _CLOSING = b"{[", b"}]"


class DocumentMalformed(ValueError):
    """Not the layout of a result document."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no result document at byte {position}")


@dataclass(frozen=True, slots=True)
class TableHead:
    rows: tuple[bytes, ...]
    """Each the row's JSON text as it was stored."""
    row_count: int
    """Of the whole table."""


def head_of_tables(document: bytes, *, rows: int) -> Mapping[str, Mapping[str, TableHead]]:
    """The first ``rows`` of each table, by config name and table. Raise DocumentMalformed."""
    reader = _Reader(document)
    heads = {
        config: {table: reader.head(rows) for table in reader.members()}
        for config in reader.members()
    }
    reader.expect_end()
    return heads


class _Reader:
    """A place in the document that only moves forward."""

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._place = 0

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; whoever takes one reads its value."""
        self._take(b"{")
        is_first = True
        while not self._takes(b"}"):
            if not is_first:
                self._take(b",")
            is_first = False
            key = _KEY.match(self._document, self._place)
            if key is None:
                raise DocumentMalformed(self._place)
            self._place = key.end()
            yield str(json.loads(key[1]))

    def head(self, rows: int) -> TableHead:
        """Read a table's array to its end."""
        kept: list[bytes] = []
        count = 0
        self._take(b"[")
        while not self._takes(b"]"):
            if count:
                self._take(b",")
            start = self._place
            self._pass_row()
            if count < rows:
                kept.append(self._document[start : self._place])
            count += 1
        return TableHead(tuple(kept), count)

    def expect_end(self) -> None:
        if self._place != len(self._document):
            raise DocumentMalformed(self._place)

    def _pass_row(self) -> None:
        flat = _FLAT_ROW.match(self._document, self._place, self._place + _WINDOW_BYTES)
        self._place = flat.end() if flat is not None else self._end_of_nested_row()

    def _end_of_nested_row(self) -> int:
        if not self._document.startswith(b"{", self._place):
            raise DocumentMalformed(self._place)
        depth = 0
        place = self._place
        while place < len(self._document):
            found = self._document[place]
            if found == _QUOTE:
                place = self._end_of_string(place)
            else:
                place += 1
            if found in _OPENING:
                depth += 1
            elif found in _CLOSING:
                depth -= 1
                if depth == 0:
                    return place
            passed = _BETWEEN_BRACKETS.match(self._document, place, place + _WINDOW_BYTES)
            place = passed.end() if passed is not None else place
        raise DocumentMalformed(self._place)

    def _end_of_string(self, start: int) -> int:
        """Behind the quote that ends it, window by window."""
        place = start + 1
        if self._document.startswith(b'"', place):
            return place + 1
        while passed := _IN_STRING.match(self._document, place, place + _WINDOW_BYTES):
            place = passed.end()
            if self._document.startswith(b'"', place):
                return place + 1
        raise DocumentMalformed(start)

    def _takes(self, text: bytes) -> bool:
        found = self._document.startswith(text, self._place)
        if found:
            self._place += len(text)
        return found

    def _take(self, text: bytes) -> None:
        if not self._takes(text):
            raise DocumentMalformed(self._place)
