"""Data sources that the operator configures, under names that nobody else can have
(spec datasources 14, configuration 12).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID, uuid5

from fetcher.domain.connections import SourceType
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import ConnectionId

_NAMESPACE: Final = UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")


INTERNAL_SOURCES: Final[Mapping[str, SourceType]] = MappingProxyType(
    {
        "midaz_onboarding": SourceType.POSTGRESQL,
        "midaz_transaction": SourceType.POSTGRESQL,
        "plugin_crm": SourceType.MONGODB,
    }
)
"""Their types by config name. A connection that is stored under such a name is never used."""


def internal_source_id(config_name: str, tenant_id: str = "") -> ConnectionId:
    """The same in every process. Without tenants the tenant's id is empty (Wire)."""
    return ConnectionId(uuid5(_NAMESPACE, f"{tenant_id}/{config_name}"))


def internal_source_name(connection_id: ConnectionId, tenant_id: str = "") -> str | None:
    """The config name that has this id, None for the id of a stored connection."""
    ids = {internal_source_id(name, tenant_id): name for name in INTERNAL_SOURCES}
    return ids.get(connection_id)


class InternalSourceMissing(FetcherError):
    """A name of the registry that nobody gave a data source for: ``where`` it would have been."""

    def __init__(self, config_name: str, where: str = "via environment variables") -> None:
        super().__init__(
            "FET-1020",
            "Missing Data Source",
            f"internal datasource '{config_name}' not configured {where}",
        )
        self.config_name = config_name
