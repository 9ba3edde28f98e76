"""What is known of tenants, and who tells of their changes (spec configuration 11.4 and 11.6)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from fetcher.domain.tenant_events import TenantEvent
from fetcher.domain.tenants import SourcePlace, TenantConfig


class TenantDirectory(Protocol):
    """The Tenant Manager. Failures that may pass are TenantsUnavailable (TenantsLeftAlone: it was
    not even asked); its word on a tenant is a TenantError."""

    @property
    def is_left_alone(self) -> bool:
        """Whether its circuit breaker is open."""
        ...

    async def active(self, *, within_seconds: float) -> Sequence[str]:
        """The ids of the tenants that use our service, never remembered. Blank ids and such that no
        tenant can have are left out."""
        ...

    async def config(self, tenant_id: str, *, fresh: bool = False) -> TenantConfig:
        """Where the tenant's things lie: what is remembered, also while it is left alone, unless
        ``fresh``. One question at a time a tenant."""
        ...

    async def source(self, tenant_id: str, service: str, module: str) -> SourcePlace:
        """The database of another service's module. Raise TenantNotConfigured, which lists the
        modules that there are."""
        ...

    def forget(self, tenant_id: str) -> None:
        """What is remembered of a tenant, whatever the service."""
        ...


class TenantEvents(Protocol):
    def listen(self) -> AbstractAsyncContextManager[AsyncIterator[TenantEvent]]:
        """Events from now on, in order; what is no event of ours was told of and left out.

        Raise PortUnavailable, also out of the iterator, when the connection is lost: whoever
        listens does so anew, and looks for what it has missed.
        """
        ...
