"""The SELECT of one table, with its filters (spec datasources 8, 9).

SQLite types values, not columns, so values are bound as what they are: a number as a number, a text
as a text; SQLite's own affinity rules then compare ``5`` with ``'5'`` as the column's declaration
says. Dates are texts and compare as texts. ``LIKE`` ignores the case of ASCII letters, as SQLite's
does.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    MalformedCondition,
    Membership,
    NullCheck,
    Predicate,
    predicates_of,
)
from fetcher.domain.json_values import JsonScalar
from fetcher_engine import ColumnSnapshot, SourceFailure, Stage

Bound: TypeAlias = str | int | float | bytes

_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_INT64: Final = 2**63


class UnfitValue(Exception):
    """The value cannot be one of the column's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    name: str
    fields: tuple[str, ...]
    statement: str
    values: tuple[Bound, ...] = field(repr=False)


def prepare_table(
    name: str,
    table: str,
    columns: Mapping[str, ColumnSnapshot],
    fields: Sequence[str],
    filters: Mapping[str, object],
) -> TableQuery:
    """The statement for ``table``, which the request calls ``name``.

    Raise SourceFailure for a filter that cannot be applied.
    """
    conditions: list[str] = []
    values: list[Bound] = []
    for column in sorted(filters):
        reason = "invalid_filter"
        try:
            predicates = predicates_of(filters[column])
            reason = "invalid_filter_value"
            for predicate in predicates:
                text, bound = _condition(columns[column], predicate)
                conditions.append(text)
                values += bound
        except (MalformedCondition, UnfitValue):
            failed = True
        else:
            failed = False
        if failed:
            raise SourceFailure(Stage.QUERY, reason, table=name, column=column)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # with the table's alias before it, a column that is gone is an error and never a text
    selected = ", ".join(_place(column) for column in fields)
    statement = f"SELECT {selected} FROM main.{_quoted(table)} AS t{where}"  # noqa: S608 - quoted names of the catalogue; values are bound
    return TableQuery(name=name, fields=tuple(fields), statement=statement, values=tuple(values))


def _condition(column: ColumnSnapshot, predicate: Predicate) -> tuple[str, list[Bound]]:
    place = _place(column.name)
    match predicate:
        case NullCheck(is_null):
            return f"{place} IS {'' if is_null else 'NOT '}NULL", []
        case Membership():
            return _membership(place, column, predicate)
        case Comparison(sign, value):
            return f"{place} {sign} ?", [_bound(column, value)]
        case Between(low, high):
            last = _day_after(column, high)
            sign, end = ("<=", _bound(column, high)) if last is None else ("<", last)
            return f"({place} >= ? AND {place} {sign} ?)", [_bound(column, low), end]
        case Like(patterns):
            # a chain of ORs would be deeper than SQLite's expressions may be
            marks = ", ".join(["(?)"] * len(patterns))
            match_one = f"{place} LIKE p.column1 ESCAPE '\\'"
            text = f"EXISTS (SELECT 1 FROM (VALUES {marks}) AS p WHERE {match_one})"  # noqa: S608 - marks only
            return text, [_bound_text(pattern) for pattern in patterns]


def _membership(place: str, column: ColumnSnapshot, wanted: Membership) -> tuple[str, list[Bound]]:
    values = [_bound(column, value) for value in wanted.values]
    parts = []
    if values:
        marks = ", ".join("?" * len(values))
        parts.append(f"{place} {'NOT IN' if wanted.negated else 'IN'} ({marks})")
    if wanted.with_null:
        parts.append(f"{place} IS {'NOT ' if wanted.negated else ''}NULL")
    if not parts:
        return ("1" if wanted.negated else "0"), []
    return f"({(' AND ' if wanted.negated else ' OR ').join(parts)})", values


def _bound(column: ColumnSnapshot, value: JsonScalar) -> Bound:
    """Numbers beyond 64 bits and fractions become REAL, which is what SQLite itself keeps."""
    match value:
        case bool():
            return int(value)
        case int():
            return value if -_INT64 <= value < _INT64 else _real(value)
        case Decimal():
            return _real(value)
        case str():
            return _blob(value) if "BLOB" in column.type.upper() else _bound_text(value)
    raise UnfitValue


def _real(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        pass
    raise UnfitValue


def _bound_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        return text
    raise UnfitValue


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise UnfitValue


def _day_after(column: ColumnSnapshot, high: JsonScalar) -> str | None:
    """For a date-time column a date as the upper end includes its whole day (spec 9.5)."""
    declared = column.type.upper()
    if not ("DATETIME" in declared or "TIMESTAMP" in declared):
        return None
    if not (isinstance(high, str) and _DATE_ONLY.fullmatch(high)):
        return None
    try:
        return (date.fromisoformat(high) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        pass
    raise UnfitValue


def _place(column: str) -> str:
    return f"t.{_quoted(column)}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
