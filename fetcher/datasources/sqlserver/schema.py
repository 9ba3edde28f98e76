"""The catalogue: which tables a session sees, with their columns, in one statement.

``sys`` shows what the user has some permission on. Views only where the operator wants them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import SQL_SERVER
from fetcher.datasources.row_estimates import FoundTable, row_estimate
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.names import TableNames
from fetcher.datasources.sqlserver.session import Session
from fetcher.datasources.sqlserver.types import Column
from fetcher.datasources.table_names import TableId
from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, Stage, TableSnapshot

_CATALOGUE: Final = """SELECT s.name, o.name, c.name, b.name, t.name,
 CONVERT(int, c.max_length), CONVERT(int, c.is_nullable),
 CASE WHEN k.column_id IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(128), c.collation_name),
 {estimate}
FROM sys.objects AS o
JOIN sys.schemas AS s ON s.schema_id = o.schema_id
JOIN sys.columns AS c ON c.object_id = o.object_id
JOIN sys.types AS t ON t.user_type_id = c.user_type_id
LEFT JOIN sys.types AS b ON b.user_type_id = c.system_type_id
LEFT JOIN (SELECT x.object_id, x.column_id FROM sys.indexes AS i
 JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id
 WHERE i.is_primary_key = 1) AS k ON k.object_id = c.object_id AND k.column_id = c.column_id
{statistics}WHERE o.type IN ({kinds}) AND {scope}
ORDER BY s.name, o.name, c.column_id"""

_ESTIMATE: Final = "r.row_count"
_STATISTICS: Final = """LEFT JOIN (SELECT p.object_id, SUM(p.rows) AS row_count
 FROM sys.partitions AS p WHERE p.index_id IN (0, 1) GROUP BY p.object_id) AS r
 ON r.object_id = o.object_id
"""
"""Of the heap or the clustered index: what the server keeps up to date anyway."""

_NO_ESTIMATE: Final = "CONVERT(bigint, NULL)"

_IGNORING_CASE: Final = "COLLATE Latin1_General_100_CI_AS"

Found = FoundTable[Column]
Tables = Mapping[TableId, Found]


async def read_snapshot(
    session: Session, names: TableNames, config_name: str, *, views: bool
) -> SchemaSnapshot:
    """The source's tables: those that were asked for, else all of the default schema."""
    named: dict[str, Found] = {}
    ambiguous = []
    if names.requested is None:
        listed = await _read(session, schema_statement(names.listed_schema, views=views))
        named = {names.displayed(table): found for table, found in listed.items()}
    else:
        for name, meant in (await _meant(session, names, names.requested, views=views)).items():
            if len(meant) == 1:
                named[name] = next(iter(meant.values()))
            else:
                shown = tuple(sorted(map(names.displayed, meant)))
                ambiguous.append(AmbiguousTable(name, shown))
    tables = tuple(
        TableSnapshot(
            name,
            tuple(column.name for column in found.columns),
            tuple(
                ColumnSnapshot(
                    column.name,
                    column.type,
                    nullable=column.is_nullable,
                    primary_key=column.is_primary_key,
                )
                for column in found.columns
            ),
            found.estimated_rows,
        )
        for name, found in named.items()
    )
    return prepared_snapshot(
        SchemaSnapshot(config_name, tables, ignores_case=True, ambiguous=tuple(ambiguous)),
        config_name=config_name,
        source=SourceNames(SQL_SERVER),
        filter_system=True,
        normalize=False,
    )


async def read_tables(
    session: Session, names: TableNames, wanted: Iterable[str], *, views: bool
) -> dict[str, tuple[TableId, tuple[Column, ...]]]:
    """Of the wanted tables those that exist: what they are in the catalogue, and their columns."""
    meant = await _meant(session, names, wanted, views=views)
    return {
        name: (table, found.columns)
        for name, each in meant.items()
        if len(each) == 1
        for table, found in each.items()
    }


async def _meant(
    session: Session, names: TableNames, wanted: Iterable[str], *, views: bool
) -> dict[str, Tables]:
    """By wanted name the table of that name, else those that differ from it in case alone."""
    wanted = list(wanted)
    tables = sorted({pair.table for name in wanted for pair in names.candidates(name)})
    found = await _read(session, tables_statement(tables, views=views)) if tables else {}
    meant = {name: names.meant(name, found) for name in wanted}
    return {name: {t: found[t] for t in each} for name, each in meant.items() if each}


def schema_statement(schema: str, *, views: bool) -> Statement:
    """All tables of one schema; of their rows nothing is asked."""
    return Statement(
        _CATALOGUE.format(
            kinds=_kinds(views), scope="s.name = @P1", estimate=_NO_ESTIMATE, statistics=""
        ),
        (schema,),
    )


def tables_statement(tables: Sequence[str], *, views: bool) -> Statement:
    """The tables of these names in any schema and any case: which are meant is decided here."""
    places = ", ".join(f"@P{number}" for number in range(1, len(tables) + 1))
    scope = f"o.name {_IGNORING_CASE} IN ({places})"
    return Statement(
        _CATALOGUE.format(
            kinds=_kinds(views), scope=scope, estimate=_ESTIMATE, statistics=_STATISTICS
        ),
        tuple(tables),
    )


def _kinds(views: bool) -> str:
    return "'U', 'V'" if views else "'U'"


async def _read(session: Session, statement: Statement) -> Tables:
    rows = await session.rows(statement, Stage.SCHEMA)
    # catalogues of thousands of tables are sorted out beside the loop
    return await session.run(lambda: tables_in(rows))


def tables_in(rows: Iterable[Sequence[Any]]) -> Tables:
    """The catalogue's rows by table, columns in their order."""
    tables: dict[TableId, list[Column]] = {}
    estimates: dict[TableId, object] = {}
    for schema, table, name, base, type_name, size, nullable, key, collation, estimate in rows:
        estimates[TableId(schema, table)] = estimate
        tables.setdefault(TableId(schema, table), []).append(
            Column(
                name=name,
                base_type=base,
                type=type_name,
                max_bytes=size,
                is_nullable=bool(nullable),
                is_primary_key=bool(key),
                collation=collation,
            )
        )
    return {
        table: FoundTable(tuple(columns), row_estimate(estimates[table]))
        for table, columns in tables.items()
    }
