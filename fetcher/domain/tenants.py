"""Tenants: on whose behalf something runs, and where the Tenant Manager says that their things lie.

Spec configuration 11. Each tenant has a database, a virtual host and a part of the bucket of its
own; an object that is made for one tenant never meets another's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fetcher.domain.connections import SourceType
from fetcher.domain.errors import FetcherError, PortError, PortUnavailable
from fetcher.domain.ids import DEFAULT_TENANT, SINGLE_TENANT

SERVICE: Final = "fetcher"
"""What the Tenant Manager calls us."""

_TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,255}", re.ASCII)


def is_tenant_id(text: str) -> bool:
    """Spec configuration 11.2, step 4: no other id is a part of a key, a path or a header."""
    return _TENANT_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Tenant:
    """``id`` is empty where there are no tenants. Raise ValueError for one that cannot be."""

    id: str = ""

    def __post_init__(self) -> None:
        if self.id and not is_tenant_id(self.id):
            raise ValueError("the tenant's id has an invalid form")

    @property
    def engine_id(self) -> str:
        """The Engine's (spec engine 17.5)."""
        return self.id or DEFAULT_TENANT

    @property
    def event_id(self) -> str:
        """What events say (spec worker-and-events 8.2)."""
        return self.id or SINGLE_TENANT

    def object_prefix(self, key_prefix: str) -> str:
        """Where its results lie in the bucket (spec worker-and-events 6)."""
        return f"{key_prefix}{self.id}/" if self.id else key_prefix

    def limiter_key(self, key: str) -> str:
        """Of the limit of connection tests, which all tenants' managers share."""
        return f"tenant:{self.id}:{key}" if self.id else key


NO_TENANT: Final = Tenant()


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoPlace:
    """A tenant's record store (spec configuration 11.7), as the Tenant Manager tells it."""

    database: str
    uri: str = field(default="", repr=False)
    host: str = ""
    port: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    auth_source: str = ""
    direct_connection: bool = False
    max_pool_size: int = 100
    tls: bool = False
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_skip_verify: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlace:
    """A tenant's virtual host (spec configuration 11.8). ``tls`` is None where it is not told."""

    host: str
    port: int
    vhost: str
    user: str
    password: str = field(repr=False)
    tls: bool | None = None
    tls_ca_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantConfig:
    """Where one tenant's things lie. Equal configurations need no new connection."""

    tenant_id: str
    database: MongoPlace
    broker: BrokerPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """A module's database of another service of the tenant, as an internal source (12.2)."""

    type: SourceType
    host: str
    port: int
    database: str
    user: str = ""
    password: str = field(default="", repr=False)
    schema: str = ""
    ssl_mode: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    ca: str = field(default="", repr=False)
    """PEM text, or the path of a file that has it, as are the next two."""
    cert: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


class TenantError(PortError):
    """The Tenant Manager's word on a tenant: asking again would not help (spec 11.3)."""

    code = "tenant_error"


class TenantUnknown(TenantError):
    code = "tenant_not_found"

    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"tenant not found: {tenant_id}")


class TenantSuspended(TenantError):
    """``status`` is ``suspended`` or ``purged``."""

    code = "tenant_suspended"

    def __init__(self, status: str) -> None:
        super().__init__(f"tenant service is {status}")
        self.status = status


class TenantDenied(TenantError):
    code = "tenant_denied"

    def __init__(self) -> None:
        super().__init__("tenant service access denied")


class TenantNotConfigured(TenantError):
    """``what`` it lacks, in words without values."""

    code = "tenant_not_configured"

    def __init__(self, what: str) -> None:
        super().__init__(f"tenant service not configured: {what}")
        self.what = what


class TenantAnswerUnreadable(TenantError):
    """An answer that is none of the Tenant Manager's; nothing of it is told."""

    code = "tenant_answer_unreadable"

    def __init__(self) -> None:
        super().__init__("failed to parse response")


class TenantsUnavailable(PortUnavailable):
    """The Tenant Manager is away, too slow, or does not know itself: worth another try."""

    code = "tenants_unavailable"


class TenantsLeftAlone(TenantsUnavailable):
    """Its circuit breaker is open: it was not asked."""

    code = "tenants_left_alone"

    def __init__(self) -> None:
        super().__init__("tenant manager circuit breaker open")


class TenantContextRequired(FetcherError):
    """Something was about to be done for nobody (spec 11.3): no shared place stands in."""

    def __init__(self) -> None:
        super().__init__("FET-1080", "Tenant Context Required", "a tenant is required")
