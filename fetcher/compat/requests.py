"""A request in the names under which the Engine compares it (spec engine 17.1, at its end)."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from fetcher.compat.names import normalized_field, normalized_table
from fetcher_engine.errors import EngineError, ErrorCategory

C = TypeVar("C")


def normalized_request(
    mapped_fields: Mapping[str, Mapping[str, Sequence[str]]],
    filters: Mapping[str, Mapping[str, Mapping[str, C]]],
    types: Mapping[str, str],
) -> tuple[dict[str, dict[str, tuple[str, ...]]], dict[str, dict[str, dict[str, C]]]]:
    """Fields and filters with tables and fields named as in a normalized snapshot.

    ``types`` maps config name to data source type; a missing one counts as unknown. Tables that
    become one join their fields, each once, in the order of their requested names; their conditions
    join too. Raise EngineError of category ``validation`` when one field then has two different
    conditions.
    """
    fields = {
        config: _normalized_tables(tables, types.get(config, ""))
        for config, tables in mapped_fields.items()
    }
    conditions = {
        config: _normalized_filters(config, tables, types.get(config, ""))
        for config, tables in filters.items()
    }
    return fields, conditions


def _normalized_tables(
    tables: Mapping[str, Sequence[str]], source_type: str
) -> dict[str, tuple[str, ...]]:
    joined: dict[str, dict[str, None]] = {}
    for table in sorted(tables):
        names = (normalized_field(field, source_type) for field in tables[table])
        joined.setdefault(normalized_table(table, source_type), {}).update(dict.fromkeys(names))
    return {table: tuple(names) for table, names in joined.items()}


def _normalized_filters(
    config: str, tables: Mapping[str, Mapping[str, C]], source_type: str
) -> dict[str, dict[str, C]]:
    joined: dict[str, dict[str, C]] = {}
    for table in sorted(tables):
        name = normalized_table(table, source_type)
        conditions = joined.setdefault(name, {})
        for field, condition in tables[table].items():
            column = normalized_field(field, source_type)
            if conditions.setdefault(column, condition) != condition:
                raise EngineError(
                    ErrorCategory.VALIDATION,
                    "one field has two different filter conditions",
                    source=config,
                    table=name,
                    column=column,
                )
    return joined
