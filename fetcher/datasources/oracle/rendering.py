"""Fetched columns as JSON texts (spec datasources 10.5; design section 6)."""

import struct
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from fetcher.datasources.oracle.types import ColumnType, Kind
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text, encode_value

Render: TypeAlias = Callable[[Any], str]

_LARGEST_SAFE: Final = 2**53
_MOST_EXPONENT: Final = 130
"""Of a NUMBER, in either direction."""
_ONE_LINE: Final = {9: " ", 10: " ", 13: " "}
_FLOAT: Final = struct.Struct("<f")


class ValueRenderer:
    """One value at a time, by the column's type and the job's options."""

    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        self._bigint_text = options.bigint == "string"
        self._decimal_number = options.decimals == "number"
        wall = "" if options.values == "natural" else "Z"
        self._by_kind: dict[Kind, Render] = {
            Kind.BINARY_FLOAT: _single,
            Kind.BINARY_DOUBLE: encode_value,
            Kind.BOOLEAN: encode_value,
            Kind.DATE: partial(_moment, suffix=wall),
            Kind.TIMESTAMP: partial(_moment, suffix=wall),
            Kind.TIMESTAMP_TZ: partial(_moment, suffix="Z"),
            Kind.TIMESTAMP_LTZ: partial(_moment, suffix="Z"),
            Kind.RAW: _base64,
            Kind.LONG_RAW: _base64,
            Kind.BLOB: _base64,
            Kind.JSON: _embedded,
            Kind.VECTOR: _embedded,
        }

    def row_template(self, fields: Sequence[str]) -> str:
        """For ``%`` with the cells in the order of the fields."""
        members = ",".join(f"{encode_text(name).replace('%', '%%')}:%s" for name in fields)
        return f"{{{members}}}"

    def column(self, column: ColumnType) -> Callable[[Sequence[object]], list[str]]:
        """What turns fetched values of the column into JSON texts."""
        render = (
            self._number(column)
            if column.kind is Kind.NUMBER
            else self._by_kind.get(column.kind, encode_text)
        )
        return lambda values: ["null" if value is None else render(value) for value in values]

    def _number(self, column: ColumnType) -> Render:
        if column.is_integer:
            return _safe_integer if self._bigint_text else _plain
        digits = partial(_scaled, scale=column.scale) if column.scale else _plain
        return digits if self._decimal_number else lambda text: f'"{digits(text)}"'


def _plain(text: str) -> str:
    """The digits, without exponent, and with one before the point."""
    first = text[1:2] if text[:1] == "-" else text[:1]
    if first.isdigit() and "e" not in text and "E" not in text:
        return text
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_EXPONENT:
        # no NUMBER: written out it could take all memory
        raise ValueError
    return f"{number:f}"


def _scaled(text: str, *, scale: int) -> str:
    """Oracle keeps no zeros at the end: the declared scale says how many were meant."""
    whole, _, fraction = _plain(text).partition(".")
    return f"{whole}.{fraction.ljust(scale, '0')}"


def _safe_integer(text: str) -> str:
    digits = _plain(text)
    return digits if abs(int(digits)) <= _LARGEST_SAFE else f'"{digits}"'


def _single(value: float) -> str:
    """The shortest number that is this one in 32 bits."""
    for digits in range(6, 10):
        shortest = float(f"{value:.{digits}g}")
        try:
            if _FLOAT.unpack(_FLOAT.pack(shortest))[0] == value:
                return encode_value(shortest)
        except OverflowError:
            continue
    return encode_value(value)


def _moment(text: str, *, suffix: str) -> str:
    """Before year 1 no calendar of ours holds it: Oracle's own text then."""
    text = text.strip()
    if text.startswith("-"):
        return f'"{text.replace("T", " ")}"'
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f'"{text}{suffix}"'


def _base64(value: bytes) -> str:
    return f'"{b2a_base64(value, newline=False).decode("ascii")}"'


def _embedded(text: str) -> str:
    """JSON as the server wrote it; outside of strings a line break is a blank."""
    return text.translate(_ONE_LINE)
