"""The statement of one table: its rows as JSON texts, rendered by one expression a column.

A row with a cell that is too large never travels: in its place comes a marker with the sizes of its
cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fetcher.datasources.mysql.errors import (
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    SCHEMA_CHANGED,
)
from fetcher.datasources.mysql.filters import NoSuchFilter, UnfitValue, predicate_sql
from fetcher.datasources.mysql.names import identifier
from fetcher.datasources.mysql.schema import Column, Table
from fetcher.datasources.mysql.types import (
    ColumnType,
    Kind,
    Renderer,
    bytes_literal,
    column_type,
)
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher_engine import SourceFailure, Stage, encode_text

MARKER: Final = b"\x01!"
"""Begins what stands in place of a row with a cell that is too large; a row begins with ``{``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One asked table, ready to be read. ``name`` is what the request calls it."""

    name: str
    fields: tuple[str, ...]
    statement: str = field(repr=False)
    filtered: tuple[str, ...]
    unchecked_json: tuple[str, ...] = ()
    """Columns that hold what the server takes for JSON and others do not, such as ``1.``."""


def table_query(
    *,
    name: str,
    table: Table | None,
    fields: Sequence[str],
    filters: Mapping[str, object],
    renderer: Renderer,
    max_cell_bytes: int,
    is_mariadb: bool,
) -> TableQuery:
    """Raise SourceFailure: ``schema changed``, or a filter that cannot be applied."""
    columns = {column.name: column for column in (table.columns if table is not None else ())}
    if table is None or {*fields, *filters} - set(columns):
        raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
    conditions = []
    for one in sorted(filters):
        conditions += _conditions(name, columns[one], filters[one], is_mariadb=is_mariadb)
    read = [columns[one] for one in fields]
    types = {column.name: _type(column, is_mariadb=is_mariadb) for column in read}
    row = _row(read, renderer, max_cell_bytes, is_mariadb=is_mariadb)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    source = identifier(table.schema, table.name)
    return TableQuery(
        name=name,
        fields=tuple(fields),
        statement=f"SELECT {row} FROM {source} AS t{where}",  # noqa: S608 - quoted names, digits
        filtered=tuple(sorted(filters)),
        unchecked_json=tuple(
            one for one, of in types.items() if of.kind is Kind.JSON and not of.is_native_json
        ),
    )


def _type(column: Column, *, is_mariadb: bool) -> ColumnType:
    return column_type(
        data_type=column.data_type,
        declared=column.declared,
        charset=column.charset,
        collation=column.collation,
        is_mariadb=is_mariadb,
    )


def _conditions(name: str, column: Column, condition: object, *, is_mariadb: bool) -> list[str]:
    of = _type(column, is_mariadb=is_mariadb)
    place = identifier("t", column.name)
    reason = INVALID_FILTER
    try:
        predicates = predicates_of(condition)
        reason = INVALID_FILTER_VALUE
        return [predicate_sql(place, of, each) for each in predicates]
    except NoSuchFilter:
        reason = INVALID_FILTER
    except (MalformedCondition, UnfitValue):
        pass
    raise SourceFailure(Stage.QUERY, reason, table=name, column=column.name)


def _row(
    columns: Sequence[Column], renderer: Renderer, max_cell_bytes: int, *, is_mariadb: bool
) -> str:
    """The row's text; where that is NULL, its marker.

    No cell is NULL, so the text is only where a function found its result larger than
    ``max_allowed_packet``, or where a stored value alone is too large: it is not rendered then.
    """
    parts = []
    for number, column in enumerate(columns):
        key = f"{',' if number else '{'}{encode_text(column.name)}:"
        cell = renderer.json_text(
            identifier("t", column.name), _type(column, is_mariadb=is_mariadb)
        )
        parts += [bytes_literal(key.encode()), cell]
    text = f"CONCAT({', '.join(parts)}, {bytes_literal(b'}')})"
    sizes = [f"IFNULL(LENGTH({identifier('t', column.name)}), 0)" for column in columns]
    too_large = [
        f"{size} > {max_cell_bytes}"
        for size, column in zip(sizes, columns, strict=True)
        if column.max_bytes > max_cell_bytes
    ]
    if too_large:
        text = f"IF({' OR '.join(too_large)}, NULL, {text})"
    return f"IFNULL({text}, CONCAT({bytes_literal(MARKER)}, CONCAT_WS(',', {', '.join(sizes)})))"
