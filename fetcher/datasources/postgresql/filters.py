"""Filters as SQL: predicates with values converted by their column's type (spec datasources 9).

Values become typed Python values here and are quoted by psycopg alone.
"""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from psycopg import sql

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
_DIGITS: Final = 6
"""Of a second."""


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
    if column_type.kind in _DATE_TIMES and is_day(high):
        upper = _compare(column, "<", _day_after(column_type, high))
    else:
        upper = _compare(column, "<=", _literal(column_type, high))
    return sql.SQL("({} AND {})").format(lower, upper)


def _day_after(column_type: ColumnType, day: JsonScalar) -> sql.Composable:
    ended = day_of(day)
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
        sql.SQL("{} LIKE {} ESCAPE '\\'").format(column, sql.Literal(_text(column_type, pattern)))
        for pattern in patterns
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))


def _compare(column: sql.Composable, sign: str, value: sql.Composable) -> sql.Composable:
    return sql.SQL("{} {} {}").format(column, sql.SQL(sign), value)


# --- values ---------------------------------------------------------------------------------


def _literal(column_type: ColumnType, value: JsonScalar) -> sql.Composable:
    convert = _CONVERTERS.get(column_type.kind, _own_text)
    literal = sql.Literal(convert(column_type, value))
    if column_type.kind is Kind.REAL:
        # a float8 would never equal the column's nearest float4
        return sql.SQL("{}::float4").format(literal)
    if column_type.kind is Kind.DOUBLE:
        return sql.SQL("{}::float8").format(literal)
    return literal


def _integer(column_type: ColumnType, value: JsonScalar) -> int | Decimal:
    return integer_of(value, column_type.held)


def _numeric(_: ColumnType, value: JsonScalar) -> int | Decimal:
    if isinstance(value, str) and value == "NaN":
        return Decimal(value)
    return number_of(value)


def _float(column_type: ColumnType, value: JsonScalar) -> int | Decimal | str:
    """The digits as they were written: the server takes the nearest float."""
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return value
    nearest = double_of(value)
    if column_type.kind is Kind.REAL:
        try:
            struct.pack("<f", nearest)
        except OverflowError:
            nearest = math.inf
    number = number_of(value)
    # what is nearer to nothing than to any float would be an error of the server's
    if math.isinf(nearest) or (number and abs(nearest) < _LEAST[column_type.kind]):
        raise UnfitValue
    return number


_LEAST: Final = {Kind.REAL: 2.0**-149, Kind.DOUBLE: 2.0**-1074}
"""The smallest positive values."""


def _boolean(_: ColumnType, value: JsonScalar) -> bool:
    return truth_of(value)


def _text(_: ColumnType, value: JsonScalar) -> str:
    """NUL cannot be in any column."""
    text = text_of(value)
    if "\0" in text:
        raise UnfitValue
    return text


def _own_text(column_type: ColumnType, value: JsonScalar) -> str:
    """For the server to read as the column's type: a wrong text fails before the first row."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(column_type, value)


def _uuid(_: ColumnType, value: JsonScalar) -> UUID:
    return uuid_of(value)


def _bytes(_: ColumnType, value: JsonScalar) -> bytes:
    return bytes_of(value)


def _moment(column_type: ColumnType, value: JsonScalar) -> date | datetime | str:
    """Without a zone for the columns that have none: their wall times are UTC."""
    if isinstance(value, str) and value.strip().lower() in ("infinity", "-infinity"):
        return value.strip().lower()
    if column_type.kind is Kind.DATE:
        found = day_or_moment(value, digits=_DIGITS)
        return found if isinstance(found, date) else found.wall
    wall = moment_of(value, digits=_DIGITS).wall
    return wall.replace(tzinfo=UTC) if column_type.kind is Kind.TIMESTAMPTZ else wall


def _cast(text: str, column_type: ColumnType) -> sql.Composable:
    template = "{}::timestamptz" if column_type.kind is Kind.TIMESTAMPTZ else "{}::timestamp"
    return sql.SQL(template).format(sql.Literal(text))


_CONVERTERS: Final[Mapping[Kind, Callable[[ColumnType, JsonScalar], object]]] = {
    Kind.INTEGER: _integer,
    Kind.OID: _integer,
    Kind.BIGINT: _integer,
    Kind.NUMERIC: _numeric,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.BOOLEAN: _boolean,
    Kind.TEXT: _text,
    Kind.PADDED: _text,
    Kind.UUID: _uuid,
    Kind.BYTES: _bytes,
    Kind.DATE: _moment,
    Kind.TIMESTAMP: _moment,
    Kind.TIMESTAMPTZ: _moment,
}
