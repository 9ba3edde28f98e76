"""The limit of connection tests over all replicas (spec rest-api 8.7, 12.4)."""

from typing import Final

from redis.asyncio import Redis
from redis.exceptions import InvalidResponse

from fetcher.adapters.memory.limiter import CAPACITY, REFILL_SECONDS, MemoryTestLimiter
from fetcher.adapters.redis.keys import limiter_key, tenant_of
from fetcher.adapters.redis.server import RedisServer
from fetcher.domain.errors import PortUnavailable

KEEP_MS: Final = 120_000
"""Twice the time in which an empty bucket is full again."""

_TAKE: Final = """
local key, capacity, refill_ms, keep_ms =
  KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local tokens = capacity
if redis.call('TYPE', key).ok == 'hash' then
  local kept = redis.call('HMGET', key, 'tokens', 'last_refill_ms')
  local left, since = tonumber(kept[1] or ''), tonumber(kept[2] or '')
  -- what is no number of tokens is not of our making; a clock may have been set back
  if left and since and left >= 0 and left <= capacity and since >= 0 then
    tokens = math.min(capacity, left + math.max(0, now - since) / refill_ms)
  end
else
  redis.call('DEL', key)
end
local wait = 0
if tokens < 1 - 1e-9 then
  wait = math.ceil((1 - tokens) * refill_ms - 1e-6)
else
  tokens = math.max(0, tokens - 1)
end
redis.call('HSET', key, 'tokens', string.format('%.17g', tokens),
  'last_refill_ms', string.format('%.0f', now))
redis.call('PEXPIRE', key, keep_ms)
return wait
"""


class RedisTestLimiter:
    """The token bucket of :class:`MemoryTestLimiter` by the server's clock, one for all replicas.

    Never fails: while Redis is away this process counts for itself, from full buckets.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._fallback = MemoryTestLimiter()

    async def take(self, key: str) -> float:
        """Seconds to wait until there is a token: 0 means taken."""
        name = limiter_key(key)

        async def take(client: Redis) -> float:
            script = client.register_script(_TAKE)
            wait_ms: object = await script(
                keys=[name], args=[CAPACITY, int(REFILL_SECONDS * 1000), KEEP_MS]
            )
            if not isinstance(wait_ms, int) or not 0 <= wait_ms <= REFILL_SECONDS * 1000:
                raise InvalidResponse
            return wait_ms / 1000

        try:
            return await self._server.run(take, tenant_id=tenant_of(key))
        except PortUnavailable:
            return await self._fallback.take(key)
