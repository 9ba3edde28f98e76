"""A database of the MongoDB test server as a source."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pymongo.database import Database

from fetcher.domain.connections import Connection, SourceType
from tests.integration.datasources.harness import a_connection

Source = Database[dict[str, Any]]
Where = Mapping[str, Mapping[str, Sequence[Any]]]


def to(source: Source, **changes: Any) -> Connection:
    host, port = source.client.address or ("", 0)
    settings = {"host": host, "port": port, "database": source.name, **changes}
    return a_connection(source_type=SourceType.MONGODB, **settings)


def exact(where: Where) -> Where:
    """As requests have it: fractions are decimals."""
    return {
        field: {
            operator: [Decimal(str(value)) if isinstance(value, float) else value for value in each]
            for operator, each in condition.items()
        }
        for field, condition in where.items()
    }
