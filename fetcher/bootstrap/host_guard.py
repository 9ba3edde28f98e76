"""The host guard as the settings want it, with the addresses of our own dependencies."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import structlog
import trio

from fetcher.adapters.mongo.srv_hosts import srv_hosts
from fetcher.datasources.addresses import resolve
from fetcher.datasources.host_guard import HostGuard, HostList, own_name
from fetcher.datasources.threads import PROCESS_THREADS, SourceThreads
from fetcher.domain.tenants import TenantConfig
from fetcher.settings import Settings, entries_of, mongo_hosts, mongo_uri, ports_of, redis_place
from fetcher.settings.mongo_address import hosts_of
from fetcher_engine import SourceFailure

log = structlog.get_logger(__name__)

RESOLVE_SECONDS = 5.0
_LISTED_IN_DNS = "mongodb+srv://"


async def host_guard(settings: Settings) -> HostGuard | None:
    """None where it is off. Our own hosts are resolved once; one that nobody knows is its name."""
    if not settings.guards_hosts:
        return None
    listed = mongo_uri(settings) if mongo_hosts(settings) else ""
    return HostGuard(
        allow=HostList.of(entries_of(settings.datasource_host_allow)),
        deny=HostList.of(entries_of(settings.datasource_host_deny)),
        own=HostList.of(await _with_addresses({*own_hosts(settings), *await _listed(listed)})),
        denied_ports=ports_of(settings.datasource_port_deny),
    )


def own_hosts(settings: Settings) -> frozenset[str]:
    """Record store, broker, bucket, Redis, authorization service and Tenant Manager with its Redis,
    as far as they lie outside of this process."""
    urls = [settings.object_storage_endpoint]
    if settings.plugin_auth_enabled:
        urls += [settings.plugin_auth_address, settings.plugin_auth_jwks_url]
    found = {
        *mongo_hosts(settings),
        settings.rabbitmq_host.strip("[]"),
        redis_place(settings)[0],
    }
    if settings.multi_tenant_enabled:
        urls.append(settings.multi_tenant_url)
        found.add(settings.multi_tenant_redis_host.strip("[]"))
    found.update(urlsplit(url).hostname or "" for url in urls if url)
    return frozenset(own_name(name) for name in found if name)


@asynccontextmanager
async def tenant_hosts_refused(
    guard: HostGuard | None, config: TenantConfig, threads: SourceThreads
) -> AsyncIterator[None]:
    """While the context is open, the tenant's record store and broker are nobody's source: neither
    by name nor by the addresses that they have now.

    Takes 5 seconds at most, where names do not resolve, and 6 more where their list in DNS does not
    come either. Names are looked up in the tenant's own ``threads``, so that they keep no other
    tenant's from being so. Without a guard nothing is.
    """
    if guard is None:
        yield
        return
    place = config.database
    stores = hosts_of(place.uri) if place.uri else (place.host,)
    names = {*stores, config.broker.host, *await _listed(place.uri)}
    entries = await _with_addresses({name for name in names if name}, threads)
    with guard.tenants.held(entries):
        yield


async def _listed(uri: str) -> Collection[str]:
    """The servers that an address names by a list in DNS."""
    if not uri.lower().startswith(_LISTED_IN_DNS):
        return ()
    return [host for name in hosts_of(uri) for host in await srv_hosts(name)]


async def _with_addresses(
    names: Collection[str], threads: SourceThreads = PROCESS_THREADS
) -> list[str]:
    addresses: list[str] = []
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(_resolve, name, addresses, threads)
    return [*names, *addresses]


async def _resolve(name: str, addresses: list[str], threads: SourceThreads) -> None:
    with trio.move_on_after(RESOLVE_SECONDS):
        try:
            found = await resolve(name, 0, threads=threads)
            addresses += [each.partition("%")[0] for each in found]
        except SourceFailure:
            pass
        else:
            return
    log.warning("own_host_unresolved", host=name, meaning="refused as a source by its name only")
