"""What a process with tenants opens: the Tenant Manager, its events, and what tenants share."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fetcher.actors.lifecycle import Lifecycle
from fetcher.adapters.mongo.shared_clients import open_shared_clients
from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.tenant_events import RedisTenantEvents, open_tenant_events
from fetcher.bootstrap.process_parts import open_process_parts
from fetcher.bootstrap.tenancy.adapters import SharedByTenants
from fetcher.bootstrap.tenancy.manager import open_directory
from fetcher.bootstrap.tenancy.roster import TenantSources, TenantsRoster
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.fair_places import FairPlaces
from fetcher.ports import Tracer
from fetcher.settings import Role, Settings
from fetcher.settings.certificates import ca_pem


@asynccontextmanager
async def open_tenants_roster(
    settings: Settings, role: Role, tracer: Tracer, lifecycle: Lifecycle
) -> AsyncIterator[TenantsRoster]:
    """Raise StartRefused, also where the Redis of tenants' events is not there: whoever is not told
    of a tenant's end would go on serving it."""
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(open_process_parts(settings, role, tracer))
        events = await stack.enter_async_context(
            open_tenant_events(redis_of_events(settings), environment_of(settings))
        )
        directory = await stack.enter_async_context(open_directory(settings, role))
        clients = await stack.enter_async_context(
            open_shared_clients(
                allow_plaintext=settings.allows_plaintext,
                idle_seconds=settings.multi_tenant_idle_timeout_sec,
            )
        )
        await _refuse_unless_heard(events)
        yield TenantsRoster(
            settings,
            role,
            SharedByTenants(
                parts=parts,
                directory=directory,
                clients=clients,
                places=FairPlaces(settings.rabbitmq_numbers_of_workers),
            ),
            TenantSources(events=events, probe=events.probe),
            lifecycle,
        )


def environment_of(settings: Settings) -> str:
    """Whose tenants' events are heard (spec configuration 11.6)."""
    return (settings.environment_name.strip() or settings.env_name.strip()).lower()


def redis_of_events(settings: Settings) -> RedisAddress:
    return RedisAddress(
        host=settings.multi_tenant_redis_host,
        port=settings.multi_tenant_redis_port,
        user="",
        password=settings.multi_tenant_redis_password.get_secret_value(),
        database=0,
        tls=settings.multi_tenant_redis_tls,
        ca_pem=ca_pem(settings.multi_tenant_redis_ca_cert),
    )


async def _refuse_unless_heard(events: RedisTenantEvents) -> None:
    problem = ""
    try:
        await events.check()
    except PortUnavailable as failure:
        problem = f"MULTI_TENANT_REDIS_HOST: tenant pubsub redis: ping failed: {failure}"
    if problem:
        raise StartRefused([problem])
