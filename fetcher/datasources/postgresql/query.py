"""The statements of one table: what its columns are, and the COPY that renders its rows.

Every row is one JSON text built on the server by one expression a column. A row whose cell is too
large never travels: in its place comes a marker with the sizes of its cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from psycopg import sql

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.postgresql.encodings import CODECS
from fetcher.datasources.postgresql.errors import (
    INVALID_FILTER,
    INVALID_FILTER_VALUE,
    SCHEMA_CHANGED,
)
from fetcher.datasources.postgresql.filters import is_judged_here, predicate_sql
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.postgresql.types import (
    ColumnType,
    Renderer,
    base_type,
    catalogued_type,
)
from fetcher.datasources.predicates import MalformedCondition, predicates_of
from fetcher.datasources.table_names import TableId
from fetcher_engine import SourceFailure, Stage, encode_text

MARKER: Final = b"\x01!"
"""Begins what stands in place of a row with a cell that is too large; a row begins with ``{``."""

UTF_8: Final = "utf-8"

_COPY: Final = sql.SQL("COPY ({}) TO STDOUT (FORMAT binary)")
"""Binary: the cheapest for the server, and its rows need no unescaping."""

_TYPES: Final = """WITH RECURSIVE base(oid, elem) AS (
 SELECT oid, typelem FROM pg_catalog.pg_type WHERE oid = ANY ({oids}::oid[])
 UNION ALL
 SELECT b.oid, t.typbasetype FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.elem
 WHERE t.typtype = 'd')
SELECT t.oid, t.typcategory, t.typname,
 (SELECT b.elem FROM base b LEFT JOIN pg_catalog.pg_type e ON e.oid = b.elem
  WHERE b.oid = t.oid AND coalesce(e.typtype, 'b') <> 'd' LIMIT 1)
FROM pg_catalog.pg_type t WHERE t.oid = ANY ({oids}::oid[])"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """One asked table, ready to be read. ``name`` is what the request calls it."""

    name: str
    fields: tuple[str, ...]
    copy: bytes = field(repr=False)
    stored: bytes | None = field(default=None, repr=False)
    """The same, with its texts in ``codec``: as they are stored, valid or not, where the server
    would refuse to send them."""
    codec: str = UTF_8
    suspect: str | None
    """The one filtered field whose values only the server can judge, where there is one."""


async def prepare_table(
    session: Session,
    *,
    name: str,
    table: TableId,
    fields: Sequence[str],
    filters: Mapping[str, object],
    renderer: Renderer,
    max_cell_bytes: int,
) -> TableQuery:
    """Lock the table against changes of its form, learn its types, build its statement.

    The lock is the one that reading takes anyway, held to the end of the transaction. Raise
    SourceFailure: ``schema changed``, or a filter that cannot be applied.
    """
    types = await _column_types(session, name, table, [*fields, *filters])
    where = _where(name, filters, types)
    source = sql.SQL("FROM {} AS t{}").format(
        sql.Identifier(table.schema, table.table),
        sql.SQL(" WHERE {}").format(where) if where is not None else sql.SQL(""),
    )
    rows = _rows(fields, types, source, renderer, max_cell_bytes)
    encoding = session.server_encoding
    codec = CODECS.get(encoding)
    unjudged = [column for column in filters if not is_judged_here(types[column])]
    suspects = unjudged or list(filters)
    return TableQuery(
        name=name,
        fields=tuple(fields),
        copy=session.quoted(_COPY.format(rows)),
        stored=session.quoted(_COPY.format(_unconverted(rows, encoding))) if codec else None,
        codec=codec or UTF_8,
        suspect=suspects[0] if len(suspects) == 1 else None,
    )


async def _column_types(
    session: Session, name: str, table: TableId, columns: Sequence[str]
) -> Mapping[str, ColumnType]:
    """Domains come as their base types: the server resolves them in a row's description."""
    statement = sql.SQL("SELECT {} FROM {} AS t LIMIT 0").format(
        sql.SQL(", ").join(sql.Identifier("t", column) for column in columns),
        sql.Identifier(table.schema, table.table),
    )
    described = await session.execute(statement, Stage.QUERY, table=name)
    if described.nfields != len(columns):
        raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
    oids = [described.ftype(number) for number in range(described.nfields)]
    known = {oid: found for oid in oids if (found := base_type(oid)) is not None}
    unknown = sorted(set(oids) - set(known))
    if unknown:
        known.update(await _catalogued(session, unknown, name))
    return {column: known[oid] for column, oid in zip(columns, oids, strict=True)}


async def _catalogued(session: Session, oids: Sequence[int], name: str) -> Mapping[int, ColumnType]:
    statement = sql.SQL(_TYPES).format(oids=sql.Literal(list(oids)))
    result = await session.execute(statement, Stage.SCHEMA, table=name)
    rows = [
        [(result.get_value(row, column) or b"0").decode() for column in range(4)]
        for row in range(result.ntuples)
    ]
    types = {
        int(oid): catalogued_type(category=category, element_oid=int(element), name=type_name)
        for oid, category, type_name, element in rows
    }
    if set(types) != set(oids):
        raise SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=name)
    return types


