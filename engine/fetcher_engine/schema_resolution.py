"""A source's schema: from the host's cache, else from the source itself (spec 12)."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.context import TenantContext
from fetcher_engine.discovery_flights import DiscoveryFlights
from fetcher_engine.errors import EngineError
from fetcher_engine.failures import (
    NOTHING_ASKED,
    Checkpoint,
    Phase,
    asked_names,
    from_source,
    if_it_can,
)
from fetcher_engine.ports import Connector, SchemaCache
from fetcher_engine.schema import SchemaSnapshot, TableSnapshot
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
        self,
        *,
        sources: Sources,
        cache: SchemaCache | None,
        flights: DiscoveryFlights,
        checkpoint: Checkpoint,
    ) -> None:
        self._sources = sources
        self._cache = cache
        self._flights = flights
        self._checkpoint = checkpoint

    async def resolve(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        asked: Mapping[str, Collection[str]] = NOTHING_ASKED,
    ) -> SchemaSnapshot:
        """The cached snapshot as it is, else a discovered one, which is then cached.

        Callers that miss at once share one discovery. Without a cache each call asks the source,
        so that it sees what was there when it was made. ``asked`` are the fields that the caller
        named, by table: a failure names no others, whoever's discovery it was.
        """
        if self._cache is None:
            return await self.discover(descriptor, asked)
        cache, key = self._cache, fingerprint(descriptor)
        cached = await self._cached(cache, tenant, descriptor.config_name, key)
        if cached is not None:
            return cached

        async def discover_and_remember() -> SchemaSnapshot:
            snapshot = await self.discover(descriptor, asked)
            # a cache that does not store is no failure (spec 5.9)
            await if_it_can(lambda: cache.put_schema(tenant, snapshot, key))
            return snapshot

        flight = tenant.tenant_id, descriptor.config_name, key
        try:
            return await self._flights.join(flight, discover_and_remember, self._checkpoint)
        except EngineError as error:
            failure = error
        failure.table, failure.column = asked_names(failure.table, failure.column, asked)
        raise failure

    async def discover(
        self,
        descriptor: ConnectionDescriptor,
        asked: Mapping[str, Collection[str]] = NOTHING_ASKED,
    ) -> SchemaSnapshot:
        """Ask the source; neither reads nor writes the cache."""

        async def ask(connector: Connector) -> SchemaSnapshot:
            async def discovered() -> SchemaSnapshot:
                snapshot = await connector.discover_schema()
                _require_sound(snapshot)
                return replace(snapshot, config_name=descriptor.config_name)

            return await from_source(
                discovered,
                phase=Phase.DISCOVER,
                source=descriptor.config_name,
                checkpoint=self._checkpoint,
                asked=asked,
            )

        await self._checkpoint()
        return await self._sources.with_connector(descriptor, ask)

    async def _cached(
        self, cache: SchemaCache, tenant: TenantContext, config_name: str, key: str
    ) -> SchemaSnapshot | None:
        # whatever a cache raises, and what is no schema, is a miss (spec 5.9)
        cached: object = await if_it_can(lambda: cache.get_schema(tenant, config_name, key))
        return cached if isinstance(cached, SchemaSnapshot) else None


class NotASchema(Exception):
    """A connector discovered something that is no schema."""


def _require_sound(snapshot: object) -> None:
    if not isinstance(snapshot, SchemaSnapshot):
        raise NotASchema
    for table in snapshot.tables:
        _require_sound_table(table)


def _require_sound_table(table: object) -> None:
    if not isinstance(table, TableSnapshot) or not isinstance(table.fields, list | tuple):
        raise NotASchema
    if not all(isinstance(name, str) for name in (table.name, *table.fields)):
        raise NotASchema
