"""Which schemas a discovery reads (spec engine 17.4). Manager and Worker use the same rule."""

from collections.abc import Iterable

from fetcher.compat.names import DEFAULT_SCHEMAS, ORACLE, SourceNames, upper_case


def discovery_scope(tables: Iterable[str], source: SourceNames) -> tuple[str, ...]:
    """The schemas of the requested tables, sorted; empty: the connector's own default.

    Computed from the names as requested. The default schema is in it when some name has none, and
    is meant by any case of its name, as in normalization. Oracle's default may be known to the
    session alone: a connector adds it where a name has no schema.
    """
    if not source.are_qualified:
        return ()
    spellings = {
        schema.lower(): schema
        for schema in (DEFAULT_SCHEMAS.get(source.source_type, ""), source.default_schema)
    }
    scope = set()
    for table in tables:
        schema = _schema_of(table) if "." in table else source.default_schema
        schema = spellings.get(schema.lower(), schema)
        if schema:
            scope.add(upper_case(schema) if source.source_type == ORACLE else schema)
    return tuple(sorted(scope))


def _schema_of(table: str) -> str:
    parts = table.strip().split(".")
    # of catalog.schema.table normalization keeps the schema, so that is what must be read
    return (parts[1] if len(parts) == 3 else parts[0]).strip()
