"""Take a connection away (spec rest-api 8.6)."""

import trio

from fetcher.commands.connection_gate import refuse_in_use
from fetcher.domain.errors import ConnectionNotFound, PortUnavailable
from fetcher.domain.ids import ConnectionId
from fetcher.domain.times import later_than
from fetcher.ports import ConnectionRecords, ConnectionRecovery, ForgetSchemas, JobRecords, UtcNow
from fetcher_engine import TenantContext

DELETE_SECONDS = 20.0


class DeleteConnection:
    """The record stays, marked; its name is free again."""

    def __init__(
        self,
        *,
        connections: ConnectionRecords,
        jobs: JobRecords,
        forget_schemas: ForgetSchemas,
        recover: ConnectionRecovery,
        now: UtcNow,
    ) -> None:
        self._connections = connections
        self._jobs = jobs
        self._forget_schemas = forget_schemas
        self._recover = recover
        self._now = now

    async def __call__(self, connection_id: ConnectionId, *, tenant: TenantContext) -> None:
        """Raise ``FET-1001``, also for the second of two, or ``FET-1021`` (a job reads from it).

        Once the record is being written, the caller's cancellation waits.
        """
        connection = await self._connections.get(connection_id)
        if connection is None:
            raise ConnectionNotFound(connection_id)
        await refuse_in_use(self._jobs, connection.config_name)
        at = later_than(connection.updated_at, now=self._now())
        with trio.CancelScope(shield=True), trio.move_on_after(DELETE_SECONDS):
            if not await self._connections.delete(connection_id, at=at):
                raise ConnectionNotFound(connection_id)
            await self._forget_schemas(tenant, connection.config_name)
            await self._recover(connection.id, connection.config_name)
            return
        raise PortUnavailable("the record store did not answer in time")
