"""Filter values as what Oracle is sent: by the column's type, never through its session formats.

Impossible conversions raise :class:`UnfitValue`, which says nothing about the value.
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import oracledb

from fetcher.datasources.filter_values import (
    Moment,
    UnfitValue,
    bytes_of,
    double_of,
    integer_of,
    moment_of,
    number_of,
    text_of,
    truth_of,
)
from fetcher.datasources.oracle.types import ColumnType, Kind
from fetcher.domain.json_values import JsonScalar

DATE_TIMES: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ, Kind.TIMESTAMP_LTZ})
TEXTS: Final = {
    Kind.TEXT: oracledb.DB_TYPE_VARCHAR,
    Kind.CHAR: oracledb.DB_TYPE_CHAR,
    Kind.NTEXT: oracledb.DB_TYPE_NVARCHAR,
    Kind.NCHAR: oracledb.DB_TYPE_NCHAR,
    Kind.CLOB: oracledb.DB_TYPE_VARCHAR,
    Kind.NCLOB: oracledb.DB_TYPE_NVARCHAR,
}
"""A fixed-length column is compared with a fixed-length value: Oracle then ignores the padding."""

MAX_BOUND_BYTES: Final = 32767
"""Longer texts are no VARCHAR2 any more."""

_DIGITS: Final = 9
"""Of a second."""

_ROWID: Final = re.compile(r"[A-Za-z0-9+/]{18}", re.ASCII)
_MAX_DIGITS: Final = 38
_NUMBER_EXPONENTS: Final = range(-130, 126)

_TIMESTAMP: Final = "TO_TIMESTAMP({0}, 'YYYY-MM-DD HH24:MI:SS.FF9')"
_TIMESTAMP_TZ: Final = "TO_TIMESTAMP_TZ({0}, 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM')"


class NoSuchOperation(Exception):
    """Columns of this type cannot be compared so."""


@dataclass(slots=True)
class Binds:
    """Values in the order of their numbers, which have no holes."""

    values: list[object] = field(default_factory=list, repr=False)
    types: list[Any] = field(default_factory=list)

    def add(self, value: object, db_type: object) -> str:
        self.values.append(value)
        self.types.append(db_type)
        return f":{len(self.values)}"


def bound(column: ColumnType, value: JsonScalar, binds: Binds) -> str:
    """The value as an expression of the column's type; raise UnfitValue or NoSuchOperation."""
    kind = column.kind
    if kind in DATE_TIMES:
        return _moment(column, moment_of(value, digits=_DIGITS), binds)
    if kind in _CONVERTERS:
        convert, db_type = _CONVERTERS[kind]
        return binds.add(convert(column, value), db_type)
    if kind in _TEMPLATES:
        return _TEMPLATES[kind].format(_text(Kind.TEXT, value, binds))
    if kind in TEXTS:
        return _text(kind, value, binds)
    raise NoSuchOperation


def day_after(column: ColumnType, day: date, binds: Binds) -> str | None:
    """Midnight after the day; None: the calendar ends with it."""
    if day == date.max:
        return None
    midnight = moment_of((day + timedelta(days=1)).isoformat(), digits=0)
    return _moment(column, midnight, binds)


def _number(column: ColumnType, value: JsonScalar) -> int | Decimal:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    is_word = isinstance(value, str) and value.strip().isalpha()
    if (column.precision, column.scale) == (1, 0) and (isinstance(value, bool) or is_word):
        return int(truth_of(value))
    if column.is_integer:
        digits = (column.precision or _MAX_DIGITS) - (column.scale or 0)
        number = integer_of(value, range(1 - 10**digits, 10**digits))
    else:
        number = number_of(value)
    exact = Decimal(number)
    digits = len("".join(map(str, exact.as_tuple().digits)).strip("0"))
    if digits > _MAX_DIGITS or (digits and exact.adjusted() not in _NUMBER_EXPONENTS):
        raise UnfitValue
    return number


def _float(column: ColumnType, value: JsonScalar) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    found = double_of(value)
    if column.kind is Kind.BINARY_FLOAT:
        try:
            struct.pack("<f", found)
        except OverflowError:
            raise UnfitValue from None
    return found


def _boolean(_column: ColumnType, value: JsonScalar) -> bool:
    return truth_of(value)


def _text(kind: Kind, value: JsonScalar, binds: Binds) -> str:
    """A text; a number as it was written. The empty text is Oracle's NULL: it compares with
    nothing."""
    text = text_of(value)
    if not 0 < len(text.encode()) <= MAX_BOUND_BYTES or "\0" in text:
        raise UnfitValue
    return binds.add(text, TEXTS[kind])


def like_pattern(kind: Kind, pattern: str, binds: Binds) -> str:
    """Oracle lets its escape stand before ``%``, ``_`` and itself alone (ORA-01424)."""
    return _text(kind, re.sub(r"\\(?![%_\\])|(\\.)", r"\1", pattern, flags=re.DOTALL), binds)


def _bytes(_column: ColumnType, value: JsonScalar) -> bytes:
    found = bytes_of(value)
    if not found:
        raise UnfitValue
    return found


def _rowid(_column: ColumnType, value: JsonScalar) -> str:
    """The server converts it, and fails on what is none."""
    if isinstance(value, str) and _ROWID.fullmatch(value):
        return value
    raise UnfitValue


def _moment(column: ColumnType, moment: Moment, binds: Binds) -> str:
    """A ``DATE`` has seconds: with a fraction the comparison is that of timestamps."""
    if column.kind is Kind.DATE and not moment.fraction:
        return binds.add(moment.second, oracledb.DB_TYPE_DATE)
    text = f"{moment.second.isoformat(' ')}.{moment.fraction:0<9}"
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        return _TIMESTAMP.format(binds.add(text, oracledb.DB_TYPE_VARCHAR))
    return _TIMESTAMP_TZ.format(binds.add(f"{text} +00:00", oracledb.DB_TYPE_VARCHAR))


_CONVERTERS: Final[Mapping[Kind, tuple[Callable[[ColumnType, JsonScalar], object], object]]] = {
    Kind.NUMBER: (_number, oracledb.DB_TYPE_NUMBER),
    Kind.BINARY_FLOAT: (_float, oracledb.DB_TYPE_BINARY_FLOAT),
    Kind.BINARY_DOUBLE: (_float, oracledb.DB_TYPE_BINARY_DOUBLE),
    Kind.BOOLEAN: (_boolean, oracledb.DB_TYPE_BOOLEAN),
    Kind.RAW: (_bytes, oracledb.DB_TYPE_RAW),
    Kind.ROWID: (_rowid, oracledb.DB_TYPE_VARCHAR),
}

_TEMPLATES: Final = {
    Kind.INTERVAL_YM: "TO_YMINTERVAL({})",
    Kind.INTERVAL_DS: "TO_DSINTERVAL({})",
    Kind.UROWID: "{}",
    Kind.OTHER: "{}",
}
