"""Discovered schemas as the Engine compares and the API shows them (spec engine 17.3)."""

from collections.abc import Iterable
from dataclasses import replace

from fetcher.compat.names import SourceNames, normalized_field, normalized_table
from fetcher.compat.system_tables import is_system_table
from fetcher_engine import ColumnSnapshot, SchemaSnapshot, TableSnapshot


def prepared_snapshot(
    schema: SchemaSnapshot | None,
    *,
    config_name: str,
    source: SourceNames,
    filter_system: bool,
    normalize: bool,
) -> SchemaSnapshot:
    """The snapshot with tables and fields sorted, each once.

    ``filter_system`` drops the database's own tables, ``normalize`` brings names to the form that
    requests are brought to; where two tables meet under one name, so do their fields, and of their
    rows nothing is estimated. The schema's own config name wins over ``config_name`` when it has
    one.
    """
    if schema is None:
        return SchemaSnapshot(config_name)
    merged: dict[str, TableSnapshot] = {}
    for table in sorted(schema.tables, key=lambda table: table.name):
        if filter_system and is_system_table(table.name, source.source_type):
            continue
        prepared = _prepared_table(table, source) if normalize else table
        known = merged.get(prepared.name)
        merged[prepared.name] = _merged(prepared, known) if known else _merged(prepared, prepared)
    return replace(
        schema,
        config_name=schema.config_name or config_name,
        tables=tuple(merged[name] for name in sorted(merged)),
    )


def _prepared_table(table: TableSnapshot, source: SourceNames) -> TableSnapshot:
    return TableSnapshot(
        name=normalized_table(table.name, source),
        fields=tuple(normalized_field(name, source) for name in table.fields),
        columns=tuple(
            replace(column, name=normalized_field(column.name, source)) for column in table.columns
        ),
        estimated_rows=table.estimated_rows,
    )


def _merged(table: TableSnapshot, known: TableSnapshot) -> TableSnapshot:
    return TableSnapshot(
        name=table.name,
        fields=tuple(sorted({*known.fields, *table.fields})),
        columns=_each_once((*known.columns, *table.columns)),
        estimated_rows=table.estimated_rows if table is known else None,
    )


def _each_once(columns: Iterable[ColumnSnapshot]) -> tuple[ColumnSnapshot, ...]:
    first: dict[str, ColumnSnapshot] = {}
    for column in columns:
        first.setdefault(column.name, column)
    return tuple(first.values())
