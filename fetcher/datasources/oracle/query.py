"""The SELECT of one table: quoted names of the catalogue, bound values (spec datasources 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.oracle.errors import (
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    SCHEMA_CHANGED,
    UNSUPPORTED_TYPE,
)
from fetcher.datasources.oracle.filters import predicate_sql
from fetcher.datasources.oracle.names import TableId, is_quotable, quoted
from fetcher.datasources.oracle.schema import Column
from fetcher.datasources.oracle.types import LARGE, UNBOUNDED, ColumnType, Kind
from fetcher.datasources.oracle.values import Binds, NoSuchOperation
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher_engine import SourceFailure, Stage

FETCH_BYTES: Final = 1024 * 1024
MAX_FETCH_ROWS: Final = 1000
LARGE_FETCH_ROWS: Final = 4
"""Rows of one round trip: about a megabyte, and few where each may hold the largest cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """One asked field: the result's key, and what is read for it."""

    field: str
    type: ColumnType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One asked table, ready to be read. ``name`` is what the request calls it."""

    name: str
    selected: tuple[Selected, ...]
    statement: str
    values: tuple[object, ...] = field(repr=False)
    bind_types: tuple[Any, ...]
    fetch_rows: int
    suspect: str | None
    """The one filtered field, where there is one."""


def prepare_table(
    *,
    name: str,
    table: TableId,
    columns: Sequence[Column],
    fields: Sequence[str],
    filters: Mapping[str, object],
    max_cell_bytes: int,
) -> TableQuery:
    """Raise SourceFailure: ``schema changed``, a type that has no text, an unusable filter."""
    found = {asked: _column(name, asked, columns) for asked in (*fields, *filters)}
    if not (is_quotable(table.owner) and is_quotable(table.table)):
        raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
    for asked in fields:
        if found[asked].type.kind is Kind.REFUSED:
            raise SourceFailure(Stage.QUERY, UNSUPPORTED_TYPE, table=name, column=asked)
    binds = Binds()
    conditions = _conditions(name, filters, found, binds)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    selected = ", ".join(_selected(found[asked], max_cell_bytes) for asked in fields)
    source = f"{quoted(table.owner)}.{quoted(table.table)}"
    return TableQuery(
        name=name,
        selected=tuple(Selected(field=asked, type=found[asked].type) for asked in fields),
        statement=f"SELECT {selected} FROM {source} t{where}",  # noqa: S608 - quoted names of the catalogue; values are bound
        values=tuple(binds.values),
        bind_types=tuple(binds.types),
        fetch_rows=_fetch_rows([found[asked].type for asked in fields]),
        suspect=next(iter(filters)) if len(filters) == 1 else None,
    )


def _column(name: str, asked: str, columns: Sequence[Column]) -> Column:
    for column in columns:
        if column.name == asked and is_quotable(asked):
            return column
    raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)


def _selected(column: Column, max_cell_bytes: int) -> str:
    expression = column.type.expression(_place(column))
    if column.type.kind not in LARGE:
        return expression
    length = f"DBMS_LOB.GETLENGTH({expression})"
    return f"CASE WHEN {length} <= {max_cell_bytes} THEN {expression} END, {length}"


def _conditions(
    name: str, filters: Mapping[str, object], found: Mapping[str, Column], binds: Binds
) -> list[str]:
    conditions = []
    for asked in sorted(filters):
        column = found[asked]
        reason = INVALID_FILTER
        try:
            predicates = predicates_of(filters[asked])
            reason = INVALID_FILTER_VALUE
            conditions += [
                predicate_sql(_place(column), column.type, each, binds) for each in predicates
            ]
        except (MalformedCondition, NoSuchOperation):
            failure: str | None = INVALID_FILTER
        except UnfitValue:
            failure = reason
        else:
            failure = None
        if failure is not None:
            raise SourceFailure(Stage.QUERY, failure, table=name, column=asked)
    return conditions


def _place(column: Column) -> str:
    return f"t.{quoted(column.name)}"


def _fetch_rows(types: Sequence[ColumnType]) -> int:
    if any(each.kind in UNBOUNDED for each in types):
        return LARGE_FETCH_ROWS
    row_bytes = sum(max(each.max_bytes, 32) for each in types)
    return max(LARGE_FETCH_ROWS, min(MAX_FETCH_ROWS, FETCH_BYTES // row_bytes))
