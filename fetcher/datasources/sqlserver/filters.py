"""Filters as T-SQL: predicates over columns, every value a parameter (spec datasources 9)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

from fetcher.datasources.filter_values import UnfitValue, day_of, is_day, text_of
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    Membership,
    NullCheck,
    Predicate,
)
from fetcher.datasources.sqlserver.link import Bound
from fetcher.datasources.sqlserver.types import Column, Kind
from fetcher.datasources.sqlserver.values import Converted, converted
from fetcher.domain.json_values import JsonScalar

MAX_PARAMETERS: Final = 2000
"""The server takes 2100; a list that would pass this goes as one JSON text (OPENJSON)."""

_MAX_PATTERN_CHARS: Final = 4000
_MOMENTS: Final = frozenset({Kind.DATETIME, Kind.DATETIME2, Kind.OFFSET})
_COLLATION: Final = re.compile(r"\w+", re.ASCII)
_IN_PATTERN: Final = re.compile(r"\\(.)|\[", re.DOTALL)


@dataclass(slots=True)
class Values:
    """What is bound to one statement, in order. Long lists need a server that reads JSON."""

    takes_long_lists: bool = True
    bound: list[Bound] = field(default_factory=list, repr=False)

    def add(self, value: Bound) -> str:
        self.bound.append(value)
        return f"@P{len(self.bound)}"

    def has_room_for(self, count: int) -> bool:
        return len(self.bound) + count <= MAX_PARAMETERS


def predicate_sql(place: str, column: Column, predicate: Predicate, values: Values) -> str:
    """One predicate as a condition on the column at ``place``; raise UnfitValue."""
    match predicate:
        case NullCheck(is_null):
            return f"{place} IS NULL" if is_null else f"{place} IS NOT NULL"
        case Membership():
            return _membership(place, column, predicate, values)
        case Comparison(sign, value):
            return _compare(place, sign, converted(column, value), values)
        case Between(low, high):
            return _between(place, column, low, high, values)
        case Like(patterns):
            return _like(place, column, patterns, values)


def _membership(place: str, column: Column, wanted: Membership, values: Values) -> str:
    groups: dict[tuple[str, str], list[Bound]] = {}
    for value in wanted.values:
        each = converted(column, value)
        groups.setdefault((each.column, each.template), []).append(each.value)
    word = "NOT IN" if wanted.negated else "IN"
    parts = [
        f"{own.format(place)} {word} ({_list(column, template, bound, values)})"
        for (own, template), bound in groups.items()
    ]
    if wanted.with_null:
        parts.append(f"{place} IS NOT NULL" if wanted.negated else f"{place} IS NULL")
    if not parts:
        return "1 = 1" if wanted.negated else "1 = 0"
    return f"({(' AND ' if wanted.negated else ' OR ').join(parts)})"


def _list(column: Column, template: str, bound: Sequence[Bound], values: Values) -> str:
    if values.has_room_for(len(bound)):
        return ", ".join(template.format(values.add(value)) for value in bound)
    if not values.takes_long_lists:
        raise UnfitValue
    texts = json.dumps([value if isinstance(value, str) else repr(value) for value in bound])
    item = "j.value"
    if template == "{0}" and column.kind is Kind.FLOAT:
        template = "CONVERT(float, {0})"
    if column.collation is not None and _COLLATION.fullmatch(column.collation):
        # a column's and a function's collation would be in conflict
        item = f"j.value COLLATE {column.collation}"
    return f"SELECT {template.format(item)} FROM OPENJSON({values.add(texts)}) AS j"  # noqa: S608 - templates of ours


def _between(place: str, column: Column, low: JsonScalar, high: JsonScalar, values: Values) -> str:
    lower = _compare(place, ">=", converted(column, low), values)
    if column.kind in _MOMENTS and is_day(high):
        ended = day_of(high)
        if ended == date.max:
            # nothing is later
            return f"({lower})"
        following = (ended + timedelta(days=1)).isoformat()
        return f"({lower} AND {_compare(place, '<', converted(column, following), values)})"
    return f"({lower} AND {_compare(place, '<=', converted(column, high), values)})"


def _like(place: str, column: Column, patterns: Sequence[str], values: Values) -> str:
    if column.kind not in (Kind.TEXT, Kind.LONG_TEXT):
        raise UnfitValue
    parts = []
    for pattern in patterns:
        own = like_pattern(text_of(pattern))
        if len(own) > _MAX_PATTERN_CHARS:
            raise UnfitValue
        parts.append(f"{place} LIKE {values.add(own)} ESCAPE N'\\'")
    return f"({' OR '.join(parts)})"


def like_pattern(pattern: str) -> str:
    """``%``, ``_`` and ``\\`` mean what they mean everywhere; a bracket is only a bracket."""

    def own(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped is None:
            return "\\["
        return f"\\{escaped}" if escaped in "%_[\\" else escaped

    return _IN_PATTERN.sub(own, pattern)


def _compare(place: str, sign: str, wanted: Converted, values: Values) -> str:
    own = wanted.column.format(place)
    return f"{own} {sign} {wanted.template.format(values.add(wanted.value))}"
