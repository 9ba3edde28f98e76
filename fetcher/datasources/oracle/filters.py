"""Filters as SQL with numbered binds (spec datasources 9.2, 9.5).

``''`` is NULL in Oracle: equal to the empty text means ``IS NULL``. Large texts are compared by
``DBMS_LOB.COMPARE``, since no operator takes them.
"""

from typing import Final

from fetcher.datasources.filter_values import day_of, is_day
from fetcher.datasources.oracle.types import ColumnType, Kind
from fetcher.datasources.oracle.values import (
    DATE_TIMES,
    TEXTS,
    Binds,
    NoSuchOperation,
    bound,
    day_after,
    like_pattern,
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

IN_LIST: Final = 1000
"""ORA-01795: no list of expressions may be longer."""

_LARGE_TEXTS: Final = {Kind.CLOB: "TO_CLOB({})", Kind.NCLOB: "TO_NCLOB({})"}


def predicate_sql(place: str, column: ColumnType, predicate: Predicate, binds: Binds) -> str:
    """One predicate as a condition; raise UnfitValue or NoSuchOperation."""
    match predicate:
        case NullCheck(is_null):
            return f"{place} IS {'' if is_null else 'NOT '}NULL"
        case Membership():
            return _membership(place, column, predicate, binds)
        case Comparison(sign, value):
            return _compare(place, column, sign, value, binds)
        case Between(low, high):
            return _between(place, column, low, high, binds)
        case Like(patterns):
            return _like(place, column, patterns, binds)


def _membership(place: str, column: ColumnType, wanted: Membership, binds: Binds) -> str:
    values = [value for value in wanted.values if not (value == "" and _has_empty(column))]
    with_null = wanted.with_null or len(values) < len(wanted.values)
    joiner = " AND " if wanted.negated else " OR "
    if column.kind in _LARGE_TEXTS:
        sign = "<>" if wanted.negated else "="
        parts = [_compare(place, column, sign, value, binds) for value in values]
    else:
        operator = "NOT IN" if wanted.negated else "IN"
        expressions = [bound(column, value, binds) for value in values]
        parts = [
            f"{_compared(place, column)} {operator} ({', '.join(expressions[at : at + IN_LIST])})"
            for at in range(0, len(expressions), IN_LIST)
        ]
    if with_null:
        parts.append(f"{place} IS {'NOT ' if wanted.negated else ''}NULL")
    if not parts:
        return "1 = 1" if wanted.negated else "1 = 0"
    return f"({joiner.join(parts)})"


def _between(
    place: str, column: ColumnType, low: JsonScalar, high: JsonScalar, binds: Binds
) -> str:
    lower = _compare(place, column, ">=", low, binds)
    if column.kind in DATE_TIMES and is_day(high):
        midnight = day_after(column, day_of(high), binds)
        upper = f"{place} < {midnight}" if midnight is not None else f"{place} IS NOT NULL"
    else:
        upper = _compare(place, column, "<=", high, binds)
    return f"({lower} AND {upper})"


def _compare(place: str, column: ColumnType, sign: str, value: JsonScalar, binds: Binds) -> str:
    expression = bound(column, value, binds)
    large = _LARGE_TEXTS.get(column.kind)
    if large is not None:
        return f"DBMS_LOB.COMPARE({place}, {large.format(expression)}) {sign} 0"
    return f"{_compared(place, column)} {sign} {expression}"


def _compared(place: str, column: ColumnType) -> str:
    return column.expression(place) if column.kind is Kind.OTHER else place


def _like(place: str, column: ColumnType, patterns: tuple[str, ...], binds: Binds) -> str:
    if column.kind not in TEXTS:
        raise NoSuchOperation
    parts = [
        f"{place} LIKE {like_pattern(column.kind, pattern, binds)} ESCAPE '\\'"
        if pattern
        else f"{place} IS NULL"
        for pattern in patterns
    ]
    return f"({' OR '.join(parts)})"


def _has_empty(column: ColumnType) -> bool:
    """Whether an empty text is what the column's NULL stands for."""
    return column.kind in TEXTS or column.kind is Kind.RAW
