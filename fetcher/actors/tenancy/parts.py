"""What the parts of the ``tenants`` actor share."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias

import trio

from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.actors.tenancy.running import TenantT
from fetcher.domain.tenants import TenantConfig
from fetcher.ports.tenants import TenantDirectory

OpenTenant: TypeAlias = Callable[[TenantConfig], AbstractAsyncContextManager[TenantT]]
"""Opens everything that is a tenant's own, and closes it. Raises PortError, TenantError among it;
whatever else it raises is this tenant's failure too."""
LoadConfig: TypeAlias = Callable[[], Awaitable[TenantConfig]]

OPEN_AT_ONCE: Final = 16
"""Tenants that are opened side by side while nobody waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantTimes:
    """Spec configuration 2.10. ``most_open`` is a soft limit; at 0 or less nothing is closed for
    being idle."""

    reconcile_seconds: float = 60.0
    idle_seconds: float = 300.0
    most_open: int = 100
    revalidate_seconds: float = 30.0
    job_wait_seconds: float = 30.0
    """What a tenant's own supervisor gives its jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantParts(Generic[TenantT]):
    directory: TenantDirectory
    open_tenant: OpenTenant[TenantT]
    times: TenantTimes
    metrics: TenantMetrics
    turns: trio.Semaphore
    """Of those that open without anybody waiting."""
    discovers: bool
    """Whether every active tenant is to run, and one that does not open is tried again."""
    is_draining: Callable[[], bool]
    """Whether tenants' actors are to end, although requests may go on."""
