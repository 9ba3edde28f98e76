"""One tenant's adapters, beside what all tenants of a process share."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from fetcher.adapters.amqp.broker import open_amqp
from fetcher.adapters.amqp.tenant_address import tenant_broker_address
from fetcher.adapters.mongo.shared_clients import SharedMongoClients
from fetcher.adapters.tenant_objects import TenantObjects
from fetcher.bootstrap.adapters import Adapters, queue_on, source_settings
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.host_guard import tenant_hosts_refused
from fetcher.bootstrap.known_secrets import note_secrets
from fetcher.bootstrap.process_parts import ProcessParts
from fetcher.bootstrap.tenancy.fair_threads import FairThreads
from fetcher.datasources.engines import open_source_engines
from fetcher.datasources.idle_sessions import IdlePeers
from fetcher.domain.tenants import Tenant, TenantConfig
from fetcher.fair_places import FairPlaces
from fetcher.ports import ObjectStore
from fetcher.ports.tenants import TenantDirectory
from fetcher.tenancy.internal_sources import TenantInternalSources


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedByTenants:
    """What a process opens once for all of them."""

    parts: ProcessParts
    directory: TenantDirectory
    clients: SharedMongoClients
    places: FairPlaces
    """Of jobs that run at once."""
    idle_sessions: IdlePeers = field(default_factory=IdlePeers)
    """To tenants' sources."""
    threads: FairThreads = field(default_factory=FairThreads)
    """For tenants' sources."""


@asynccontextmanager
async def open_tenant_adapters(
    shared: SharedByTenants, config: TenantConfig
) -> AsyncIterator[Adapters]:
    """Raise TenantError for places that cannot work; one that is away is connected when it is used.

    Nobody's sources, not even the tenant's own, are where a tenant's records and messages are.
    """
    parts, tenant = shared.parts, Tenant(config.tenant_id)
    settings, threads = parts.settings, shared.threads.of_tenant(tenant.id)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(tenant_hosts_refused(parts.guard, config, threads))
        records = await stack.enter_async_context(shared.clients.records(config.database))
        broker = await stack.enter_async_context(
            open_amqp(
                await tenant_broker_address(
                    config.broker,
                    default_tls=settings.rabbitmq_tls,
                    allow_plaintext=settings.allows_plaintext,
                ),
                work_queue=settings.work_queue,
                events_exchange=settings.events_exchange,
                consumes=parts.role.works,
                now=utc_now,
                idle_seconds=settings.multi_tenant_idle_timeout_sec,
            )
        )
        queue = queue_on(broker, settings)
        engines = await stack.enter_async_context(
            open_source_engines(
                source_settings(settings, None, parts.cipher, parts.guard, threads),
                spool=parts.spool,
                tracer=parts.tracer,
                peers=shared.idle_sessions,
            )
        )
        yield Adapters(
            tenant=tenant,
            records=records,
            objects=_objects_of(parts, tenant),
            queue=queue,
            engines=engines,
            remembering_engines=engines.remembering(parts.shared.schemas),
            shared=parts.shared,
            internal_sources=TenantInternalSources(shared.directory, tenant, noted=note_secrets),
            cipher=parts.cipher,
            keys=parts.keys,
            probes=(records.probe, queue.probe),
            session_use=engines.session_use,
            store_connections=records.connection_use,
            spool=parts.spool,
            guard=parts.guard,
            authorizer=parts.authorizer,
            tracer=parts.tracer,
        )


def _objects_of(parts: ProcessParts, tenant: Tenant) -> ObjectStore | None:
    if parts.objects is None:
        return None
    prefix = tenant.object_prefix(parts.settings.object_storage_key_prefix)
    return TenantObjects(parts.objects.objects, prefix)
