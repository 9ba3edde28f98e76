"""Which schemas a discovery reads (spec engine 17.4). Manager and Worker use the same rule."""

from collections.abc import Iterable

from fetcher.compat.names import (
    DEFAULT_SCHEMAS,
    ORACLE,
    has_qualified_names,
    upper_case,
)


def discovery_scope(tables: Iterable[str], source_type: str) -> tuple[str, ...]:
    """The schemas of the requested tables, sorted; empty: the connector's own default.

    Computed from the names as requested. The default schema is in it when some name has none, and
    is meant by any case of its name, as in normalization.
    """
    if not has_qualified_names(source_type):
        return ()
    default_schema = DEFAULT_SCHEMAS.get(source_type, "")
    scope = set()
    for table in tables:
        schema = _schema_of(table) if "." in table else default_schema
        if schema.lower() == default_schema:
            schema = default_schema
        if schema:
            scope.add(upper_case(schema) if source_type == ORACLE else schema)
    return tuple(sorted(scope))


def _schema_of(table: str) -> str:
    parts = table.strip().split(".")
    # of catalog.schema.table normalization keeps the schema, so that is what must be read
    return (parts[1] if len(parts) == 3 else parts[0]).strip()
