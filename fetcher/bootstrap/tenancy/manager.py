"""The Tenant Manager that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.bootstrap.known_secrets import note_secrets
from fetcher.settings import Role, Settings
from fetcher.tenancy.manager_client import TenantManagerClient, open_tenant_manager


@asynccontextmanager
async def open_directory(settings: Settings, role: Role) -> AsyncIterator[TenantManagerClient]:
    """Calls nobody yet. What it tells of passwords is masked in logs."""
    async with open_tenant_manager(
        settings.multi_tenant_url,
        api_key=settings.multi_tenant_service_api_key.get_secret_value(),
        broker_module="fetcher-worker" if role.works else "fetcher-manager",
        timeout_seconds=settings.multi_tenant_timeout,
        cache_seconds=settings.multi_tenant_cache_ttl_sec,
        new_breaker=partial(
            CircuitBreaker,
            failures_to_open=settings.multi_tenant_circuit_breaker_threshold,
            open_seconds=settings.multi_tenant_circuit_breaker_timeout_sec,
        ),
        noted=note_secrets,
    ) as directory:
        yield directory
