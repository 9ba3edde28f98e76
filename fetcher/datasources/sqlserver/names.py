"""What names mean to SQL Server, and how identifiers are written (spec datasources 8)."""

from fetcher.compat.names import SQL_SERVER, table_readings
from fetcher.datasources.table_names import SchemaTableNames, TableId


class TableNames(SchemaTableNames):
    source_type = SQL_SERVER

    def _readings(self, raw: str) -> tuple[TableId, ...]:
        default = self.default_schema
        found = [
            TableId(
                default if reading.schema.lower() in ("", default.lower()) else reading.schema,
                reading.table,
            )
            for reading in table_readings(raw)
        ]
        return tuple(dict.fromkeys(found))


def quoted(*names: str) -> str:
    """Identifiers in brackets, joined by dots."""
    return ".".join(f"[{name.replace(']', ']]')}]" for name in names)
