"""Schemas in memory, where there is no Redis (spec rest-api 12.4)."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

import trio

from fetcher_engine import SchemaSnapshot, TenantContext

MAX_ENTRIES = 1000
MAX_NAMES = 200_000
"""Tables, fields and columns of all entries together: some tens of MiB."""

_Key: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    snapshot: SchemaSnapshot
    names: int
    expires_at: float


@dataclass(slots=True)
class _Use:
    """What one tenant has in the cache."""

    entries: int = 0
    names: int = 0


class MemorySchemaCache:
    """The Engine's ``SchemaCache``: entries end after their time to live, by trio's clock.

    When a bound is reached, the tenant that has the most of it loses what it used least recently;
    a schema that is larger than the whole bound is not kept.
    """

    def __init__(self, *, ttl_seconds: float = 300.0) -> None:
        self._ttl_seconds = ttl_seconds
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._names = 0
        self._use: dict[str, _Use] = {}

    async def get_schema(
        self, tenant: TenantContext, config_name: str, fingerprint: str
    ) -> SchemaSnapshot | None:
        await trio.lowlevel.checkpoint()
        key = (tenant.tenant_id, config_name, fingerprint)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at <= trio.current_time():
            self._forget(key)
            return None
        self._entries.move_to_end(key)
        return entry.snapshot

    async def put_schema(
        self, tenant: TenantContext, snapshot: SchemaSnapshot, fingerprint: str
    ) -> None:
        await trio.lowlevel.checkpoint()
        key = (tenant.tenant_id, snapshot.config_name, fingerprint)
        self._forget(key)
        names = sum(1 + len(table.fields) + len(table.columns) for table in snapshot.tables)
        if names > MAX_NAMES:
            return
        self._entries[key] = _Entry(snapshot, names, trio.current_time() + self._ttl_seconds)
        self._names += names
        use = self._use.setdefault(tenant.tenant_id, _Use())
        use.entries += 1
        use.names += names
        while len(self._entries) > MAX_ENTRIES or self._names > MAX_NAMES:
            self._forget(self._next_to_go())

    async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
        await trio.lowlevel.checkpoint()
        for key in [k for k in self._entries if k[:2] == (tenant.tenant_id, config_name)]:
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._names -= entry.names
        use = self._use[key[0]]
        use.entries -= 1
        use.names -= entry.names
        if not use.entries:
            del self._use[key[0]]

    def _next_to_go(self) -> _Key:
        def share(tenant_id: str) -> int:
            use = self._use[tenant_id]
            return use.names if self._names > MAX_NAMES else use.entries

        largest = max(self._use, key=share)
        return next(key for key in self._entries if key[0] == largest)
