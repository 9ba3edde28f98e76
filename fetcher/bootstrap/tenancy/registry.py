"""The tenants that are open now: what a process tells of all of them, and that no two have the
same place."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog

from fetcher.bootstrap.tenancy.tenant import OpenTenant
from fetcher.domain.tenants import BrokerPlace, MongoPlace, TenantConfig, TenantNotConfigured

log = structlog.get_logger(__name__)

MONGO_PORT: Final = 27017
"""Where an address tells none."""


class OpenTenants:
    def __init__(self) -> None:
        self._open: list[OpenTenant] = []
        self._dropped: Counter[str] = Counter()
        """Hints of those that have ended."""
        self._owners: dict[Hashable, list[str]] = {}
        """Of databases and virtual hosts; a tenant that is being renewed is there twice."""

    @contextmanager
    def owning_places(self, config: TenantConfig) -> Iterator[None]:
        """While the context is open, its database and its virtual host are this tenant's alone.

        Raise TenantNotConfigured where one is another open tenant's: whoever the Tenant Manager has
        mistaken, neither may see the other's records.
        """
        places = [
            *((key, "database") for key in _database_keys(config.database)),
            (_vhost_key(config.broker), "virtual host"),
        ]
        for place, what in places:
            owners = self._owners.get(place, [])
            if any(owner != config.tenant_id for owner in owners):
                log.error("tenant_place_is_anothers", tenant_id=config.tenant_id, what=what)
                raise TenantNotConfigured(f"its {what} is another tenant's")
        for place, _ in places:
            self._owners.setdefault(place, []).append(config.tenant_id)
        try:
            yield
        finally:
            for place, _ in places:
                self._owners[place].remove(config.tenant_id)
                if not self._owners[place]:
                    del self._owners[place]

    @contextmanager
    def holding(self, tenant: OpenTenant) -> Iterator[None]:
        self._open.append(tenant)
        try:
            yield
        finally:
            self._open.remove(tenant)
            self._dropped.update(tenant.hints_dropped)

    def hints_dropped(self) -> Mapping[str, int]:
        """By channel; it never falls."""
        dropped = Counter(self._dropped)
        for tenant in self._open:
            dropped.update(tenant.hints_dropped)
        return dropped

    def session_use(self) -> tuple[int, int]:
        """Sessions to sources: in use, and idle."""
        uses = [tenant.session_use for tenant in self._open]
        return sum(in_use for in_use, _ in uses), sum(idle for _, idle in uses)


def _database_keys(place: MongoPlace) -> Iterator[Hashable]:
    """The same whoever logs in: by each of its servers, as it is written, and its name."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    servers = f"{host}:{place.port}"
    if place.uri:
        listed = place.uri.partition("://")[2].partition("/")[0].partition("?")[0]
        servers = listed.rpartition("@")[2]
    for server in {_with_port(each) for each in servers.lower().split(",")}:
        yield server, place.database


def _with_port(server: str) -> str:
    return server if re.search(r":\d+$", server) else f"{server}:{MONGO_PORT}"


def _vhost_key(place: BrokerPlace) -> Hashable:
    return place.host.lower(), place.port, place.vhost
