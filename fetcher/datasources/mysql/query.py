"""The statement of one table: its rows as JSON texts, rendered by one expression a column.

A row with a cell that is too large never travels: in its place comes a marker with the sizes of its
cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.mysql.errors import (
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    SCHEMA_CHANGED,
)
from fetcher.datasources.mysql.fenced_packets import FENCE
from fetcher.datasources.mysql.filters import NoSuchFilter, predicate_sql
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
"""Begins what stands in place of a row with a cell that is too large; a row begins with a fence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One asked table, ready to be read. ``name`` is what the request calls it."""

    name: str
    fields: tuple[str, ...]
    statement: str = field(repr=False)
    filtered: tuple[str, ...]
    unchecked_json: tuple[str, ...] = ()
    """Columns that may hold what is no JSON. A row has fences before and behind each of them, and
    around itself.
    """

    @property
    def fences(self) -> int:
        """How many a row has."""
        return 2 + 2 * len(self.unchecked_json)


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
    row = _row(read, types, renderer, max_cell_bytes)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    source = identifier(table.schema, table.name)
    return TableQuery(
        name=name,
        fields=tuple(fields),
        statement=f"SELECT {row} FROM {source} AS t{where}",  # noqa: S608 - quoted names, digits
        filtered=tuple(sorted(filters)),
        unchecked_json=tuple(one for one, of in types.items() if _is_fenced(of)),
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


def _is_fenced(of: ColumnType) -> bool:
    return of.kind is Kind.JSON and not of.is_native_json


def _row(
    columns: Sequence[Column],
    types: Mapping[str, ColumnType],
    renderer: Renderer,
    max_cell_bytes: int,
) -> str:
    """The row's text; where that is NULL, its marker.

    No cell is NULL, so the text is only where a function found its result larger than
    ``max_allowed_packet``, or where a stored value alone is too large: it is not rendered then.
    """
    parts: list[str] = []
    before = FENCE + b"{"
    for column in columns:
        fence = FENCE if _is_fenced(types[column.name]) else b""
        key = before + f"{encode_text(column.name)}:".encode() + fence
        place = identifier("t", column.name)
        of = types[column.name]
        text = renderer.json_text(place, of, is_nullable=column.nullable)
        # of one that is bytes everything becomes bytes, fences too; literals alone would be
        # made characters of
        parts += [bytes_literal(key) if parts else f"CAST({bytes_literal(key)} AS BINARY)", text]
        before = fence + b","
    text = f"CONCAT({', '.join(parts)}, {bytes_literal(before[:-1] + b'}' + FENCE)})"
    lengths = [f"LENGTH({identifier('t', column.name)})" for column in columns]
    sizes = [f"IFNULL({length}, 0)" for length in lengths]
    too_large = [
        f"{length} > {max_cell_bytes}"
        for length, column in zip(lengths, columns, strict=True)
        if column.max_bytes > max_cell_bytes
    ]
    if too_large:
        text = f"IF({' OR '.join(too_large)}, NULL, {text})"
    return f"IFNULL({text}, CONCAT({bytes_literal(MARKER)}, CONCAT_WS(',', {', '.join(sizes)})))"
