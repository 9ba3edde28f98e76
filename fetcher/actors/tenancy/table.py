"""The tenants of this process by their ids, and what may be told to them."""

from collections.abc import Mapping, Sequence
from typing import Final, Generic

import structlog
import trio

from fetcher.actors.tenancy.entry import TenantEntry
from fetcher.actors.tenancy.parts import TenantParts
from fetcher.actors.tenancy.running import TenantT

log = structlog.get_logger(__name__)

ABSENT_PASSES: Final = 3
"""A tenant that so many lists in a row have not named is stopped."""


class TenantTable(Generic[TenantT]):
    """Holds an entry for each tenant that runs here, is about to, or has not ended yet. Nothing
    here waits; entries run in the nursery that was given last."""

    def __init__(self, parts: TenantParts[TenantT]) -> None:
        self._parts = parts
        self._entries: dict[str, TenantEntry[TenantT]] = {}
        self._nursery: trio.Nursery

    @property
    def entries(self) -> Mapping[str, TenantEntry[TenantT]]:
        return self._entries

    def run_in(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def is_open(self, tenant_id: str) -> bool:
        entry = self._entries.get(tenant_id)
        return entry is not None and entry.is_wanted

    def start(self, tenant_id: str, *, after_seconds: float = 0.0) -> None:
        if not self.is_open(tenant_id):
            self._parts.directory.forget(tenant_id)
        if self._parts.discovers and not self._parts.is_draining():
            entry = self.entry(tenant_id, after_seconds=after_seconds)
            entry.hasten(after_seconds=after_seconds)

    def remove(self, tenant_id: str) -> None:
        self._parts.directory.forget(tenant_id)
        entry = self._entries.get(tenant_id)
        if entry is not None:
            entry.stop()

    def renew(self, tenant_id: str, *, after_seconds: float) -> None:
        if self.is_open(tenant_id):
            self._parts.directory.forget(tenant_id)
            self._entries[tenant_id].renew(after_seconds=after_seconds)
        else:
            self.start(tenant_id, after_seconds=after_seconds)

    def look(self, tenant_id: str) -> None:
        entry = self._entries.get(tenant_id)
        if entry is not None:
            entry.look()

    def look_at_all(self) -> None:
        """Something may have changed unheard."""
        for entry in self._entries.values():
            entry.look()

    def listed(self, active: Sequence[str]) -> None:
        for tenant_id in active:
            entry = self.entry(tenant_id)
            entry.absent_passes = 0
            entry.touch()
        absent = self._entries.keys() - set(active)
        for tenant_id in absent:
            entry = self._entries[tenant_id]
            entry.absent_passes += 1
            # one that was suspended is left out too: its own answer says so before three lists do
            entry.look()
            if entry.absent_passes >= ABSENT_PASSES and entry.is_wanted:
                log.warning("tenant_absent", tenant_id=tenant_id, passes=entry.absent_passes)
                self.remove(tenant_id)

    def entry(self, tenant_id: str, *, after_seconds: float = 0.0) -> TenantEntry[TenantT]:
        """The tenant's, told to run."""
        entry = self._entries.get(tenant_id)
        if entry is not None:
            entry.start(after_seconds=after_seconds)
            return entry
        entry = TenantEntry(tenant_id, self._parts, after_seconds=after_seconds)
        self._entries[tenant_id] = entry
        self._nursery.start_soon(self._keep, entry)
        return entry

    async def _keep(self, entry: TenantEntry[TenantT]) -> None:
        try:
            await entry.run()
        finally:
            del self._entries[entry.tenant_id]