def _where(
    name: str, filters: Mapping[str, object], types: Mapping[str, ColumnType]
) -> sql.Composable | None:
    conditions = []
    for column in sorted(filters):
        reason = INVALID_FILTER
        try:
            predicates = predicates_of(filters[column])
            reason = INVALID_FILTER_VALUE
            place = sql.Identifier("t", column)
            conditions += [predicate_sql(place, types[column], each) for each in predicates]
        except (MalformedCondition, UnfitValue):
            failed = True
        else:
            failed = False
        if failed:
            raise SourceFailure(Stage.QUERY, reason, table=name, column=column)
    return sql.SQL(" AND ").join(conditions) if conditions else None


def _rows(
    fields: Sequence[str],
    types: Mapping[str, ColumnType],
    source: sql.Composable,
    renderer: Renderer,
    max_cell_bytes: int,
) -> sql.Composable:
    """The rows as one column ``j``.

    The inner SELECT is fenced (OFFSET 0), so that a row is rendered once and its size is known;
    the cells are rendered again only where the whole row is larger than one cell may be.
    """
    inner = [renderer.json_text(sql.Identifier("t", name), types[name]) for name in fields]
    outer = [
        renderer.json_text(sql.Identifier("r", f"c{number}"), types[name])
        for number, name in enumerate(fields)
    ]
    columns = [
        sql.SQL("{} AS {}").format(sql.Identifier("t", name), sql.Identifier(f"c{number}"))
        for number, name in enumerate(fields)
    ]
    sizes = [sql.SQL("octet_length({})").format(cell) for cell in outer]
    return sql.SQL(
        "SELECT CASE WHEN octet_length(r.j) <= {limit} OR greatest({sizes}) <= {limit}"
        " THEN r.j ELSE chr(1) || '!' || concat_ws(',', {sizes}) END AS j"
        " FROM (SELECT {row} AS j, {columns} {source} OFFSET 0) r"
    ).format(
        limit=sql.Literal(max_cell_bytes),
        sizes=sql.SQL(", ").join(sizes),
        row=_row(fields, inner),
        columns=sql.SQL(", ").join(columns),
        source=source,
    )


def _unconverted(rows: sql.Composable, encoding: str) -> sql.Composable:
    """As bytes, which the server sends as they are. The statement itself stays in UTF-8: with
    another client encoding the server would read its names and values in that."""
    return sql.SQL("SELECT convert_to(s.j, {}) FROM ({}) s").format(sql.Literal(encoding), rows)


def _row(fields: Sequence[str], cells: Sequence[sql.Composable]) -> sql.Composable:
    parts: list[sql.Composable] = []
    for number, (name, cell) in enumerate(zip(fields, cells, strict=True)):
        parts += [sql.Literal(f"{',' if number else '{'}{encode_text(name)}:"), cell]
    return sql.SQL(" || ").join([*parts, sql.Literal("}")])
