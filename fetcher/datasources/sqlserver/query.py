"""The one SELECT of a table, and what its cells are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher.datasources.sqlserver.errors import INVALID_FILTER, INVALID_FILTER_VALUE
from fetcher.datasources.sqlserver.filters import Values, predicate_sql
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.names import quoted
from fetcher.datasources.sqlserver.types import Column, read_expression
from fetcher.datasources.table_names import TableId
from fetcher_engine import SourceFailure, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One asked table, ready to be read. ``name`` is what the request calls it."""

    name: str
    columns: tuple[Column, ...]
    statement: Statement
    suspect: str | None
    """The one filtered field, where a value that the server refuses can be no other's."""


def prepare_table(
    *,
    name: str,
    table: TableId,
    columns: Mapping[str, Column],
    fields: Sequence[str],
    filters: Mapping[str, object],
    max_cell_bytes: int,
    takes_long_lists: bool,
) -> TableQuery:
    """Raise SourceFailure for a filter that cannot be applied."""
    values = Values(takes_long_lists=takes_long_lists)
    where = _where(name, filters, columns, values)
    cells = ", ".join(
        read_expression(columns[each], quoted("t", each), max_cell_bytes=max_cell_bytes)
        for each in fields
    )
    source = quoted(table.schema, table.table)
    text = f"SELECT {cells} FROM {source} AS [t]"  # noqa: S608 - quoted names, bound values
    return TableQuery(
        name=name,
        columns=tuple(columns[each] for each in fields),
        statement=Statement(f"{text} WHERE {where}" if where else text, tuple(values.bound)),
        suspect=next(iter(filters)) if len(filters) == 1 else None,
    )


def _where(
    name: str, filters: Mapping[str, object], columns: Mapping[str, Column], values: Values
) -> str:
    conditions = []
    for field in sorted(filters):
        reason = INVALID_FILTER
        try:
            predicates = predicates_of(filters[field])
            reason = INVALID_FILTER_VALUE
            place = quoted("t", field)
            conditions += [
                predicate_sql(place, columns[field], each, values) for each in predicates
            ]
        except (MalformedCondition, UnfitValue):
            failed = True
        else:
            failed = False
        if failed:
            raise SourceFailure(Stage.QUERY, reason, table=name, column=field)
    return " AND ".join(conditions)
