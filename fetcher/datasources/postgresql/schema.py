"""The catalogue: which tables a session sees, with their columns, in one statement.

What is visible equals ``information_schema`` (ordinary and partitioned tables on which the user has
some privilege; views and foreign tables where the operator wants them; no temporary tables), read
from ``pg_catalog`` because that takes one statement for all tables (spec datasources 6.3).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from psycopg import sql
from psycopg.pq.abc import PGresult

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import POSTGRESQL
from fetcher.datasources.postgresql.names import TableNames
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.row_estimates import FoundTable, row_estimate
from fetcher.datasources.table_names import TableId
from fetcher.datasources.threads import ThreadKind, in_thread
from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, Stage, TableSnapshot

_PARSERS: Final = ThreadKind(2)
"""Catalogues of thousands of tables are parsed beside the loop."""

_CATALOGUE: Final = """SELECT n.nspname, c.relname, json_agg(json_build_array(a.attname,
 format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, coalesce(a.attnum = ANY (i.indkey), false))
 ORDER BY a.attnum), {estimate}
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relkind = ANY ({kinds}) AND c.relpersistence <> 't' AND {scope}
AND (pg_has_role(c.relowner, 'USAGE')
 OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'))
GROUP BY c.oid, n.nspname, c.relname"""


_ESTIMATE: Final = sql.SQL(
    "max(CASE WHEN c.relkind <> 'v' AND (c.relpages > 0"
    " OR current_setting('server_version_num')::int >= 140000) THEN c.reltuples END)"
)
"""As of the last VACUUM or ANALYZE. Before version 14 a table that had none looks like an empty
one; since then it has -1."""

_NO_ESTIMATE: Final = sql.SQL("NULL")

Columns = tuple[ColumnSnapshot, ...]
Found = FoundTable[ColumnSnapshot]


_TABLES: Final = ["r", "p"]
_VIEWS: Final = ["v", "m", "f"]
"""``pg_class.relkind``: views, materialized views, foreign tables."""


class Catalogue:
    """What a session sees of the names of one source."""

    def __init__(self, session: Session, names: TableNames, *, include_views: bool) -> None:
        self._session = session
        self._parsers = session.threads.of(_PARSERS)
        self._names = names
        self._kinds = _TABLES + _VIEWS if include_views else _TABLES

    async def snapshot(self, config_name: str) -> SchemaSnapshot:
        """The source's tables: those that were asked for, else all of the default schema.

        A name that several tables differ from in case alone is told as ambiguous.
        """
        names = self._names
        ambiguous = []
        if names.requested is None:
            scope = sql.SQL("n.nspname = {}").format(sql.Literal(names.listed_schema))
            listed = await self._read(scope, _NO_ESTIMATE)
            named = {names.displayed(table): found for table, found in listed.items()}
        else:
            named = {}
            for name, meant in (await self._meant(names.requested)).items():
                if len(meant) == 1:
                    named[name] = next(iter(meant.values()))
                else:
                    shown = tuple(sorted(map(names.displayed, meant)))
                    ambiguous.append(AmbiguousTable(name, shown))
        tables = tuple(
            TableSnapshot(
                name,
                tuple(column.name for column in found.columns),
                found.columns,
                found.estimated_rows,
            )
            for name, found in named.items()
        )
        return prepared_snapshot(
            SchemaSnapshot(config_name, tables, ignores_case=True, ambiguous=tuple(ambiguous)),
            config_name=config_name,
            source=SourceNames(POSTGRESQL),
            filter_system=True,
            normalize=False,
        )

    async def tables(self, wanted: Iterable[str]) -> dict[str, tuple[TableId, Columns]]:
        """Of the wanted tables those that exist: what they are in the catalogue, their columns."""
        meant = await self._meant(wanted)
        return {
            name: (table, found.columns)
            for name, each in meant.items()
            if len(each) == 1
            for table, found in each.items()
        }

    async def _meant(self, wanted: Iterable[str]) -> dict[str, dict[TableId, Found]]:
        """By wanted name the table of that name, else those that differ from it in case alone."""
        wanted = list(wanted)
        pairs = sorted({table for name in wanted for table in self._names.candidates(name)})
        if not pairs:
            return {}
        scope = sql.SQL(
            "(lower(n.nspname), lower(c.relname)) IN"
            " (SELECT lower(s), lower(t) FROM unnest({}::text[], {}::text[]) AS p(s, t))"
        ).format(
            sql.Literal([pair.schema for pair in pairs]),
            sql.Literal([pair.table for pair in pairs]),
        )
        found = await self._read(scope, _ESTIMATE)
        meant = {name: self._names.meant(name, found) for name in wanted}
        return {name: {t: found[t] for t in each} for name, each in meant.items() if each}

    async def _read(
        self, scope: sql.Composable, estimate: sql.Composable
    ) -> Mapping[TableId, Found]:
        kinds = sql.SQL('{}::"char"[]').format(sql.Literal(self._kinds))
        statement = sql.SQL(_CATALOGUE).format(kinds=kinds, scope=scope, estimate=estimate)
        result = await self._session.execute(statement, Stage.SCHEMA)
        return await in_thread(self._parsers, _parsed, result)


def _parsed(result: PGresult) -> Mapping[TableId, Found]:
    tables = {}
    # of thousands of tables most columns are like another: the garbage collector would stop the
    # process for an object of each
    alike: dict[tuple[str, str, bool, bool], ColumnSnapshot] = {}
    for row in range(result.ntuples):
        schema, table, columns = (
            (result.get_value(row, column) or b"").decode() for column in range(3)
        )
        tables[TableId(schema, table)] = FoundTable(
            tuple(
                alike.get(described) or alike.setdefault(described, _column(*described))
                for described in map(tuple, cast("list[list[Any]]", json.loads(columns)))
            ),
            row_estimate(result.get_value(row, 3)),
        )
    return tables


def _column(name: str, type_name: str, nullable: bool, primary_key: bool) -> ColumnSnapshot:
    return ColumnSnapshot(name, type_name, nullable=nullable, primary_key=primary_key)
