"""What operations say of the tenant on whose behalf they run."""

from collections.abc import Mapping

from quart import request

from fetcher.api.asgi import request_id_of
from fetcher.api.services import ApiServices
from fetcher.domain.tenants import Tenant
from fetcher.ports import SpanValue, TestLimiter
from fetcher_engine import TenantContext


def request_tenant(tenant: Tenant) -> TenantContext:
    """For the Engine; without tenants it is the one that stands for nobody in particular."""
    return TenantContext.new(tenant.engine_id).with_request_id(request_id_of(request.scope))


def tenant_attributes(tenant: Tenant) -> Mapping[str, SpanValue]:
    """What spans say of it; nothing without tenants."""
    return {"tenant.id": tenant.id} if tenant.id else {}


def tenant_limiter(services: ApiServices) -> TestLimiter:
    """The tenant's part of the limit (spec rest-api 8.7), which all tenants' managers share."""
    return (
        _TenantLimiter(services.limiter, services.tenant)
        if services.tenant.id
        else services.limiter
    )


class _TenantLimiter:
    def __init__(self, shared: TestLimiter, tenant: Tenant) -> None:
        self._shared = shared
        self._tenant = tenant

    async def take(self, key: str) -> float:
        return await self._shared.take(self._tenant.limiter_key(key))
