"""What SQLite's columns are declared to hold, and its values as JSON.

For JSON the storage class decides, not the declaration: SQLite keeps in a column whatever was put
there. Filters go by the declaration.

``INTEGER`` is a JSON integer, ``REAL`` the shortest number that reads back the same (infinities as
strings), ``TEXT`` a string, also where it looks like a date, a decimal or JSON, ``BLOB`` base64. A
column declared ``DECIMAL`` therefore gives numbers for what SQLite turned into numbers, and strings
for decimals that were stored as text. Both profiles are the same.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, Final

from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text, encode_value

_LARGEST_SAFE: Final = 2**53
_SLICE: Final = 3 * 64 * 1024
"""Of characters, or of bytes: base64 of so many ends without padding."""


class Kind(Enum):
    """What a declaration says of the values, where it says something."""

    INTEGER = auto()
    NUMBER = auto()
    FLOAT = auto()
    BOOLEAN = auto()
    TEXT = auto()
    BYTES = auto()
    DAY = auto()
    MOMENT = auto()
    ANY = auto()


_KINDS: Final = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"\bBOOL", Kind.BOOLEAN),
        (r"\bTINYINT ?\(1\)", Kind.BOOLEAN),
        (r"DATETIME|TIMESTAMP", Kind.MOMENT),
        (r"\bDATE\b", Kind.DAY),
        (r"\b(TINY|SMALL|MEDIUM|BIG)? ?INT(EGER|[248])?\b", Kind.INTEGER),
        (r"CHAR|CLOB|TEXT", Kind.TEXT),
        (r"BLOB", Kind.BYTES),
        (r"REAL|FLOA|DOUB", Kind.FLOAT),
        (r"\b(DEC(IMAL)?|NUMERIC|NUMBER)\b", Kind.NUMBER),
    )
)


def kind_of(declared: str) -> Kind:
    upper = declared.upper()
    return next((kind for pattern, kind in _KINDS if pattern.search(upper)), Kind.ANY)


class ValueRenderer:
    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        self._by_type: dict[type, Callable[[Any], str]] = {
            int: _safe_integer if options.bigint == "string" else str,
            float: encode_value,
            str: encode_text,
            bytes: encode_value,
            type(None): encode_value,
        }

    def row_template(self, fields: Sequence[str]) -> str:
        """For ``%`` with the cells in the order of the fields."""
        members = ",".join(f"{encode_text(name).replace('%', '%%')}:%s" for name in fields)
        return f"{{{members}}}"

    def cells(self, row: Sequence[object]) -> tuple[str, ...]:
        by_type = self._by_type
        return tuple([by_type[type(value)](value) for value in row])

    def pieces(self, fields: Sequence[str], row: Sequence[object]) -> Iterator[bytes]:
        """The same row of JSON in pieces, for one with large cells: a text that is not Latin takes
        two or four bytes a character until it is encoded, and each copy of it as much again."""
        before = "{"
        for name, value in zip(fields, row, strict=True):
            yield f"{before}{encode_text(name)}:".encode()
            before = ","
            if isinstance(value, str | bytes):
                yield from self._sliced(value)
            else:
                yield self._by_type[type(value)](value).encode()
        yield b"}"

    def _sliced(self, value: str | bytes) -> Iterator[bytes]:
        yield b'"'
        for start in range(0, len(value), _SLICE):
            part = value[start : start + _SLICE]
            yield self._by_type[type(part)](part)[1:-1].encode()
        yield b'"'


def _safe_integer(value: int) -> str:
    return str(value) if -_LARGEST_SAFE <= value <= _LARGEST_SAFE else f'"{value}"'
