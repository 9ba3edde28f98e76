"""Filter values as what Oracle is sent: by the column's type, never through its session formats.

Impossible conversions raise :class:`UnfitValue`, which says nothing about the value.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import oracledb

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

_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?\s*([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
_ROWID: Final = re.compile(r"[A-Za-z0-9+/]{18}", re.ASCII)
_MAX_DIGITS: Final = 38
_NUMBER_EXPONENTS: Final = range(-130, 126)

_TIMESTAMP: Final = "TO_TIMESTAMP({0}, 'YYYY-MM-DD HH24:MI:SS.FF9')"
_TIMESTAMP_TZ: Final = "TO_TIMESTAMP_TZ({0}, 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM')"


class UnfitValue(Exception):
    """The value cannot be one of the column's."""


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
        return _moment(column, _instant(value), binds)
    if kind in _CONVERTERS:
        convert, db_type = _CONVERTERS[kind]
        return binds.add(convert(column, value), db_type)
    if kind in _TEMPLATES:
        return _TEMPLATES[kind].format(_text(Kind.TEXT, value, binds))
    if kind in TEXTS:
        return _text(kind, value, binds)
    raise NoSuchOperation


def is_date_only(value: JsonScalar) -> bool:
    return isinstance(value, str) and _DATE_ONLY.fullmatch(value.strip()) is not None


def day_after(column: ColumnType, day: JsonScalar, binds: Binds) -> str | None:
    """Midnight after the day; None: the calendar ends with it."""
    ended, _ = _instant(day)
    if ended.date() == date.max:
        return None
    return _moment(column, (ended + timedelta(days=1), 0), binds)


def _number(column: ColumnType, value: JsonScalar) -> int | Decimal:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    if isinstance(value, bool):
        if (column.precision, column.scale) == (1, 0):
            return int(value)
        raise UnfitValue
    if value is None:
        raise UnfitValue
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise UnfitValue
        value = Decimal(value.strip())
    exact = Decimal(value)
    if not exact.is_finite():
        raise UnfitValue
    digits = "".join(map(str, exact.as_tuple().digits)).strip("0")
    if len(digits) > _MAX_DIGITS or (digits and exact.adjusted() not in _NUMBER_EXPONENTS):
        raise UnfitValue
    return int(exact) if exact == exact.to_integral_value() else exact


def _float(_column: ColumnType, value: JsonScalar) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise UnfitValue
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if found in (float("inf"), float("-inf")):
        raise UnfitValue
    return found


_TRUTHS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def _boolean(_column: ColumnType, value: JsonScalar) -> bool:
    if isinstance(value, bool):
        return value
    truth = _TRUTHS.get(str(value).strip().lower()) if isinstance(value, int | str) else None
    if truth is None:
        raise UnfitValue
    return truth


def _text(kind: Kind, value: JsonScalar, binds: Binds) -> str:
    """A text; a number as it was written. The empty text is Oracle's NULL: it compares with
    nothing."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    text = value if isinstance(value, str) else str(value)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_BOUND_BYTES or "\0" in text:
        raise UnfitValue
    return binds.add(text, TEXTS[kind])


def like_pattern(kind: Kind, pattern: str, binds: Binds) -> str:
    """Oracle lets its escape stand before ``%``, ``_`` and itself alone (ORA-01424)."""
    return _text(kind, re.sub(r"\\(?![%_\\])|(\\.)", r"\1", pattern, flags=re.DOTALL), binds)


def _bytes(_column: ColumnType, value: JsonScalar) -> bytes:
    try:
        found = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        found = b""
    if not found:
        raise UnfitValue
    return found


def _rowid(_column: ColumnType, value: JsonScalar) -> str:
    """The server converts it, and fails on what is none."""
    if isinstance(value, str) and _ROWID.fullmatch(value):
        return value
    raise UnfitValue


def _instant(value: JsonScalar) -> tuple[datetime, int]:
    """UTC to the second, and nanoseconds; a date alone is its midnight, no zone means UTC."""
    if not isinstance(value, str):
        raise UnfitValue
    text = value.strip()
    found = _MOMENT.fullmatch(f"{text}T00:00:00" if _DATE_ONLY.fullmatch(text) else text)
    if found is None:
        raise UnfitValue
    day, clock, fraction, zone = found.groups()
    fraction = (fraction or "").rstrip("0")
    if len(fraction) > 9:
        raise UnfitValue
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    else:
        return moment.replace(tzinfo=None), int(fraction.ljust(9, "0"))
    raise UnfitValue


def _moment(column: ColumnType, instant: tuple[datetime, int], binds: Binds) -> str:
    """A ``DATE`` has seconds: with a fraction the comparison is that of timestamps."""
    moment, nanoseconds = instant
    if column.kind is Kind.DATE and not nanoseconds:
        return binds.add(moment, oracledb.DB_TYPE_DATE)
    text = f"{moment.isoformat(' ')}.{nanoseconds:09}"
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
