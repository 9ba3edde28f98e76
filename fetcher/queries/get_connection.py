"""One connection (spec rest-api 8.5)."""

from fetcher.domain.connections import Connection
from fetcher.domain.errors import ConnectionNotFound
from fetcher.domain.ids import ConnectionId
from fetcher.ports import ConnectionRecords


async def get_connection(connections: ConnectionRecords, connection_id: ConnectionId) -> Connection:
    """Raise ``FET-1001`` where there is none, or it was deleted."""
    connection = await connections.get(connection_id)
    if connection is None:
        raise ConnectionNotFound(connection_id)
    return connection
