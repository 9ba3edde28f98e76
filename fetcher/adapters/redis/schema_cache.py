"""Schemas that all managers share (spec rest-api 12.4, engine 12)."""

from typing import Final

import trio
from redis.asyncio import Redis

from fetcher.adapters.memory.schema_cache import MemorySchemaCache
from fetcher.adapters.redis.keys import schema_key
from fetcher.adapters.redis.schema_values import (
    MAX_BYTES,
    NotASchema,
    schema_from_json,
    schema_to_json,
)
from fetcher.adapters.redis.server import RedisServer
from fetcher.domain.errors import PortUnavailable
from fetcher.fair_places import FairPlaces, limiter_of
from fetcher_engine import SchemaSnapshot, TenantContext

MAX_FINGERPRINTS: Final = 16
"""Of one connection: requests for other tables have other ones. One more drops them all."""
FALLBACK_SECONDS: Final = 30.0
"""The longest life of an entry that was written to memory while Redis was away."""

PARSERS: Final = 2
"""Threads: a large schema takes some 30 ms, in which the loop goes on."""

# A connection's key is a hash: fingerprint -> "<end, ms of the server's clock> <JSON>".
# Whatever else lies there goes.

_GET: Final = """
local key, fingerprint, max_bytes = KEYS[1], ARGV[1], tonumber(ARGV[2])
if redis.call('TYPE', key).ok ~= 'hash' then
  redis.call('DEL', key)
  return false
end
local length = redis.call('HSTRLEN', key, fingerprint)
if length > 0 and length <= max_bytes + 32 then
  local value = redis.call('HGET', key, fingerprint)
  local space = string.find(string.sub(value, 1, 32), ' ', 1, true)
  local ends = space and tonumber(string.sub(value, 1, space - 1))
  local time = redis.call('TIME')
  if ends and ends > tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 then
    return string.sub(value, space + 1)
  end
end
redis.call('HDEL', key, fingerprint)
return false
"""

_PUT: Final = """
local key, fingerprint, json, ttl_ms, most =
  KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('TYPE', key).ok ~= 'hash' then
  redis.call('DEL', key)
elseif redis.call('HEXISTS', key, fingerprint) == 0 and redis.call('HLEN', key) >= most then
  redis.call('DEL', key)
end
local time = redis.call('TIME')
local ends = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + ttl_ms
redis.call('HSET', key, fingerprint, string.format('%.0f ', ends) .. json)
redis.call('PEXPIRE', key, ttl_ms)
return 1
"""


class RedisSchemaCache:
    """The Engine's ``SchemaCache`` in Redis. Never fails because of Redis.

    Memory stands in only while Redis is away. A schema that another process forgets meanwhile is
    therefore used here for 30 s at most, and no longer once Redis has answered: memory is then
    emptied. What lies in Redis while it cannot be told to forget ends with its time to live, and
    answers no changed connection before: that one's fingerprint is another.
    """

    def __init__(
        self, server: RedisServer, *, ttl_seconds: float, single_tenant: str | None
    ) -> None:
        """``single_tenant``: the tenant whose keys have no prefix, None where tenants are many."""
        self._server = server
        self._ttl_ms = int(ttl_seconds * 1000)
        self._single_tenant = single_tenant
        self._memory_seconds = min(ttl_seconds, FALLBACK_SECONDS)
        self._memory: MemorySchemaCache | None = None
        self._parsers = FairPlaces(PARSERS)

    async def get_schema(
        self, tenant: TenantContext, config_name: str, fingerprint: str
    ) -> SchemaSnapshot | None:
        """As the port says; an entry that cannot be read is deleted. Raise ValueError for a
        tenant's id that no key can have."""
        key = self._key(tenant, config_name)

        async def get(client: Redis) -> object:
            script = client.register_script(_GET)
            return await script(keys=[key], args=[fingerprint, MAX_BYTES])

        async def forget(client: Redis) -> None:
            await client.hdel(key, fingerprint)

        try:
            data = await self._server.run(get, tenant_id=tenant.tenant_id)
            self._memory = None
            if data is None:
                return None
            found = await self._read(data, tenant, config_name)
            if found is None:
                await self._server.run(forget, tenant_id=tenant.tenant_id)
            return found
        except PortUnavailable:
            if self._memory is None:
                return None
            return await self._memory.get_schema(tenant, config_name, fingerprint)

    async def put_schema(
        self, tenant: TenantContext, snapshot: SchemaSnapshot, fingerprint: str
    ) -> None:
        """A schema of more than 1 MiB as JSON is not kept."""
        key = self._key(tenant, snapshot.config_name)
        data = schema_to_json(snapshot)
        if data is None:
            return

        async def put(client: Redis) -> None:
            script = client.register_script(_PUT)
            await script(keys=[key], args=[fingerprint, data, self._ttl_ms, MAX_FINGERPRINTS])

        try:
            await self._server.run(put, tenant_id=tenant.tenant_id)
        except PortUnavailable:
            if self._memory is None:
                self._memory = MemorySchemaCache(ttl_seconds=self._memory_seconds)
            await self._memory.put_schema(tenant, snapshot, fingerprint)
        else:
            self._memory = None

    async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
        key = self._key(tenant, config_name)
        if self._memory is not None:
            await self._memory.invalidate_schema(tenant, config_name)

        async def forget(client: Redis) -> None:
            await client.delete(key)

        try:
            await self._server.run(forget, tenant_id=tenant.tenant_id)
        except PortUnavailable:
            return
        self._memory = None

    async def _read(
        self, data: object, tenant: TenantContext, config_name: str
    ) -> SchemaSnapshot | None:
        """In turn by tenant; None for what is no schema."""
        limiter = limiter_of(self._parsers.of(tenant.tenant_id, PARSERS))
        return await trio.to_thread.run_sync(_schema_of, data, config_name, limiter=limiter)

    def _key(self, tenant: TenantContext, config_name: str) -> bytes:
        return schema_key(tenant.tenant_id, config_name, single_tenant=self._single_tenant)


def _schema_of(data: object, config_name: str) -> SchemaSnapshot | None:
    if not isinstance(data, bytes):
        return None
    try:
        snapshot = schema_from_json(data)
    except NotASchema:
        return None
    return snapshot if snapshot.config_name == config_name else None
