"""What names mean to PostgreSQL, which tells case apart in all of them but ``public``."""

from fetcher.compat.names import DEFAULT_SCHEMAS, POSTGRESQL, table_readings
from fetcher.datasources.table_names import SchemaTableNames, TableId

PUBLIC = DEFAULT_SCHEMAS[POSTGRESQL]


class TableNames(SchemaTableNames):
    source_type = POSTGRESQL

    def _readings(self, raw: str) -> tuple[TableId, ...]:
        found: list[TableId] = []
        for reading in table_readings(raw):
            schema = reading.schema or self.default_schema
            found.append(TableId(PUBLIC if schema.lower() == PUBLIC else schema, reading.table))
            if schema.lower() == self.default_schema.lower():
                found.append(TableId(self.default_schema, reading.table))
        return tuple(dict.fromkeys(found))
