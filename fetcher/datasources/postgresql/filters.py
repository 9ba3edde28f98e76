"""Filters as SQL: predicates with values converted by their column's type (spec datasources 9).

Values become typed Python values here and are quoted by psycopg alone.
"""

import base64
import binascii
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from psycopg import sql

from fetcher.datasources.postgresql.types import ColumnType, Kind
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    Membership,
    NullCheck,
    Predicate,
)
from fetcher.domain.json_values import JsonScalar

_DATE_TIMES: Final = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
_TEXTS: Final = frozenset({Kind.TEXT, Kind.PADDED})
_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_TOO_FINE: Final = re.compile(r"\.\d{6}\d*[1-9]\d*(?=[^\d]|$)", re.ASCII)
"""More than microseconds: Python would cut them off, the server would round."""


class UnfitValue(Exception):
    """The value cannot be one of the column's. It says nothing about the value."""


def predicate_sql(
    column: sql.Composable, column_type: ColumnType, predicate: Predicate
) -> sql.Composable:
    """One predicate as a condition; raise UnfitValue."""
    match predicate:
        case NullCheck(is_null):
            template = "{} IS NULL" if is_null else "{} IS NOT NULL"
            return sql.SQL(template).format(column)
        case Membership():
            return _membership(column, column_type, predicate)
        case Comparison(sign, value):
            return _compare(column, sign, _literal(column_type, value))
        case Between(low, high):
            return _between(column, column_type, low, high)
        case Like(patterns):
            return _like(column, column_type, patterns)


def is_judged_here(column_type: ColumnType) -> bool:
    """Whether an unfit value is found before the server sees it."""
    return column_type.kind in _CONVERTERS


def _membership(
    column: sql.Composable, column_type: ColumnType, wanted: Membership
) -> sql.Composable:
    values = [_literal(column_type, value) for value in wanted.values]
    parts: list[sql.Composable] = []
    if values:
        template = "{} NOT IN ({})" if wanted.negated else "{} IN ({})"
        parts.append(sql.SQL(template).format(column, sql.SQL(", ").join(values)))
    if wanted.with_null:
        template = "{} IS NOT NULL" if wanted.negated else "{} IS NULL"
        parts.append(sql.SQL(template).format(column))
    if not parts:
        return sql.SQL("true" if wanted.negated else "false")
    joined = sql.SQL(" AND " if wanted.negated else " OR ").join(parts)
    return sql.SQL("({})").format(joined)


def _between(
    column: sql.Composable, column_type: ColumnType, low: JsonScalar, high: JsonScalar
) -> sql.Composable:
    lower = _compare(column, ">=", _literal(column_type, low))
    if column_type.kind in _DATE_TIMES and isinstance(high, str) and _DATE_ONLY.fullmatch(high):
        upper = _compare(column, "<", _day_after(column_type, high))
    else:
        upper = _compare(column, "<=", _literal(column_type, high))
    return sql.SQL("({} AND {})").format(lower, upper)


def _day_after(column_type: ColumnType, day: str) -> sql.Composable:
    ended = _date(day)
    if ended == date.max:
        # the next day is past what Python's calendar holds
        return _cast("10000-01-01 00:00:00+00", column_type)
    return _literal(column_type, (ended + timedelta(days=1)).isoformat())


def _like(
    column: sql.Composable, column_type: ColumnType, patterns: tuple[str, ...]
) -> sql.Composable:
    if column_type.kind not in _TEXTS:
        raise UnfitValue
    parts = [
        sql.SQL("{} LIKE {} ESCAPE '\\'").format(column, sql.Literal(_text(pattern)))
        for pattern in patterns
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))


def _compare(column: sql.Composable, sign: str, value: sql.Composable) -> sql.Composable:
    return sql.SQL("{} {} {}").format(column, sql.SQL(sign), value)


# --- values ---------------------------------------------------------------------------------


