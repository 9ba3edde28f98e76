"""Filters as SQLite's conditions (spec datasources 9).

SQLite types values, not columns, but a column is declared, and a filter's value must be one of the
declared type as anywhere else. Date-times are texts in as many forms as there are programs that
write them: both sides of a comparison are brought into one form, in UTC. Under a declaration that
says nothing values are bound as what they are. ``LIKE`` ignores the case of ASCII letters.
"""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from fetcher.datasources.filter_values import (
    INT64,
    Moment,
    UnfitValue,
    bytes_of,
    day_of,
    double_of,
    integer_of,
    is_between_doubles,
    is_day,
    moment_of,
    number_of,
    text_of,
    truth_of,
    whole_bound,
)
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    Membership,
    NullCheck,
    Predicate,
)
from fetcher.datasources.sqlite.types import Kind, kind_of
from fetcher.domain.json_values import JsonScalar
from fetcher_engine import ColumnSnapshot

Bound: TypeAlias = str | int | float | bytes
Condition: TypeAlias = tuple[str, list[Bound]]

_MOMENT_FUNCTION: Final = "fetcher_moment"
_MAX_DIGITS: Final = 30
"""Of a second: a text has as many as somebody wrote."""
_MAX_PATTERN_BYTES: Final = 1000
"""Of the 50 000 that SQLite takes."""

_MOMENTS: Final = frozenset({Kind.DAY, Kind.MOMENT})


def add_functions(connection: sqlite3.Connection) -> None:
    """What conditions call besides SQLite's own functions."""
    connection.create_function(_MOMENT_FUNCTION, 1, _moment_text, deterministic=True)


def condition_of(place: str, column: ColumnSnapshot, predicate: Predicate) -> Condition:
    """One predicate over the column at ``place``, with what is bound; raise UnfitValue."""
    kind = kind_of(column.type)
    match predicate:
        case NullCheck(is_null):
            return f"{place} IS {'' if is_null else 'NOT '}NULL", []
        case Membership():
            return _membership(place, kind, predicate)
        case Comparison(sign, value):
            return _compared(place, kind, sign, value)
        case Between(low, high):
            lower, bound = _compared(place, kind, ">=", low)
            upper, end = _upper_end(place, kind, high)
            return f"({lower} AND {upper})", [*bound, *end]
        case Like(patterns):
            if kind not in (Kind.TEXT, Kind.ANY):
                raise UnfitValue
            # a chain of ORs would be deeper than SQLite's expressions may be
            marks = ", ".join(["(?)"] * len(patterns))
            match_one = f"{place} LIKE p.column1 ESCAPE '\\'"
            text = f"EXISTS (SELECT 1 FROM (VALUES {marks}) AS p WHERE {match_one})"  # noqa: S608 - marks only
            return text, [_pattern(pattern) for pattern in patterns]


def _pattern(written: str) -> str:
    """For SQLite a pattern ends at its first NUL, whatever stands behind it; and no deadline and no
    cancel stops the search for one, which takes as many steps as text and pattern multiplied."""
    pattern = text_of(written)
    if "\0" in pattern or len(pattern.encode()) > _MAX_PATTERN_BYTES:
        raise UnfitValue
    return pattern


def _membership(place: str, kind: Kind, wanted: Membership) -> Condition:
    by_side: dict[str, list[Bound]] = {}
    for value in wanted.values:
        if kind in _NUMERIC and is_between_doubles(number_of(value)):
            continue  # equal to nothing
        by_side.setdefault(_side(place, kind, value), []).append(_bound(kind, value))
    parts = []
    bound: list[Bound] = []
    for side, values in by_side.items():
        marks = ", ".join("?" * len(values))
        parts.append(f"{side} {'NOT IN' if wanted.negated else 'IN'} ({marks})")
        bound += values
    if wanted.values and not parts:
        parts.append(f"{place} IS NOT NULL" if wanted.negated else "0")
    if wanted.with_null:
        parts.append(f"{place} IS {'NOT ' if wanted.negated else ''}NULL")
    if not parts:
        return ("1" if wanted.negated else "0"), []
    return f"({(' AND ' if wanted.negated else ' OR ').join(parts)})", bound


def _compared(place: str, kind: Kind, sign: str, value: JsonScalar) -> Condition:
    return f"{_side(place, kind, value)} {sign} ?", [_bound(kind, value, sign)]


def _upper_end(place: str, kind: Kind, high: JsonScalar) -> Condition:
    """For a date-time column a date includes its whole day (spec 9.5)."""
    if kind is not Kind.MOMENT or not is_day(high):
        return _compared(place, kind, "<=", high)
    ended = day_of(high)
    if ended == date.max:
        return f"{place} IS NOT NULL", []
    return _compared(place, kind, "<", (ended + timedelta(days=1)).isoformat())


def _side(place: str, kind: Kind, value: JsonScalar) -> str:
    """The column, as what it is compared with: moments may be stored as texts or as numbers."""
    if kind not in _MOMENTS:
        return place
    if isinstance(value, str):
        return f"{_MOMENT_FUNCTION}({place})"
    return f"CASE WHEN typeof({place}) IN ('integer', 'real') THEN {place} END"


# --- values ---------------------------------------------------------------------------------


def _bound(kind: Kind, value: JsonScalar, sign: str = "=") -> Bound:
    if kind in _MOMENTS and isinstance(value, str):
        return _written(moment_of(value, digits=_MAX_DIGITS))
    return _CONVERTERS[kind](value, sign)


def _written(moment: Moment) -> str:
    text = moment.second.isoformat()
    return f"{text}.{moment.fraction}" if moment.fraction else text


def _moment_text(stored: object) -> str | None:
    """A stored text in the form that values are bound in; what is no moment stays as it is."""
    if not isinstance(stored, str):
        return None
    try:
        return _written(moment_of(stored, digits=_MAX_DIGITS))
    except UnfitValue:
        return stored


def _integer(value: JsonScalar, sign: str) -> Bound:
    return _real_or_integer(whole_bound(sign, integer_of(value, INT64)))


def _number(value: JsonScalar, sign: str) -> Bound:
    return _real_or_integer(whole_bound(sign, number_of(value)))


def _real_or_integer(number: int | Decimal) -> Bound:
    """Fractions, and what is beyond 64 bits, become REAL, which is what SQLite itself keeps."""
    if isinstance(number, int) and number in INT64:
        return number
    return double_of(number)


def _as_it_is(value: JsonScalar, sign: str) -> Bound:
    if isinstance(value, bool):
        return int(value)
    return text_of(value) if isinstance(value, str) else _number(value, sign)


_NUMERIC: Final = frozenset({Kind.INTEGER, Kind.NUMBER})

_CONVERTERS: Final[Mapping[Kind, Callable[[JsonScalar, str], Bound]]] = {
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.FLOAT: lambda value, _: double_of(value),
    Kind.BOOLEAN: lambda value, _: int(truth_of(value)),
    Kind.TEXT: lambda value, _: text_of(value),
    Kind.BYTES: lambda value, _: bytes_of(value),
    Kind.DAY: _number,
    Kind.MOMENT: _number,
    Kind.ANY: _as_it_is,
}
