"""The catalogue: which tables a session sees, with their columns, in one statement.

What is visible equals ``information_schema`` (ordinary and partitioned tables on which the user has
some privilege; no views, no foreign and no temporary tables), read from ``pg_catalog`` because that
takes one statement for all tables (spec datasources 6.3).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

import trio
from psycopg import sql
from psycopg.pq.abc import PGresult

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import POSTGRESQL
from fetcher.datasources.postgresql.names import TableId, TableNames
from fetcher.datasources.postgresql.session import Session
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, Stage, TableSnapshot

_PARSERS: Final = trio.CapacityLimiter(2)
"""Catalogues of thousands of tables are parsed beside the loop."""

_CATALOGUE: Final = """SELECT n.nspname, c.relname, json_agg(json_build_array(a.attname,
 format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, coalesce(a.attnum = ANY (i.indkey), false))
 ORDER BY a.attnum)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND {scope}
AND (pg_has_role(c.relowner, 'USAGE')
 OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))
GROUP BY c.oid, n.nspname, c.relname"""


Columns = tuple[ColumnSnapshot, ...]


async def read_snapshot(session: Session, names: TableNames, config_name: str) -> SchemaSnapshot:
    """The source's tables: those that were asked for, else all of the default schema.

    A name that several tables differ from in case alone is not decided here: all of them are told,
    each under its own name.
    """
    if names.requested is None:
        scope = sql.SQL("n.nspname = {}").format(sql.Literal(names.default_schema))
        found = await _read(session, scope)
        named = {names.displayed(table): columns for table, columns in found.items()}
    else:
        named = {}
        for name, meant in (await _meant(session, names, names.requested)).items():
            only = len(meant) == 1
            named |= {name if only else names.displayed(t): c for t, c in meant.items()}
    tables = tuple(
        TableSnapshot(name, tuple(column.name for column in columns), columns)
        for name, columns in named.items()
    )
    return prepared_snapshot(
        SchemaSnapshot(config_name, tables, ignores_case=True),
        config_name=config_name,
        source=SourceNames(POSTGRESQL),
        filter_system=True,
        normalize=False,
    )


async def read_tables(
    session: Session, names: TableNames, wanted: Iterable[str]
) -> dict[str, tuple[TableId, Columns]]:
    """Of the wanted tables those that exist: what they are in the catalogue, and their columns."""
    meant = await _meant(session, names, wanted)
    return {name: next(iter(tables.items())) for name, tables in meant.items() if len(tables) == 1}


async def _meant(
    session: Session, names: TableNames, wanted: Iterable[str]
) -> dict[str, dict[TableId, Columns]]:
    """By wanted name the table of that name, else those that differ from it in case alone."""
    candidates = {name: names.candidates(name) for name in wanted}
    pairs = sorted({table for tables in candidates.values() for table in tables})
    if not pairs:
        return {}
    scope = sql.SQL(
        "(lower(n.nspname), lower(c.relname)) IN"
        " (SELECT lower(s), lower(t) FROM unnest({}::text[], {}::text[]) AS p(s, t))"
    ).format(
        sql.Literal([pair.schema for pair in pairs]), sql.Literal([pair.table for pair in pairs])
    )
    found = await _read(session, scope)
    meant = {name: _first_reading(tables, found) for name, tables in candidates.items()}
    return {name: tables for name, tables in meant.items() if tables}


def _first_reading(
    candidates: Iterable[TableId], found: Mapping[TableId, Columns]
) -> dict[TableId, Columns]:
    exact = next((table for table in candidates if table in found), None)
    if exact is not None:
        return {exact: found[exact]}
    for candidate in candidates:
        if alike := {t: columns for t, columns in found.items() if t.folded == candidate.folded}:
            return alike
    return {}


async def _read(session: Session, scope: sql.Composable) -> Mapping[TableId, Columns]:
    result = await session.execute(sql.SQL(_CATALOGUE).format(scope=scope), Stage.SCHEMA)
    return await trio.to_thread.run_sync(_parsed, result, limiter=_PARSERS)


def _parsed(result: PGresult) -> Mapping[TableId, Columns]:
    tables = {}
    for row in range(result.ntuples):
        schema, table, columns = (
            (result.get_value(row, column) or b"").decode() for column in range(3)
        )
        tables[TableId(schema, table)] = tuple(
            ColumnSnapshot(name, type_name, nullable=nullable, primary_key=primary_key)
            for name, type_name, nullable, primary_key in cast(
                "list[tuple[str, str, bool, bool]]", json.loads(columns)
            )
        )
    return tables
