"""On whose behalf a request runs, and what each failure to find out is answered with.

Spec configuration 11.2 and rest-api 4. The tenant comes from the token alone: no header names it.
The token's signature was the business of authorization, which comes before.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from fetcher.api.problems import REQUESTS_LIMIT, RETRY_AFTER_SECONDS
from fetcher.api.routing import Handler
from fetcher.domain.access_tokens import TokenMalformed, read_token, token_in
from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.tenants import (
    Tenant,
    TenantDenied,
    TenantNotConfigured,
    TenantSuspended,
    TenantUnknown,
    is_tenant_id,
)

CLAIM: Final = "tenantId"
REQUESTS_LIMIT_SECONDS: Final = 1.0

_UNAUTHORIZED: Final = "Unauthorized"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredTenant:
    """A tenant as one request has it. ``handlers`` are its own, by the name of the route; once
    ``cut`` is set it is being left for good, and whoever is still in there is sent away."""

    tenant_id: str
    handlers: Mapping[str, Handler]
    cut: trio.Event


class TenantGate(Protocol):
    """Where requests come to their tenants."""

    def enter(self, tenant_id: str) -> AbstractAsyncContextManager[EnteredTenant]:
        """The tenant stays open at least until the context is left.

        Entering is bounded in time by the gate itself, and raises TenantError for what the Tenant
        Manager says of the tenant, PortUnavailable for what may pass. Leaving raises nothing.
        """
        ...


def tenant_of(authorization: str | None) -> Tenant:
    """Whom the ``Authorization`` header speaks for. Raise FetcherError, with status 401, for one
    that names no tenant."""
    token = token_in(authorization)
    if token is None:
        raise FetcherError("MISSING_TOKEN", _UNAUTHORIZED, "Authorization token is required")
    try:
        claimed = read_token(token).claims.get(CLAIM)
    except TokenMalformed:
        raise FetcherError(
            "INVALID_TOKEN", _UNAUTHORIZED, "Failed to parse authorization token"
        ) from None
    if not isinstance(claimed, str) or not claimed:
        raise FetcherError("MISSING_TENANT", _UNAUTHORIZED, "tenantId is required in JWT token")
    if not is_tenant_id(claimed):
        raise FetcherError("INVALID_TENANT", _UNAUTHORIZED, "tenantId has invalid format")
    return Tenant(claimed)


def not_entered(error: Exception) -> FetcherError:
    """What a caller is told whose tenant could not be entered (spec configuration 11.2).

    What may pass is 503, a Tenant Manager that is away or fails too; whatever nobody has foreseen
    is 500, and nothing of it is told.
    """
    match error:
        case TenantUnknown():
            return FetcherError("TENANT_NOT_FOUND", "Tenant Not Found", str(error))
        case TenantSuspended():
            return FetcherError("0131", "Service Suspended", str(error))
        case TenantDenied():
            return FetcherError("0131", "Access Denied", str(error))
        case TenantNotConfigured() | PortUnavailable():
            return unavailable()
        case _:
            return FetcherError(
                "TENANT_DB_ERROR", "Failed to resolve tenant database", "Internal server error"
            )


def unavailable() -> FetcherError:
    return FetcherError(
        "SERVICE_UNAVAILABLE",
        "Service Unavailable",
        "Service temporarily unavailable",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )


def too_many_requests(at_most: int) -> FetcherError:
    return FetcherError(
        "429",
        "Too Many Requests",
        f"the tenant has {at_most} requests under way already",
        retry_after_seconds=REQUESTS_LIMIT_SECONDS,
        error_code=REQUESTS_LIMIT,
    )
