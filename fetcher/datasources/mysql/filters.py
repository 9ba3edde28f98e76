"""Filters as SQL: predicates with values converted by their column's type (spec datasources 9).

Values become typed Python values here, and then digits: numbers in decimal, texts and bytes in
hexadecimal, so that nothing in a value and no setting of the server can end a literal early.
"""

import base64
import binascii
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from fetcher.datasources.mysql.types import (
    ColumnType,
    Kind,
    bytes_literal,
    text_literal,
)
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    Membership,
    NullCheck,
    Predicate,
)
from fetcher.domain.json_values import JsonScalar

_DATE_TIMES: Final = frozenset({Kind.DATETIME, Kind.TIMESTAMP})
_TEXTS: Final = frozenset({Kind.TEXT, Kind.NAMED})
_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NO_DATE: Final = re.compile(r"\d{4}-(00-\d\d|\d\d-00)( 00:00:00(\.0+)?)?", re.ASCII)
"""Zero and partial dates, as the database writes them."""
_CLOCK: Final = re.compile(r"-?\d{1,3}:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_TOO_FINE: Final = re.compile(r"\.\d{6}\d*[1-9]\d*(?=[^\d]|$)", re.ASCII)
"""More than microseconds: Python would cut them off, the server would round."""

_MAX_DIGITS, _MAX_SCALE = 65, 30
"""Of an exact number in MySQL."""

_ESCAPE: Final = r"ESCAPE '\\'"
"""One backslash: the session's ``sql_mode`` lets it escape itself."""

_LONGEST_CLOCK: Final = 838
"""Hours of a ``time``."""


class UnfitValue(Exception):
    """The value cannot be one of the column's. It says nothing about the value."""


class NoSuchFilter(Exception):
    """Columns of this type are compared with nothing but NULL."""


def predicate_sql(column: str, column_type: ColumnType, predicate: Predicate) -> str:
    """One predicate as a condition; raise UnfitValue or NoSuchFilter."""
    match predicate:
        case NullCheck(is_null):
            return f"{column} IS NULL" if is_null else f"{column} IS NOT NULL"
        case Membership():
            return _membership(column, column_type, predicate)
        case Comparison(sign, value):
            return _compare(column, column_type, sign, _literal(column_type, value))
        case Between(low, high):
            return _between(column, column_type, low, high)
        case Like(patterns):
            return _like(column, column_type, patterns)


def _membership(column: str, column_type: ColumnType, wanted: Membership) -> str:
    values = [_literal(column_type, value) for value in wanted.values]
    parts = []
    if values:
        place = _place(column, column_type, values)
        parts.append(f"{place} {'NOT IN' if wanted.negated else 'IN'} ({', '.join(values)})")
    if wanted.with_null:
        parts.append(f"{column} IS {'NOT ' if wanted.negated else ''}NULL")
    if not parts:
        return "TRUE" if wanted.negated else "FALSE"
    return f"({(' AND ' if wanted.negated else ' OR ').join(parts)})"


def _between(column: str, column_type: ColumnType, low: JsonScalar, high: JsonScalar) -> str:
    lower = _compare(column, column_type, ">=", _literal(column_type, low))
    if column_type.kind in _DATE_TIMES and isinstance(high, str) and _DATE_ONLY.fullmatch(high):
        day = _date(high)
        if day == date.max:
            # the next day is past every calendar
            upper = f"{column} <= TIMESTAMP'9999-12-31 23:59:59.999999'"
        else:
            upper = f"{column} < TIMESTAMP'{day + timedelta(days=1)} 00:00:00'"
    else:
        upper = _compare(column, column_type, "<=", _literal(column_type, high))
    return f"({lower} AND {upper})"


def _like(column: str, column_type: ColumnType, patterns: tuple[str, ...]) -> str:
    if column_type.kind not in _TEXTS:
        raise UnfitValue
    literals = [_text_sql(pattern) for pattern in patterns]
    place = _place(column, column_type, literals)
    parts = [f"{place} LIKE {each} {_ESCAPE}" for each in literals]
    return f"({' OR '.join(parts)})"


def _compare(column: str, column_type: ColumnType, sign: str, literal: str) -> str:
    return f"{_place(column, column_type, [literal])} {sign} {literal}"


def _place(column: str, column_type: ColumnType, literals: list[str]) -> str:
    """The column in a charset that holds the texts it is compared with.

    A text that its own charset cannot hold would be an error. The case rule stays that of its
    collation.
    """
    if column_type.kind not in _TEXTS or column_type.is_plain or all(map(_is_ascii, literals)):
        return column
    collation = " COLLATE utf8mb4_bin" if column_type.is_sensitive else ""
    return f"CONVERT({column} USING utf8mb4){collation}"


def _is_ascii(literal: str) -> bool:
    return bytes.fromhex(literal.partition("X'")[2].rstrip("'")).isascii()


# --- values ---------------------------------------------------------------------------------


def _literal(column_type: ColumnType, value: JsonScalar) -> str:
    convert = _CONVERTERS.get(column_type.kind)
    if convert is None:
        raise NoSuchFilter
    return convert(value)


def _number(value: JsonScalar) -> int | Decimal:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise UnfitValue
        return Decimal(value.strip())
    return value


def _number_sql(value: JsonScalar) -> str:
    """An exact number where MySQL has such; one beyond is beyond every exact column."""
    number = Decimal(_number(value))
    if not number.is_finite() or not -300 < number.adjusted() < 300:
        raise UnfitValue
    exponent = number.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > _MAX_SCALE:
        raise UnfitValue
    if number.adjusted() + 1 > _MAX_DIGITS:
        return f"{'-' if number < 0 else ''}1e{number.adjusted()}"
    return f"{number:f}"


def _flag_sql(value: JsonScalar) -> str:
    return str(int(value)) if isinstance(value, bool) else _number_sql(value)


def _wide(value: JsonScalar) -> float:
    try:
        number = float(_number(value))
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise UnfitValue
    return number


def _double_sql(value: JsonScalar) -> str:
    text = repr(_wide(value))
    return text if "e" in text else f"{text}e0"


def _float_sql(value: JsonScalar) -> str:
    """The column's nearest value: 0.1 is not the double of that name."""
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", _wide(value)))
    except OverflowError:
        narrow = None
    if narrow is None:
        raise UnfitValue
    return _double_sql(Decimal(narrow))


def _text_sql(value: JsonScalar) -> str:
    """A text; a number as it was written. Half characters cannot be in any column."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    text = value if isinstance(value, str) else str(value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UnfitValue
    return text_literal(text)


def _bytes_sql(value: JsonScalar) -> str:
    try:
        if isinstance(value, str):
            return bytes_literal(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        pass
    raise UnfitValue


def _uuid_sql(value: JsonScalar) -> str:
    try:
        if isinstance(value, str):
            return text_literal(str(uuid.UUID(value.strip())))
    except ValueError:
        pass
    raise UnfitValue


def _clock_sql(value: JsonScalar) -> str:
    if not isinstance(value, str) or not _CLOCK.fullmatch(value):
        raise UnfitValue
    if int(value.lstrip("-").partition(":")[0]) > _LONGEST_CLOCK:
        raise UnfitValue
    return f"TIME'{value}'"


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    raise UnfitValue


def _wall_time(value: JsonScalar) -> datetime:
    """RFC 3339 or a date alone, which means its midnight, in UTC; without a zone it is UTC."""
    if not isinstance(value, str) or len(value) < 10 or _TOO_FINE.search(value):
        raise UnfitValue
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise UnfitValue from None
    return moment


def _moment_sql(value: JsonScalar) -> str:
    if isinstance(value, str) and _NO_DATE.fullmatch(value):
        return text_literal(value)
    return f"TIMESTAMP'{_wall_time(value).isoformat(' ')}'"


def _day_sql(value: JsonScalar) -> str:
    """Dates compare as dates; a time of day beside one is not cut off."""
    if isinstance(value, str) and _DATE_ONLY.fullmatch(value) and not _NO_DATE.fullmatch(value):
        return f"DATE'{_date(value)}'"
    return _moment_sql(value)


_CONVERTERS: Final[Mapping[Kind, Callable[[JsonScalar], str]]] = {
    Kind.INTEGER: _number_sql,
    Kind.FLAG: _flag_sql,
    Kind.BIGINT: _number_sql,
    Kind.BITS: _number_sql,
    Kind.DECIMAL: _number_sql,
    Kind.FLOAT: _float_sql,
    Kind.DOUBLE: _double_sql,
    Kind.TEXT: _text_sql,
    Kind.NAMED: _text_sql,
    Kind.BYTES: _bytes_sql,
    Kind.UUID: _uuid_sql,
    Kind.DATE: _day_sql,
    Kind.DATETIME: _moment_sql,
    Kind.TIMESTAMP: _moment_sql,
    Kind.CLOCK: _clock_sql,
    Kind.OTHER: _text_sql,
}
"""Documents and geometries are in none of them."""
