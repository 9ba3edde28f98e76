"""Pages of connections (spec rest-api 8.2)."""

from fetcher.domain.connections import ConnectionPage, ConnectionQuery
from fetcher.ports import ConnectionRecords


async def list_connections(
    connections: ConnectionRecords, query: ConnectionQuery
) -> ConnectionPage:
    """Sorted by ``created_at``, then id, so that pages neither repeat nor lose one."""
    return await connections.list_page(query)
