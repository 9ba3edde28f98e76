"""Where an operator's command works: at the places of the settings, or at one tenant's."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.tenant_address import tenant_broker_address
from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.local.data_folder import DataFolder
from fetcher.adapters.mongo.shared_clients import SharedMongoClients, open_shared_clients
from fetcher.adapters.tenant_objects import TenantObjects
from fetcher.bootstrap.adapters import broker_address
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.known_secrets import note_secrets
from fetcher.bootstrap.stores import OpenObjects, OpenRecords, open_object_store, open_record_store
from fetcher.bootstrap.tenancy.manager import open_directory
from fetcher.domain.errors import StartRefused
from fetcher.domain.tenants import TenantConfig, TenantsUnavailable
from fetcher.ports import InternalSources, RecordStore
from fetcher.ports.tenants import TenantDirectory
from fetcher.settings import Settings
from fetcher.tenancy.internal_sources import TenantInternalSources

IDLE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantParts:
    config: TenantConfig
    clients: SharedMongoClients


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlaces:
    """Opens what a command asks for, and nothing else."""

    target: CommandTarget
    internal_sources: InternalSources
    of_tenant: TenantParts | None
    """None without tenants."""

    @property
    def settings(self) -> Settings:
        return self.target.settings

    @asynccontextmanager
    async def records(
        self, folder: DataFolder | None, *, only_looks: bool = False
    ) -> AsyncIterator[RecordStore]:
        """As :meth:`opened_records`, and no more of it."""
        async with self.opened_records(folder, only_looks=only_looks) as opened:
            yield opened.records

    @asynccontextmanager
    async def opened_records(
        self, folder: DataFolder | None, *, only_looks: bool = False
    ) -> AsyncIterator[OpenRecords]:
        """Beside a running service. Raise StartRefused, TenantNotConfigured."""
        if self.of_tenant is None:
            async with open_record_store(
                self.settings, folder, is_owner=False, only_looks=only_looks
            ) as store:
                yield store
            return
        place = self.of_tenant.config.database
        async with self.of_tenant.clients.records(place, only_looks=only_looks) as records:
            yield OpenRecords(
                records=records,
                probe=records.probe,
                connections=records.connection_use,
                server_version=records.server_version,
            )

    async def broker_address(self) -> BrokerAddress:
        """Where a broker is used. Raise TenantNotConfigured."""
        if self.of_tenant is None:
            return broker_address(self.settings)
        return await tenant_broker_address(
            self.of_tenant.config.broker,
            default_tls=self.settings.rabbitmq_tls,
            allow_plaintext=self.settings.allows_plaintext,
        )

    @asynccontextmanager
    async def objects(self, folder: DataFolder | None) -> AsyncIterator[OpenObjects]:
        async with open_object_store(self.settings, folder) as opened:
            if self.of_tenant is None:
                yield opened
            else:
                own = TenantObjects(opened.objects, self.target.key_prefix)
                yield replace(opened, objects=own)


@asynccontextmanager
async def open_places(target: CommandTarget) -> AsyncIterator[CommandPlaces]:
    """Inside the asyncio room. The Tenant Manager is asked where the tenant's things lie.

    Raise TenantError and TenantsUnavailable, which are PortErrors; StartRefused where there are
    tenants and none is named: no shared place stands in.
    """
    settings = target.settings
    if settings.multi_tenant_enabled and not target.tenant.id:
        raise StartRefused(["--tenant: with tenants records and broker are one tenant's: whose?"])
    if not target.tenant.id:
        internal = environment_sources(settings.datasource_groups)
        yield CommandPlaces(target=target, internal_sources=internal, of_tenant=None)
        return
    async with AsyncExitStack() as stack:
        directory = await stack.enter_async_context(open_directory(settings, target.role))
        config = await _config_of(directory, target.tenant.id)
        clients = await stack.enter_async_context(
            open_shared_clients(
                allow_plaintext=settings.allows_plaintext, idle_seconds=IDLE_SECONDS
            )
        )
        yield CommandPlaces(
            target=target,
            internal_sources=TenantInternalSources(directory, target.tenant, noted=note_secrets),
            of_tenant=TenantParts(config=config, clients=clients),
        )


async def _config_of(directory: TenantDirectory, tenant_id: str) -> TenantConfig:
    """As the directory says. Who runs a command about a queue is told who did not answer."""
    problem = ""
    try:
        return await directory.config(tenant_id)
    except TenantsUnavailable as failure:
        problem = f"the Tenant Manager: {failure}"
    raise TenantsUnavailable(problem)
