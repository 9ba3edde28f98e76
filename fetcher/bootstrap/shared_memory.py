"""What managers share, in Redis, or what one process remembers for itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fetcher.adapters.memory.limiter import MemoryTestLimiter
from fetcher.adapters.memory.schema_cache import MemorySchemaCache
from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.limiter import RedisTestLimiter
from fetcher.adapters.redis.schema_cache import RedisSchemaCache
from fetcher.adapters.redis.server import RedisServer, open_redis
from fetcher.domain.ids import DEFAULT_TENANT
from fetcher.ports import Probe, TestLimiter
from fetcher.settings import Role, Settings, redis_ca_pem, redis_place
from fetcher_engine import SchemaCache, TenantContext


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """``schemas`` is None where they are not cached. ``is_away`` is None where there is no Redis,
    else it says whether process memory stands in for it now."""

    limiter: TestLimiter
    schemas: SchemaCache | None
    probes: tuple[Probe, ...] = ()
    is_away: Callable[[], bool] | None = None

    async def forget_schemas(self, tenant: TenantContext, config_name: str) -> None:
        """After it was changed or deleted, or lacked what was asked for; never fails."""
        if self.schemas is not None:
            await self.schemas.invalidate_schema(tenant, config_name)


@asynccontextmanager
async def open_shared_memory(settings: Settings, role: Role) -> AsyncIterator[SharedMemory]:
    """Redis for a manager where it is set; it may be away, now or later."""
    if not (settings.uses_redis and role.manages):
        yield process_memory(settings)
        return
    async with open_redis(redis_address(settings)) as server:
        yield SharedMemory(
            limiter=RedisTestLimiter(server),
            schemas=redis_schemas(settings, server),
            probes=(server.probe,),
            is_away=lambda: server.is_away,
        )


def process_memory(settings: Settings) -> SharedMemory:
    seconds = settings.schema_cache_ttl_seconds
    return SharedMemory(
        limiter=MemoryTestLimiter(),
        schemas=MemorySchemaCache(ttl_seconds=seconds) if seconds else None,
    )


def redis_schemas(settings: Settings, server: RedisServer) -> SchemaCache | None:
    seconds = settings.schema_cache_ttl_seconds
    if not seconds:
        return None
    single_tenant = None if settings.multi_tenant_enabled else DEFAULT_TENANT
    return RedisSchemaCache(server, ttl_seconds=seconds, single_tenant=single_tenant)


def redis_address(settings: Settings) -> RedisAddress:
    host, port = redis_place(settings)
    return RedisAddress(
        host=host,
        port=port,
        user=settings.redis_user,
        password=settings.redis_password.get_secret_value(),
        database=settings.redis_db,
        tls=settings.redis_tls,
        ca_pem=redis_ca_pem(settings),
    )
