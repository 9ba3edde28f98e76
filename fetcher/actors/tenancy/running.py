"""What the ``tenants`` actor knows of a tenant that is open: how to run it and how to end it."""

from typing import Protocol, TypeVar

import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.tenancy.uses import TenantUses


class RunningTenant(Protocol):
    """One tenant's own ports, use cases and actors. It is open while its context is, and its owner
    is the ``tenants`` actor; requests use it by :attr:`uses`."""

    @property
    def lifecycle(self) -> Lifecycle:
        """Its own, not the process's."""
        ...

    @property
    def uses(self) -> TenantUses: ...

    @property
    def cut(self) -> trio.Event:
        """Set when requests that still use it must end at once: its ports are about to close."""
        ...

    async def run(self) -> None:
        """Its actors, until its lifecycle has drained: with no drain window, and as long for its
        jobs as the process gives its own. Called once. Whatever it raises is this tenant's failure
        and nobody else's."""
        ...


TenantT = TypeVar("TenantT", bound=RunningTenant)
