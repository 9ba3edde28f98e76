"""Internal data sources of one tenant, as the Tenant Manager has them (spec configuration 12.2)."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from fetcher.adapters.tenant_files import tenant_file
from fetcher.domain.connections import Connection, Origin, SourceType, TlsSettings
from fetcher.domain.internal_sources import (
    INTERNAL_SOURCES,
    InternalSourceMissing,
    internal_source_id,
)
from fetcher.domain.tenants import (
    SourcePlace,
    Tenant,
    TenantAnswerUnreadable,
    TenantError,
    TenantNotConfigured,
    TenantsUnavailable,
)
from fetcher.ports.tenants import TenantDirectory
from fetcher.tenancy import Noted

SERVICE: Final = "ledger"
MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {"midaz_onboarding": "onboarding", "midaz_transaction": "transaction", "plugin_crm": "crm"}
)
"""Of that service, by config name."""

_BEGIN: Final = "-----BEGIN "
"""PEM: no path has it."""
_SINCE_EVER: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What the Wire shows as an internal source's times (spec rest-api 13)."""
_WHERE: Final = "for this tenant"


class TenantInternalSources:
    """Implements :class:`fetcher.ports.InternalSources` for one tenant.

    ``noted`` is told of the key that a path led to, before anything else is done with it.
    """

    def __init__(self, directory: TenantDirectory, tenant: Tenant, *, noted: Noted) -> None:
        """Raise ValueError for nobody: no shared source stands in."""
        if not tenant.id:
            raise ValueError("internal sources of tenants need one")
        self._directory = directory
        self._tenant = tenant
        self._noted = noted

    async def find(self, config_name: str) -> Connection:
        """As the port says. What the Tenant Manager says against a source makes it missing; an
        answer that cannot be read is PortUnavailable, like none."""
        if config_name not in INTERNAL_SOURCES:
            raise InternalSourceMissing(config_name, _WHERE)
        place = await self._place(config_name)
        if place is None or place.type is not INTERNAL_SOURCES[config_name]:
            raise InternalSourceMissing(config_name, _WHERE)
        tls = await self._tls(place)
        is_sql = place.type is SourceType.POSTGRESQL
        return Connection(
            id=internal_source_id(config_name, self._tenant.id),
            config_name=config_name,
            type=place.type,
            host=place.host,
            port=place.port,
            database_name=place.database,
            username=place.user,
            password_encrypted="",
            plain_password=place.password,
            encryption_key_version="",
            origin=Origin.INTERNAL,
            created_at=_SINCE_EVER,
            updated_at=_SINCE_EVER,
            schema=place.schema or None,
            tls=tls,
            metadata=dict(place.options),
            listed_schema=place.user if is_sql and not place.schema else "",
        )

    async def _place(self, config_name: str) -> SourcePlace | None:
        """None where the Tenant Manager has none to give."""
        unreadable = TenantsUnavailable("failed to parse response")
        try:
            return await self._directory.source(self._tenant.id, SERVICE, MODULES[config_name])
        except TenantAnswerUnreadable:
            pass
        except TenantError:
            return None
        raise unreadable

    async def _tls(self, place: SourcePlace) -> TlsSettings | None:
        """The mode is the gate: certificates alone ask for nothing."""
        if not place.ssl_mode:
            return None
        ca, cert, key = [await _pem(each) for each in (place.ca, place.cert, place.key)]
        if key:
            self._noted([key])
        return TlsSettings(mode=place.ssl_mode, ca=ca, cert=cert, key=key)


async def _pem(told: str) -> str:
    """The text itself, or that of the file it names. Raise TenantsUnavailable where there is none:
    whoever mounts it may still be at it, and without it nothing is verified."""
    if not told or _BEGIN in told:
        return told
    pem = ""
    with suppress(TenantNotConfigured):
        pem = await tenant_file(told, what="a source's certificate")
    if _BEGIN not in pem:
        raise TenantsUnavailable("a certificate's file cannot be read")
    return pem
