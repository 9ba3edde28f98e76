"""The audit trail in memory."""

import trio

from fetcher.adapters.memory.state import MemoryState, after
from fetcher.domain.audit import AuditCursor, AuditEntry, AuditPage, AuditQuery


class MemoryAudit:
    """Implements :class:`fetcher.ports.AuditTrail`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def append(self, entry: AuditEntry) -> None:
        await trio.lowlevel.checkpoint()
        self._state.audit.setdefault(entry.id, entry)

    async def list_page(self, query: AuditQuery) -> AuditPage:
        await trio.lowlevel.checkpoint()
        place = (query.before.time, query.before.id) if query.before is not None else None
        found = [
            entry
            for entry in self._state.audit.values()
            if (query.actor is None or entry.actor == query.actor)
            and (query.action is None or entry.action == query.action)
            and (query.target is None or entry.target == query.target)
            and (place is None or (entry.time, entry.id) < place)
        ]
        found.sort(key=lambda entry: (entry.time, entry.id), reverse=True)
        items = tuple(found[: query.limit])
        last = items[-1] if len(found) > len(items) else None
        return AuditPage(
            items=items, next=AuditCursor(time=last.time, id=last.id) if last is not None else None
        )

    async def delete_old(self, *, older_than_seconds: float, limit: int) -> int:
        await trio.lowlevel.checkpoint()
        until = after(self._state.now(), -older_than_seconds)
        entries = sorted(self._state.audit.values(), key=lambda entry: (entry.time, entry.id))
        old = [entry.id for entry in entries if entry.time < until][:limit]
        for entry_id in old:
            del self._state.audit[entry_id]
        return len(old)
