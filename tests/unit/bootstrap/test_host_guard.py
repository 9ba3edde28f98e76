"""The guard that the settings make, in every role."""

import socket
from pathlib import Path
from typing import Any

import pytest

from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.host_guard import host_guard, own_hosts
from fetcher.datasources.host_guard import HostRefused
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
