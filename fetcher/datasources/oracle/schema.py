"""The catalogue: which tables a session sees, with their columns, in two statements.

``ALL_TABLES`` lists what the user may read: ordinary, partitioned, index-organized and global
temporary tables; views only where the operator wants them, no synonyms (spec datasources 6.3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import ORACLE
from fetcher.datasources.oracle.names import TableId, TableNames
from fetcher.datasources.oracle.session import Session
from fetcher.datasources.oracle.types import ColumnType, column_type
from fetcher.datasources.row_estimates import FoundTable, row_estimate
from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, Stage, TableSnapshot

COLUMNS: Final = """SELECT c.owner, c.table_name, c.column_name, c.data_type, c.data_type_owner,
 c.data_length, c.data_precision, c.data_scale, c.nullable, t.num_rows
FROM (SELECT owner, table_name, num_rows FROM all_tables
 WHERE nested = 'NO' AND dropped = 'NO'{views}) t
JOIN all_tab_columns c ON c.owner = t.owner AND c.table_name = t.table_name
WHERE t.owner IN ({owners})
ORDER BY c.owner, c.table_name, c.column_id"""

VIEWS: Final = " UNION ALL SELECT owner, view_name, NULL FROM all_views"

KEYS: Final = """SELECT k.owner, k.table_name, k.column_name
FROM all_constraints n
JOIN all_cons_columns k ON k.owner = n.owner AND k.constraint_name = n.constraint_name
 AND k.table_name = n.table_name
WHERE n.constraint_type = 'P' AND n.owner IN ({owners})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as the catalogue spells it."""

    name: str
    type: ColumnType
    is_nullable: bool
    is_key: bool


Found = FoundTable[Column]
Catalogue = Mapping[TableId, Found]


async def read_snapshot(
    session: Session, names: TableNames, config_name: str, *, include_views: bool
) -> SchemaSnapshot:
    """The source's tables: those that were asked for, else all of the default schema.

    A name that several tables differ from in case alone is told as ambiguous.
    """
    found = await read_catalogue(session, names, names.requested, include_views=include_views)
    ambiguous = []
    named: dict[str, Found] = {}
    if names.requested is None:
        named = {names.displayed(table, session.user): found[table] for table in found}
    else:
        for name in names.requested:
            meant = names.meant(name, found, session.user)
            if len(meant) == 1:
                named[name] = found[meant[0]]
            elif meant:
                shown = tuple(sorted(names.displayed(table, session.user) for table in meant))
                ambiguous.append(AmbiguousTable(name, shown))
    tables = tuple(_table(names, name, table) for name, table in named.items())
    return prepared_snapshot(
        SchemaSnapshot(config_name, tables, ignores_case=True, ambiguous=tuple(ambiguous)),
        config_name=config_name,
        source=SourceNames(ORACLE),
        filter_system=True,
        normalize=False,
    )


async def read_catalogue(
    session: Session,
    names: TableNames,
    wanted: Iterable[str] | None,
    *,
    include_views: bool,
) -> Catalogue:
    """All tables of the owners that the wanted names may mean."""
    owners = names.owners(session.user, wanted)
    marks = ", ".join(f":{number}" for number in range(1, len(owners) + 1))
    columns = await session.rows(
        COLUMNS.format(owners=marks, views=VIEWS if include_views else ""), owners, Stage.SCHEMA
    )
    keys = await session.rows(KEYS.format(owners=marks), owners, Stage.SCHEMA)
    return _parsed(columns, keys)


def _table(names: TableNames, name: str, found: Found) -> TableSnapshot:
    told = names.told(name, [column.name for column in found.columns])
    snapshots = tuple(
        ColumnSnapshot(
            column.name,
            column.type.name,
            nullable=column.is_nullable,
            primary_key=column.is_key,
        )
        for column in found.columns
        if column.name in told
    )
    shown = tuple(column.name for column in snapshots)
    return TableSnapshot(name, shown, snapshots, found.estimated_rows)


def _parsed(columns: Sequence[Sequence[object]], keys: Sequence[Sequence[object]]) -> Catalogue:
    key_columns = {tuple(row) for row in keys}
    tables: dict[TableId, list[Column]] = {}
    estimates: dict[TableId, object] = {}
    for row in columns:
        owner, table, name, type_name = cast("tuple[str, str, str, str]", tuple(row[:4]))
        type_owner = cast("str | None", row[4])
        length, precision, scale = cast("tuple[int | None, ...]", tuple(row[5:8]))
        column = Column(
            name=name,
            type=column_type(
                type_name, owner=type_owner, max_bytes=length, precision=precision, scale=scale
            ),
            is_nullable=row[8] != "N",
            is_key=(owner, table, name) in key_columns,
        )
        tables.setdefault(TableId(owner, table), []).append(column)
        estimates[TableId(owner, table)] = row[9]
    return {
        table: FoundTable(tuple(found), row_estimate(estimates[table]))
        for table, found in tables.items()
    }