def _literal(column_type: ColumnType, value: JsonScalar) -> sql.Composable:
    convert = _CONVERTERS.get(column_type.kind, _own_text)
    converted = convert(value)
    literal = sql.Literal(converted)
    if column_type.kind is Kind.REAL:
        # a float8 would never equal the column's nearest float4
        return sql.SQL("{}::float4").format(literal)
    if column_type.kind is Kind.DOUBLE:
        return sql.SQL("{}::float8").format(literal)
    return literal


def _number(value: JsonScalar) -> int | Decimal:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise UnfitValue
        value = Decimal(value.strip())
        if value == value.to_integral_value() and abs(value.adjusted()) < 40:
            return int(value)
    return value


def _float(value: JsonScalar) -> int | Decimal | str:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return value
    return _number(value)


def _numeric(value: JsonScalar) -> int | Decimal:
    if isinstance(value, str) and value == "NaN":
        return Decimal(value)
    return _number(value)


_TRUTHS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def _boolean(value: JsonScalar) -> bool:
    if isinstance(value, bool):
        return value
    truth = _TRUTHS.get(str(value).strip().lower()) if isinstance(value, int | str) else None
    if truth is None:
        raise UnfitValue
    return truth


def _text(value: JsonScalar) -> str:
    """A text; a number as it was written. NUL and half characters cannot be in any column."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    text = value if isinstance(value, str) else str(value)
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise UnfitValue
    return text


def _own_text(value: JsonScalar) -> str:
    """For the server to read as the column's type: a wrong text fails before the first row."""
    return ("true" if value else "false") if isinstance(value, bool) else _text(value)


def _uuid(value: JsonScalar) -> uuid.UUID:
    try:
        if isinstance(value, str):
            return uuid.UUID(value.strip())
    except ValueError:
        pass
    raise UnfitValue


def _bytes(value: JsonScalar) -> bytes:
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise UnfitValue


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    raise UnfitValue


def _instant(value: JsonScalar) -> datetime:
    """RFC 3339 or a date alone, which means its midnight; without a zone it is UTC."""
    if not isinstance(value, str) or len(value) < 10 or _TOO_FINE.search(value):
        raise UnfitValue
    text = value.strip()
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise UnfitValue


def _wall_time(value: JsonScalar) -> datetime:
    return _instant(value).replace(tzinfo=None)


def _date_or_moment(value: JsonScalar) -> date | datetime:
    """Dates compare as dates; a time of day beside one is not cut off."""
    if isinstance(value, str) and _DATE_ONLY.fullmatch(value.strip()):
        return _date(value.strip())
    moment = _wall_time(value)
    midnight = (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0)
    return moment.date() if midnight else moment


_INFINITIES: Final = frozenset({"infinity", "-infinity"})


def _or_infinity(
    convert: Callable[[JsonScalar], date | datetime],
) -> Callable[[JsonScalar], date | datetime | str]:
    def converted(value: JsonScalar) -> date | datetime | str:
        if isinstance(value, str) and value.strip().lower() in _INFINITIES:
            return value.strip().lower()
        return convert(value)

    return converted


def _cast(text: str, column_type: ColumnType) -> sql.Composable:
    template = "{}::timestamptz" if column_type.kind is Kind.TIMESTAMPTZ else "{}::timestamp"
    return sql.SQL(template).format(sql.Literal(text))


_CONVERTERS: Final[Mapping[Kind, Callable[[JsonScalar], object]]] = {
    Kind.INTEGER: _number,
    Kind.BIGINT: _number,
    Kind.NUMERIC: _numeric,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.BOOLEAN: _boolean,
    Kind.TEXT: _text,
    Kind.PADDED: _text,
    Kind.UUID: _uuid,
    Kind.BYTES: _bytes,
    Kind.DATE: _or_infinity(_date_or_moment),
    Kind.TIMESTAMP: _or_infinity(_wall_time),
    Kind.TIMESTAMPTZ: _or_infinity(_instant),
}
