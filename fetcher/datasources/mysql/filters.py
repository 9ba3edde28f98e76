"""Filters as SQL: predicates with values converted by their column's type (spec datasources 9).

Values become typed Python values here, and then digits: numbers in decimal, texts and bytes in
hexadecimal, so that nothing in a value and no setting of the server can end a literal early.
"""

import re
import struct
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from fetcher.datasources.filter_values import (
    UnfitValue,
    bytes_of,
    day_of,
    day_or_moment,
    double_of,
    integer_of,
    is_day,
    moment_of,
    number_of,
    text_of,
    truth_of,
    uuid_of,
)
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
_NO_DATE: Final = re.compile(r"\d{4}-(00-\d\d|\d\d-00)( 00:00:00(\.0+)?)?", re.ASCII)
"""Zero and partial dates, as the database writes them."""
_CLOCK: Final = re.compile(r"-?\d{1,3}:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?", re.ASCII)
_DIGITS: Final = 6
"""Of a second."""

_MAX_DIGITS, _MAX_SCALE = 65, 30
"""Of an exact number in MySQL."""

_ESCAPE: Final = r"ESCAPE '\\'"
"""One backslash: the session's ``sql_mode`` lets it escape itself."""

_LONGEST_CLOCK: Final = 838
"""Hours of a ``time``."""


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
    if column_type.kind in _DATE_TIMES and is_day(high):
        day = day_of(high)
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
    literals = [text_literal(text_of(pattern)) for pattern in patterns]
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
    return convert(column_type, value)


def _integer_sql(column_type: ColumnType, value: JsonScalar) -> str:
    return _exact(integer_of(value, column_type.held))


def _number_sql(_: ColumnType, value: JsonScalar) -> str:
    return _exact(number_of(value))


def _exact(value: int | Decimal) -> str:
    """An exact number where MySQL has such; one beyond is beyond every exact column."""
    number = Decimal(value)
    if not -300 < number.adjusted() < 300:
        raise UnfitValue
    fraction = f"{number:f}".partition(".")[2].rstrip("0")
    if len(fraction) > _MAX_SCALE:
        raise UnfitValue
    whole = max(number.adjusted() + 1, 0)
    if whole > _MAX_DIGITS:
        # a column's largest, as a double, is 1e65
        return f"{'-' if number < 0 else ''}1e{max(number.adjusted(), _MAX_DIGITS + 1)}"
    if whole + len(fraction) > _MAX_DIGITS:
        # the server would cut off what is behind the point
        raise UnfitValue
    return f"{number:f}"


def _flag_sql(column_type: ColumnType, value: JsonScalar) -> str:
    """A boolean by its words too; any other number that a ``tinyint`` holds is one."""
    if isinstance(value, bool) or (isinstance(value, str) and value.strip().isalpha()):
        return str(int(truth_of(value)))
    return _integer_sql(column_type, value)


def _double_sql(_: ColumnType, value: JsonScalar) -> str:
    return _wide(double_of(value))


def _wide(number: float) -> str:
    text = repr(number)
    return text if "e" in text else f"{text}e0"


def _float_sql(_: ColumnType, value: JsonScalar) -> str:
    """The column's nearest value: 0.1 is not the double of that name."""
    try:
        # of the standard's form: the machine's own lets what is too large be infinite
        (narrow,) = struct.unpack("<f", struct.pack("<f", double_of(value)))
    except OverflowError:
        narrow = None
    if narrow is None:
        raise UnfitValue
    return _wide(narrow)


def _text_sql(_: ColumnType, value: JsonScalar) -> str:
    return text_literal(text_of(value))


def _bytes_sql(_: ColumnType, value: JsonScalar) -> str:
    return bytes_literal(bytes_of(value))


def _uuid_sql(_: ColumnType, value: JsonScalar) -> str:
    return text_literal(str(uuid_of(value)))


def _clock_sql(_: ColumnType, value: JsonScalar) -> str:
    if not isinstance(value, str) or not _CLOCK.fullmatch(value):
        raise UnfitValue
    if int(value.lstrip("-").partition(":")[0]) > _LONGEST_CLOCK:
        raise UnfitValue
    return f"TIME'{value}'"


def _moment_sql(column_type: ColumnType, value: JsonScalar) -> str:
    """Dates compare as dates; a time of day beside one is not cut off."""
    if isinstance(value, str) and _NO_DATE.fullmatch(value):
        return text_literal(value)
    if column_type.kind is Kind.DATE:
        found = day_or_moment(value, digits=_DIGITS)
        if isinstance(found, date):
            return f"DATE'{found}'"
    return f"TIMESTAMP'{moment_of(value, digits=_DIGITS).wall.isoformat(' ')}'"


_CONVERTERS: Final[Mapping[Kind, Callable[[ColumnType, JsonScalar], str]]] = {
    Kind.INTEGER: _integer_sql,
    Kind.FLAG: _flag_sql,
    Kind.BIGINT: _integer_sql,
    Kind.BITS: _integer_sql,
    Kind.DECIMAL: _number_sql,
    Kind.FLOAT: _float_sql,
    Kind.DOUBLE: _double_sql,
    Kind.TEXT: _text_sql,
    Kind.NAMED: _text_sql,
    Kind.BYTES: _bytes_sql,
    Kind.UUID: _uuid_sql,
    Kind.DATE: _moment_sql,
    Kind.DATETIME: _moment_sql,
    Kind.TIMESTAMP: _moment_sql,
    Kind.CLOCK: _clock_sql,
    Kind.OTHER: _text_sql,
}
"""Documents and geometries are in none of them."""
