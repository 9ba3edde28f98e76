"""A source's schema: from the host's cache, else from the source itself (spec 12)."""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace

from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.context import TenantContext
from fetcher_engine.failures import Checkpoint, Phase, from_source
from fetcher_engine.ports import Connector, SchemaCache
from fetcher_engine.schema import SchemaSnapshot
from fetcher_engine.sources import Sources


def fingerprint(descriptor: ConnectionDescriptor) -> str:
    """A digest of all that decides what discovery sees: a changed one finds no old schema."""
    parts = (
        descriptor.id,
        descriptor.type,
        descriptor.host,
        descriptor.port,
        descriptor.database_name,
        descriptor.schema,
        descriptor.username,
        descriptor.ssl_mode,
        descriptor.revision,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class SchemaResolver:
    """Resolves schemas for one operation."""

    def __init__(
        self, *, sources: Sources, cache: SchemaCache | None, checkpoint: Checkpoint
    ) -> None:
        self._sources = sources
        self._cache = cache
        self._checkpoint = checkpoint

    async def resolve(
        self, tenant: TenantContext, descriptor: ConnectionDescriptor
    ) -> SchemaSnapshot:
        """The cached snapshot as it is, else a discovered one, which is then cached."""
        cached = await self._cached(tenant, descriptor)
        if cached is not None:
            return cached
        snapshot = await self.discover(descriptor)
        await self._remember(tenant, descriptor, snapshot)
        return snapshot

    async def discover(self, descriptor: ConnectionDescriptor) -> SchemaSnapshot:
        """Ask the source; neither reads nor writes the cache."""

        async def ask(connector: Connector) -> SchemaSnapshot:
            return await from_source(
                connector.discover_schema,
                phase=Phase.DISCOVER,
                source=descriptor.config_name,
                checkpoint=self._checkpoint,
            )

        await self._checkpoint()
        snapshot = await self._sources.with_connector(descriptor, ask)
        return replace(snapshot, config_name=descriptor.config_name)

    async def _cached(
        self, tenant: TenantContext, descriptor: ConnectionDescriptor
    ) -> SchemaSnapshot | None:
        if self._cache is None:
            return None
        key = fingerprint(descriptor)
        try:
            return await self._cache.get_schema(tenant, descriptor.config_name, key)
        except Exception:  # noqa: BLE001 - whatever a cache raises is a miss (spec 5.9)
            return None

    async def _remember(
        self, tenant: TenantContext, descriptor: ConnectionDescriptor, snapshot: SchemaSnapshot
    ) -> None:
        if self._cache is None:
            return
        with suppress(Exception):  # a cache that does not store is no failure (spec 5.9)
            await self._cache.put_schema(tenant, snapshot, fingerprint(descriptor))
