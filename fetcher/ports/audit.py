"""The audit trail: entries are added, read and given up after their time; never changed."""

from typing import Protocol

from fetcher.domain.audit import AuditEntry, AuditPage, AuditQuery


class AuditTrail(Protocol):
    async def append(self, entry: AuditEntry) -> None:
        """Idempotent: an entry that is there already is left as it is."""

    async def list_page(self, query: AuditQuery) -> AuditPage:
        """Newest first; pages neither repeat nor lose an entry. One that cannot be read is left
        out, which makes its page shorter. Raise PortUnavailable."""
        ...

    async def delete_old(self, *, older_than_seconds: float, limit: int) -> int:
        """Delete the oldest of those that are older, by the store's clock; how many."""
        ...
