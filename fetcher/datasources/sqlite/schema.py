"""The tables of a SQLite file, and its views on demand; no virtual and no shadow tables."""

import sqlite3
from typing import Final

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import SQLITE
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, TableSnapshot

_CATALOGUE: Final = """SELECT l.name, x.name, x.type, x."notnull", x.pk
FROM pragma_table_list AS l JOIN pragma_table_xinfo(l.name, l.schema) AS x
WHERE l.schema = 'main' AND l.type IN ('table', ?) AND x.hidden <> 1 ORDER BY l.name, x.cid"""


def read_columns(
    connection: sqlite3.Connection, *, include_views: bool
) -> dict[str, tuple[ColumnSnapshot, ...]]:
    """Columns by table, as the file spells both. Blocking."""
    also = "view" if include_views else "table"
    tables: dict[str, list[ColumnSnapshot]] = {}
    for table, name, declared, not_null, key in connection.execute(_CATALOGUE, (also,)):
        tables.setdefault(table, []).append(
            ColumnSnapshot(name, declared, nullable=not not_null, primary_key=bool(key))
        )
    return {table: tuple(columns) for table, columns in tables.items()}


def snapshot_of(tables: dict[str, tuple[ColumnSnapshot, ...]], config_name: str) -> SchemaSnapshot:
    snapshots = tuple(
        TableSnapshot(table, tuple(column.name for column in columns), columns)
        for table, columns in tables.items()
    )
    return prepared_snapshot(
        SchemaSnapshot(config_name, snapshots, ignores_case=True),
        config_name=config_name,
        source=SourceNames(SQLITE),
        filter_system=True,
        normalize=False,
    )
