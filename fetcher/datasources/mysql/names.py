"""Which table a requested name means (spec datasources 6.2, 7.2).

Exactly spelled wins, then what differs in case alone. Only the connected database is looked at: its
own name may stand before a table's.
"""

from collections.abc import Iterable, Sequence

from fetcher.compat.names import MYSQL, SourceNames, normalized_table, table_readings


def normalized(requested: Iterable[str] | None) -> tuple[str, ...] | None:
    """The names under which the Engine knows what was asked for; None where nobody asked."""
    if requested is None:
        return None
    source = SourceNames(MYSQL)
    return tuple(sorted({normalized_table(name, source) for name in requested}))


def meant_tables(name: str, database: str, existing: Sequence[str]) -> tuple[str, ...]:
    """The table of that name, else those that differ from it in case alone, else none.

    A table whose name holds a dot wins over one that its database's name stands before.
    """
    readings = table_readings(name)
    bare = [reading.table for reading in readings if not reading.schema]
    own = [r.table for r in readings if r.schema.casefold() == database.casefold()]
    found = (_spelled(table, existing) for table in (*bare, *own))
    return next((tables for tables in found if tables), ())


def _spelled(name: str, existing: Sequence[str]) -> tuple[str, ...]:
    if name in existing:
        return (name,)
    folded = name.casefold()
    return tuple(one for one in existing if one.casefold() == folded)


def identifier(*parts: str) -> str:
    """Quoted for a statement: ``(`shop`, `we``ird`)`` joined by a dot."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
