"""The tables of a SQLite file, and its views on demand; no virtual and no shadow tables."""

import sqlite3
from collections.abc import Mapping
from typing import Final

from fetcher.compat import SourceNames, prepared_snapshot
from fetcher.compat.names import SQLITE
from fetcher.datasources.row_estimates import row_estimate
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, TableSnapshot

_CATALOGUE: Final = """SELECT l.name, x.name, x.type, x."notnull", x.pk
FROM pragma_table_list AS l JOIN pragma_table_xinfo(l.name, l.schema) AS x
WHERE l.schema = 'main' AND l.type IN ('table', ?) AND x.hidden <> 1 ORDER BY l.name, x.cid"""

_STATISTICS: Final = """SELECT count(*)
FROM pragma_table_list AS l JOIN pragma_table_xinfo(l.name, l.schema) AS x
WHERE l.schema = 'main' AND l.name = 'sqlite_stat1' AND l.type = 'table'
 AND x.name IN ('tbl', 'stat')"""

_ESTIMATES: Final = """SELECT tbl, max(CAST(stat AS INTEGER)) FROM main.sqlite_stat1
WHERE stat GLOB '[0-9]*' GROUP BY tbl"""
"""``stat`` begins with the rows of an index; one of a part of the table has fewer than others."""


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


def read_estimates(connection: sqlite3.Connection) -> dict[str, int]:
    """Rows by table, as of the file's last ANALYZE; none where it never had one. Blocking."""
    if connection.execute(_STATISTICS).fetchone() != (2,):
        return {}
    counted = connection.execute(_ESTIMATES).fetchall()
    estimates = {table: row_estimate(count) for table, count in counted}
    return {table: count for table, count in estimates.items() if count is not None}


def snapshot_of(
    tables: Mapping[str, tuple[ColumnSnapshot, ...]],
    estimates: Mapping[str, int],
    config_name: str,
) -> SchemaSnapshot:
    snapshots = tuple(
        TableSnapshot(
            table, tuple(column.name for column in columns), columns, estimates.get(table)
        )
        for table, columns in tables.items()
    )
    return prepared_snapshot(
        SchemaSnapshot(config_name, snapshots, ignores_case=True),
        config_name=config_name,
        source=SourceNames(SQLITE),
        filter_system=True,
        normalize=False,
    )
