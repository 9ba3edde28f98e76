"""One connection by its id, be it stored or internal (spec rest-api 8.5, 13)."""

from fetcher.domain.connections import Connection
from fetcher.domain.errors import ConnectionNotFound, FetcherError, PortError
from fetcher.domain.ids import ConnectionId
from fetcher.domain.internal_sources import InternalSourceMissing, internal_source_name
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import ConnectionRecords, InternalSources


class FindConnection:
    """An id of an internal source of ``tenant`` is never looked for among the stored ones."""

    def __init__(
        self,
        *,
        internal: InternalSources,
        stored: ConnectionRecords,
        tenant: Tenant = NO_TENANT,
    ) -> None:
        self._internal = internal
        self._stored = stored
        self._tenant = tenant

    async def __call__(self, connection_id: ConnectionId) -> Connection:
        """Raise ``FET-1001`` where there is none, or it was deleted; ``FET-0002`` where it cannot
        be told whether an internal one is there (Wire)."""
        name = internal_source_name(connection_id, self._tenant.id)
        connection: Connection | None = None
        failed = False
        if name is None:
            connection = await self._stored.get(connection_id)
        else:
            try:
                connection = await self._internal.find(name)
            except InternalSourceMissing:
                pass
            except PortError:
                failed = True
        if failed:
            raise FetcherError(
                "FET-0002", "Internal Server Error", "an internal data source cannot be resolved"
            )
        if connection is None:
            raise ConnectionNotFound(connection_id)
        return connection
