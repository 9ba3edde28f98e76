"""For whom an operator's command works."""

from dataclasses import dataclass

from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.settings import Role, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    """Without tenants that is nobody in particular."""

    settings: Settings
    tenant: Tenant = NO_TENANT
    role: Role = Role.ALL

    @property
    def key_prefix(self) -> str:
        """Of the results' keys."""
        return self.tenant.object_prefix(self.settings.object_storage_key_prefix)
