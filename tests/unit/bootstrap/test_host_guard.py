"""The guard that the settings make, in every role."""

import socket
import threading
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dns.name
import dns.resolver
import pytest
import trio
import trio.testing

from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.host_guard import host_guard, own_hosts, tenant_hosts_refused
from fetcher.bootstrap.tenancy.fair_threads import FairThreads
from fetcher.datasources.host_guard import HostGuard, HostList, HostRefused
from fetcher.datasources.threads import PROCESS_THREADS
from fetcher.domain.tenants import BrokerPlace, MongoPlace, TenantConfig
from fetcher.settings import Role, Settings, load_settings

OUTSIDE = {
    "MONGO_URI": "mongodb://u:p%40ss@Mongo1.acme.test:27017,[2a00::7]:27018/?replicaSet=r",
    "MONGO_NAME": "fetcher",
    "RABBITMQ_HOST": "rabbit.acme.test",
    "RABBITMQ_DEFAULT_USER": "u",
    "RABBITMQ_DEFAULT_PASS": "p",
    "RABBITMQ_JOB_EVENTS_EXCHANGE": "events",
    "STREAMING_ENABLED": "true",
    "STREAMING_CLOUDEVENTS_SOURCE": "//here",
    "REDIS_HOST": "Redis.acme.test:6380",
    "OBJECT_STORAGE_BUCKET": "results",
    "OBJECT_STORAGE_ENDPOINT": "https://S3.acme.test:9000",
    "APP_ENC_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "ALLOW_INSECURE_TLS": "true",
    "DATASOURCE_HOST_GUARD": "on",
}
KNOWN = {"mongo1.acme.test": "9.9.9.1", "rabbit.acme.test": "9.9.9.2"}


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        if host not in KNOWN:
            raise socket.gaierror(-2, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (KNOWN[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


async def test_it_is_off_unless_asked_for() -> None:
    assert await host_guard(Settings()) is None


async def test_our_own_hosts_are_no_sources() -> None:
    settings = load_settings(OUTSIDE, Role.WORKER)
    assert own_hosts(settings) == {
        "mongo1.acme.test",
        "2a00::7",
        "rabbit.acme.test",
        "redis.acme.test",
        "s3.acme.test",
    }
    guard = await host_guard(settings)
    assert guard is not None
    for host, address in {
        "rabbit.acme.test": "8.8.8.8",
        "alias.example.net": "9.9.9.1",
        "2a00::7": "2a00::7",
        "s3.acme.test": "8.8.8.8",
    }.items():
        with pytest.raises(HostRefused):
            guard.judge(host, 5432, [address])
    guard.judge("db.example.net", 5432, ["9.9.9.9"])


async def test_with_tenants_it_is_on_and_knows_who_tells_of_them() -> None:
    settings = Settings(
        multi_tenant_enabled=True,
        multi_tenant_url="https://Tenants.acme.test./base",
        multi_tenant_redis_host="events.acme.test",
    )
    assert own_hosts(settings) >= {"tenants.acme.test", "events.acme.test"}
    guard = await host_guard(settings)
    assert guard is not None
    for host in ("tenants.acme.test", "events.acme.test"):
        assert guard.refuses_as_written(host, 5432)
        with pytest.raises(HostRefused):
            guard.judge(host, 5432, ["8.8.8.8"])
    with pytest.raises(HostRefused):
        guard.judge("127.0.0.1", 5432, ["127.0.0.1"])


def a_tenant(tenant_id: str, mongo: MongoPlace, broker: str) -> TenantConfig:
    place = BrokerPlace(host=broker, port=5671, vhost="v", user="u", password="p")
    return TenantConfig(tenant_id=tenant_id, database=mongo, broker=place)


def passes(guard: HostGuard, host: str, address: str = "8.8.8.8") -> bool:
    try:
        guard.judge(host, 5432, [address])
    except HostRefused:
        return False
    return True


def refused(guard: HostGuard | None, config: TenantConfig) -> AbstractAsyncContextManager[None]:
    return tenant_hosts_refused(guard, config, PROCESS_THREADS)


async def test_a_tenants_stores_are_nobodys_source_while_it_is_there() -> None:
    guard = HostGuard()
    mongo = MongoPlace(database="d", host="Mongo1.acme.test.", port=27017)
    async with refused(guard, a_tenant("a", mongo, "rabbit.acme.test")):
        assert not passes(guard, "mongo1.acme.test")
        assert not passes(guard, "rabbit.acme.test")
        assert not passes(guard, "alias.example.net", "9.9.9.2")
        assert guard.refuses_as_written("rabbit.acme.test", 5432)
        async with refused(guard, a_tenant("b", mongo, "other.acme.test")):
            assert not passes(guard, "other.acme.test")
        assert passes(guard, "other.acme.test")
        assert not passes(guard, "mongo1.acme.test"), "one of two who hold it is left"
    assert passes(guard, "mongo1.acme.test")
    assert passes(guard, "alias.example.net", "9.9.9.2")


async def test_all_servers_of_a_tenants_address_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(name: str, kind: str, *, lifetime: float) -> list[Any]:
        assert (name, kind) == ("_mongodb._tcp.cluster.acme.test", "SRV")
        return [SimpleNamespace(target=dns.name.from_text("mongo1.acme.test."))]

    monkeypatch.setattr(dns.resolver, "resolve", listed)
    guard = HostGuard()
    for uri in (
        "mongodb+srv://u:p@cluster.acme.test/db",
        "mongodb://u:p@mongo1.acme.test:1,second.acme.test:2/db",
    ):
        mongo = MongoPlace(database="d", uri=uri)
        async with refused(guard, a_tenant("a", mongo, "rabbit.acme.test")):
            assert not passes(guard, "mongo1.acme.test")
            assert not passes(guard, "alias.example.net", "9.9.9.1")
            assert passes(guard, "second.acme.test") is ("second" not in uri)


async def test_a_list_that_nobody_tells_leaves_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise dns.resolver.NXDOMAIN

    monkeypatch.setattr(dns.resolver, "resolve", unknown)
    guard = HostGuard()
    mongo = MongoPlace(database="d", uri="mongodb+srv://cluster.acme.test/db")
    async with refused(guard, a_tenant("a", mongo, "rabbit.acme.test")):
        assert not passes(guard, "cluster.acme.test")


async def test_what_the_operator_allows_exactly_passes_though_a_tenant_holds_it() -> None:
    guard = HostGuard(allow=HostList.of(["9.9.9.1", "9.9.9.0/24"]))
    mongo = MongoPlace(database="d", host="mongo1.acme.test", port=1)
    async with refused(guard, a_tenant("a", mongo, "rabbit.acme.test")):
        assert passes(guard, "alias.example.net", "9.9.9.1")
        assert not passes(guard, "alias.example.net", "9.9.9.2")


async def test_names_that_nobody_answers_for_keep_no_other_tenants_from_being_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()
    known = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        if host.startswith("silent"):
            answer.wait(10)
        return known(host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    guard, threads = HostGuard(), FairThreads()
    servers = ",".join(f"silent{number}.acme.test" for number in range(40))
    silent = MongoPlace(database="d", uri=f"mongodb://{servers}/db")
    mongo = MongoPlace(database="d", host="mongo1.acme.test", port=1)

    async def open_silent() -> None:
        config = a_tenant("a", silent, "rabbit.acme.test")
        async with tenant_hosts_refused(guard, config, threads.of_tenant("a")):
            pytest.fail("its names do not resolve")

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_silent)
            await trio.testing.wait_all_tasks_blocked()
            config = a_tenant("b", mongo, "rabbit.acme.test")
            with trio.fail_after(2):
                async with tenant_hosts_refused(guard, config, threads.of_tenant("b")):
                    assert not passes(guard, "alias.example.net", "9.9.9.1")
            nursery.cancel_scope.cancel()
    finally:
        answer.set()


async def test_without_a_guard_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", pytest.fail)
    mongo = MongoPlace(database="d", host="mongo1.acme.test", port=1)
    async with refused(None, a_tenant("a", mongo, "rabbit.acme.test")):
        pass


async def test_lists_reach_the_guard() -> None:
    guard = await host_guard(
        Settings(
            datasource_host_guard=True,
            datasource_host_allow="10.1.0.0/16",
            datasource_host_deny="8.8.8.8",
            datasource_port_deny="22",
        )
    )
    assert guard is not None
    guard.judge("10.1.2.3", 5432, ["10.1.2.3"])
    for host, port in (("8.8.8.8", 5432), ("10.1.2.3", 22), ("10.2.0.1", 5432)):
        with pytest.raises(HostRefused):
            guard.judge(host, port, [host])


async def test_opened_adapters_have_it(tmp_path: Path) -> None:
    settings = Settings(fetcher_data_dir=tmp_path, datasource_host_guard=True)
    async with open_adapters(settings, Role.ALL) as adapters:
        assert adapters.guard is not None
        assert adapters.guard.refuses_as_written("127.0.0.1", 5432)
