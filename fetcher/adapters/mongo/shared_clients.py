"""Clients of the driver that tenants share: one for each server and user, whatever the databases.

A client costs its own look-out (a connection to each server, and tasks that run for ever), so that
tenants whose databases lie on the same servers under the same user have one together. What keeps
them apart is the database, which is fixed where their records are opened.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import structlog
import trio

from fetcher.adapters.mongo.client import AddressRefused, OpenClient, open_client
from fetcher.adapters.mongo.clock import ServerClock
from fetcher.adapters.mongo.indexes import IndexedDatabases, leave_indexes
from fetcher.adapters.mongo.records import MongoRecords, records_on
from fetcher.adapters.mongo.tenant_address import ClientAddress, client_address, database_name
from fetcher.adapters.mongo.tls_contexts import share_contexts
from fetcher.adapters.mongo.tls_files import tls_files
from fetcher.domain.tenants import MongoPlace, TenantNotConfigured
from fetcher.fair_places import FairPlaces

log = structlog.get_logger(__name__)

GRACE_SECONDS: Final = 10.0
"""How long a client that nobody uses is kept: a tenant that is opened anew finds it."""


class SharedMongoClients:
    """Opened once a process, by :func:`open_shared_clients`."""

    def __init__(
        self, nursery: trio.Nursery, *, allow_plaintext: bool, idle_seconds: float
    ) -> None:
        self._nursery = nursery
        self._allow_plaintext = allow_plaintext
        self._idle_seconds = idle_seconds
        self._clients: dict[ClientAddress, _SharedClient] = {}
        self._opening = trio.Lock()
        self._indexed = IndexedDatabases()

    @property
    def count(self) -> int:
        """Clients that are open, those that nobody uses for the moment among them."""
        return len(self._clients)

    def connection_use(self) -> tuple[int, int]:
        """Connections of all clients: open, and in use."""
        uses = [shared.client.connection_use() for shared in self._clients.values()]
        return sum(opened for opened, _ in uses), sum(in_use for _, in_use in uses)

    @asynccontextmanager
    async def records(
        self, place: MongoPlace, *, only_looks: bool = False
    ) -> AsyncGenerator[MongoRecords, None]:
        """The record store of one tenant's database.

        Nothing is dialled before it is used. Its indexes are made once in the process's life, but
        for who ``only_looks``.
        Certificates are read anew each time, so that a renewed file means a new client. Raise
        TenantNotConfigured for a place that cannot work.
        """
        name = database_name(place)
        address = await client_address(place, allow_plaintext=self._allow_plaintext)
        async with self._opening:
            shared = self._clients.get(address)
            if shared is None:
                shared = await self._nursery.start(self._hold, address)
            shared.enter()
        try:
            prepare = leave_indexes if only_looks else self._indexed.prepare
            # no two open tenants have the same database
            places = shared.places.of(name, address.max_pool_size)
            yield records_on(
                shared.client, name, prepare=prepare, clock=shared.clock, places=places
            )
        finally:
            shared.leave()

    async def _hold(
        self,
        address: ClientAddress,
        *,
        task_status: "trio.TaskStatus[_SharedClient]",
    ) -> None:
        """Own a client until it has had no user for a while. Who waits for it hears why not."""
        shared: _SharedClient | None = None
        try:
            async with _opened(address, idle_seconds=self._idle_seconds) as client:
                shared = self._clients[address] = _SharedClient(client, address.max_pool_size)
                task_status.started(shared)
                try:
                    await shared.left_alone()
                finally:
                    del self._clients[address]
        except Exception as error:
            if shared is None:
                raise
            log.warning("mongo_client_not_closed", error=type(error).__name__)


class _SharedClient:
    """A client and how many use it; at first nobody."""

    def __init__(self, client: OpenClient, max_pool_size: int) -> None:
        self.client = client
        self.clock = ServerClock()
        self.places = FairPlaces(max_pool_size, leaves_room=True)
        """Its connections. One of its users may have many that are slow: so it leaves some."""
        self._users = 0
        self._changed = trio.Event()

    def enter(self) -> None:
        self._users += 1
        self._tell()

    def leave(self) -> None:
        self._users -= 1
        self._tell()

    async def left_alone(self) -> None:
        """Until nobody has used it for the time of grace. There is no checkpoint after that."""
        while True:
            changed = self._changed
            grace = GRACE_SECONDS if self._users == 0 else float("inf")
            with trio.move_on_after(grace) as waiting:
                await changed.wait()
            if waiting.cancelled_caught and self._users == 0:
                return

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def _opened(
    address: ClientAddress, *, idle_seconds: float
) -> AsyncGenerator[OpenClient, None]:
    options: dict[str, Any] = {
        "minPoolSize": 0,
        "maxIdleTimeMS": int(idle_seconds * 1000),
        # One connection of the look-out instead of two: a client is there for hours for nothing.
        "serverMonitoringMode": "poll",
    }
    if address.direct_connection:
        options["directConnection"] = True
    if address.auth_source:
        options["authSource"] = address.auth_source
    if address.tls:
        options["tls"] = True
    else:
        log.warning("plaintext_connection", feature="mongo_tls", env_var="ALLOW_INSECURE_TLS")
    if address.skip_verify:
        options["tlsInsecure"] = True
        log.warning("unverified_connection", feature="mongo_tls", option="tlsSkipVerify")
    async with AsyncExitStack() as stack:
        files = await stack.enter_async_context(tls_files(address.ca_pem, address.identity_pem))
        client = None
        with suppress(AddressRefused):
            client = await stack.enter_async_context(
                open_client(
                    address.uri,
                    {**options, **files},
                    tls=address.tls,
                    max_pool_size=address.max_pool_size,
                )
            )
        if client is None:
            raise TenantNotConfigured("the driver does not accept the record store's address")
        yield client


@asynccontextmanager
async def open_shared_clients(
    *, allow_plaintext: bool, idle_seconds: float
) -> AsyncIterator[SharedMongoClients]:
    """Inside the asyncio room; all clients are closed when the context is left.

    ``allow_plaintext`` is the process's rule (never in SaaS mode); after ``idle_seconds`` a
    connection that nobody used is closed.
    """
    share_contexts()
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield SharedMongoClients(
                nursery, allow_plaintext=allow_plaintext, idle_seconds=idle_seconds
            )
        except Exception as error:  # noqa: BLE001 - it goes on below: the nursery would wrap it
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
