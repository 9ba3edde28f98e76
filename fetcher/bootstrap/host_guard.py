"""The host guard as the settings want it, with the addresses of our own dependencies."""

from urllib.parse import urlsplit

import structlog
import trio

from fetcher.datasources.addresses import resolve
from fetcher.datasources.host_guard import HostGuard, HostList
from fetcher.settings import Settings, entries_of, mongo_hosts, ports_of, redis_place
from fetcher_engine import SourceFailure

log = structlog.get_logger(__name__)

RESOLVE_SECONDS = 5.0


async def host_guard(settings: Settings) -> HostGuard | None:
    """None where it is off. Our own hosts are resolved once; one that nobody knows is its name."""
    if not settings.guards_hosts:
        return None
    names = own_hosts(settings)
    addresses: list[str] = []
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(_resolve, name, addresses)
    return HostGuard(
        allow=HostList.of(entries_of(settings.datasource_host_allow)),
        deny=HostList.of(entries_of(settings.datasource_host_deny)),
        own=HostList.of([*names, *addresses]),
        denied_ports=ports_of(settings.datasource_port_deny),
    )


def own_hosts(settings: Settings) -> frozenset[str]:
    """Record store, broker, bucket, Redis and authorization service, as far as they lie outside of
    this process."""
    urls = [settings.object_storage_endpoint]
    if settings.plugin_auth_enabled:
        urls += [settings.plugin_auth_address, settings.plugin_auth_jwks_url]
    found = {
        *mongo_hosts(settings),
        settings.rabbitmq_host.strip("[]"),
        redis_place(settings)[0],
        *(urlsplit(url).hostname or "" for url in urls if url),
    }
    return frozenset(name.lower() for name in found if name)


async def _resolve(name: str, addresses: list[str]) -> None:
    with trio.move_on_after(RESOLVE_SECONDS):
        try:
            addresses += [each.partition("%")[0] for each in await resolve(name, 0)]
        except SourceFailure:
            pass
        else:
            return
    log.warning("own_host_unresolved", host=name, meaning="refused as a source by its name only")
