"""The SELECT of one table, with its filters (spec datasources 8, 9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher.datasources.sqlite.filters import Bound, condition_of
from fetcher_engine import ColumnSnapshot, SourceFailure, Stage


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
                text, bound = condition_of(_place(column), columns[column], predicate)
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


def _place(column: str) -> str:
    return f"t.{_quoted(column)}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
