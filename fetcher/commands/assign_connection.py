"""Give a connection that has no product its product, once (spec rest-api 8.4)."""

from fetcher.domain.connections import Connection
from fetcher.domain.errors import ConnectionNotFound, FetcherError
from fetcher.domain.ids import ConnectionId
from fetcher.domain.times import later_than
from fetcher.ports import ConnectionRecords, UtcNow


class AssignConnection:
    """Jobs that run do not stand in the way."""

    def __init__(self, *, connections: ConnectionRecords, now: UtcNow) -> None:
        self._connections = connections
        self._now = now

    async def __call__(self, connection_id: ConnectionId, *, product_name: str) -> Connection:
        """Raise ``FET-1001``, or ``FET-1015`` where it has a product, be it the same."""
        connection = await self._found(connection_id)
        assigned = await self._connections.assign(
            connection_id,
            product_name=product_name,
            at=later_than(connection.updated_at, now=self._now()),
        )
        if assigned is not None:
            return assigned
        connection = await self._found(connection_id)
        raise FetcherError(
            "FET-1015",
            "Connection Already Assigned",
            f"the connection {connection.config_name} belongs to a product already",
        )

    async def _found(self, connection_id: ConnectionId) -> Connection:
        connection = await self._connections.get(connection_id)
        if connection is None:
            raise ConnectionNotFound(connection_id)
        return connection
