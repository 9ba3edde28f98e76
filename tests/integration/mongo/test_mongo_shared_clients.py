"""Tenants' databases over clients that they share."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from ssl import TLSVersion
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest
import structlog
import trio
from pymongo import AsyncMongoClient

from fetcher.adapters.mongo import shared_clients
from fetcher.adapters.mongo.shared_clients import SharedMongoClients, open_shared_clients
from fetcher.bridge import run_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import MongoPlace, TenantNotConfigured
from fetcher.ports import ProbeStatus
from tests.integration.datasources.mongo_server import running_server
from tests.integration.mongo.builders import a_job
from tests.servers.certificates import Authority
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration


@pytest.fixture
async def clients(
    asyncio_room: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SharedMongoClients]:
    monkeypatch.setattr(shared_clients, "GRACE_SECONDS", 0.2)
    async with open_shared_clients(allow_plaintext=True, idle_seconds=300) as opened:
        yield opened


@pytest.fixture
def place(mongo_uri: str, mongo_database: Callable[[], str]) -> Callable[..., MongoPlace]:
    """A place with a fresh database on the test server."""

    def make(**more: Any) -> MongoPlace:
        parts = urlsplit(mongo_uri)
        return MongoPlace(
            database=mongo_database(), host=parts.hostname or "", port=parts.port, **more
        )

    return make


async def test_tenants_of_one_server_share_a_client_and_see_only_their_database(
    clients: SharedMongoClients, place: Callable[..., MongoPlace]
) -> None:
    first, second = place(), place()
    async with clients.records(first) as of_first, clients.records(second) as of_second:
        job = a_job()
        await of_first.jobs.insert(job)
        assert clients.count == 1
        assert (await of_first.jobs.get(job.id)) is not None
        assert (await of_second.jobs.get(job.id)) is None


async def test_another_user_or_pool_has_a_client_of_its_own(
    clients: SharedMongoClients, place: Callable[..., MongoPlace]
) -> None:
    places = [
        place(),
        place(user="u", password="p"),
        place(user="u", password="q"),
        place(user="u", password="q", auth_source="ops"),
        place(max_pool_size=3),
        place(direct_connection=True),
    ]
    async with AsyncExitStack() as stack:
        for each in places:
            await stack.enter_async_context(clients.records(each))
        assert clients.count == len(places)


async def test_the_last_user_closes_the_client_after_a_grace(
    clients: SharedMongoClients, place: Callable[..., MongoPlace]
) -> None:
    first, second = place(), place()
    async with clients.records(first) as records:
        async with clients.records(second):
            pass
        await trio.sleep(0.3)
        assert (await records.probe.check()).status is ProbeStatus.UP
        opened, in_use = clients.connection_use()
        assert (opened >= 1, in_use) == (True, 0)
    assert clients.count == 1
    await eventually(lambda: clients.count == 0, deadline_seconds=5)
    assert clients.connection_use() == (0, 0)
    assert records.connection_use() == (0, 0)


async def test_a_tenant_that_comes_back_within_the_grace_finds_the_client(
    clients: SharedMongoClients,
    place: Callable[..., MongoPlace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_clients, "GRACE_SECONDS", 60.0)
    only = place()
    async with clients.records(only) as records:
        assert (await records.probe.check()).status is ProbeStatus.UP
    before = records.connection_use()
    async with clients.records(only) as again:
        assert again.connection_use() == before
        assert (await again.probe.check()).status is ProbeStatus.UP
        assert again.connection_use() == before


async def test_many_at_once_open_one_client(
    clients: SharedMongoClients, place: Callable[..., MongoPlace]
) -> None:
    only = place()
    seen: list[tuple[int, ProbeStatus]] = []

    async def use() -> None:
        async with clients.records(only) as records:
            found = await records.probe.check()
            seen.append((clients.count, found.status))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(use)
    assert seen == [(1, ProbeStatus.UP)] * 20


async def test_indexes_are_made_once_however_often_a_tenant_is_opened(
    clients: SharedMongoClients, place: Callable[..., MongoPlace], mongo_uri: str
) -> None:
    only = place()
    async with clients.records(only) as records:
        await records.jobs.latest_ended()
    with pymongo.MongoClient[dict[str, Any]](mongo_uri) as plain:
        job = plain[only.database]["job"]
        assert "uniq_job_hash_active" in job.index_information()
        job.drop_index("idx_job_status")
        async with clients.records(only) as records:
            await records.jobs.latest_ended()
        assert "idx_job_status" not in job.index_information()


async def test_connections_that_nobody_uses_are_closed(
    asyncio_room: None, place: Callable[..., MongoPlace]
) -> None:
    async with (
        open_shared_clients(allow_plaintext=True, idle_seconds=0.5) as clients,
        clients.records(place()) as records,
    ):
        await records.probe.check()
        assert clients.connection_use()[0] >= 1
        await eventually(lambda: clients.connection_use() == (0, 0), deadline_seconds=15)
        assert (await records.probe.check()).status is ProbeStatus.UP


async def test_a_tenant_whose_store_is_away_hinders_no_other(
    clients: SharedMongoClients,
    place: Callable[..., MongoPlace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fetcher.adapters.mongo.server.OPERATION_SECONDS", 0.5)
    away = MongoPlace(database="any", host="127.0.0.1", port=1)
    async with clients.records(away) as of_away, clients.records(place()) as records:
        with pytest.raises(PortUnavailable):
            await of_away.jobs.latest_ended()
        assert await records.jobs.latest_ended() is None


async def test_a_client_that_cannot_be_closed_is_nobodys_trouble(
    clients: SharedMongoClients,
    place: Callable[..., MongoPlace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def crash(*_: object) -> None:
        raise RuntimeError("canary")

    with structlog.testing.capture_logs() as logs:
        async with clients.records(place()) as records:
            with monkeypatch.context() as patch:
                async with clients.records(place(max_pool_size=3)) as other:
                    await other.probe.check()
                    real = AsyncMongoClient.__aexit__
                    patch.setattr(AsyncMongoClient, "__aexit__", crash)
                    driver = clients._clients[next(reversed(clients._clients))].client.driver
                await eventually(lambda: clients.count == 1, deadline_seconds=5)
                await eventually(
                    lambda: any(log["event"] == "mongo_client_not_closed" for log in logs),
                    deadline_seconds=5,
                )
            assert (await records.probe.check()).status is ProbeStatus.UP
    assert "canary" not in f"{logs}"
    await run_asyncio(real, driver, None, None, None)


async def test_plain_text_is_refused_where_the_process_does_not_allow_it(
    asyncio_room: None, place: Callable[..., MongoPlace]
) -> None:
    async with open_shared_clients(allow_plaintext=False, idle_seconds=300) as clients:
        with pytest.raises(TenantNotConfigured, match="requires TLS"):
            async with clients.records(place()):
                pytest.fail("it opened")
        assert clients.count == 0


@pytest.mark.parametrize(
    "uri",
    [
        "mongodb://kim:s3cr3t-canary@h1:99999/",
        "mongodb://kim:s3cr3t-canary@h1/?tls=perhaps",
        "mongodb://kim:s3cr3t-canary@h1/?nosuchoption=1",
        "mongodb://kim:s3cr3t-canary/@h1/",
        "mongodb+srv://kim:s3cr3t-canary@h1,h2/",
        "mongodb://kim:s3cr3t-canary@h1/?authMechanism=GSSAPI&authMechanismProperties=canary",
    ],
)
async def test_an_address_that_cannot_work_is_told_without_its_text(
    clients: SharedMongoClients, uri: str
) -> None:
    with pytest.raises(TenantNotConfigured) as caught:
        async with clients.records(MongoPlace(database="any", uri=uri)):
            pytest.fail("it opened")
    assert str(caught.value) == (
        "tenant service not configured: the driver does not accept the record store's address"
    )
    assert "canary" not in f"{caught.value.__cause__!r} {caught.value.__context__!r}"
    assert clients.count == 0


async def test_certificates_are_shown_and_judged(asyncio_room: None, tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    identity = authority.certificate("u7", client=True)
    for name, text in {
        "ca": authority.ca,
        "other": other.ca,
        "cert": identity.cert,
        "key": identity.key,
        "wrong": other.certificate("x", client=True).key,
    }.items():
        (tmp_path / name).write_text(text)

    def with_files(port: int, *, ca: str = "ca", **more: Any) -> MongoPlace:
        files = {"tls_cert_file": "cert", "tls_key_file": "key", "tls_ca_file": ca}
        paths = {option: str(tmp_path / name) for option, name in files.items()}
        return MongoPlace(database="any", host="127.0.0.1", port=port, **{**paths, **more})

    async def status(clients: SharedMongoClients, tried: MongoPlace) -> ProbeStatus:
        async with clients.records(tried) as records:
            return (await records.probe.check()).status

    server = authority.certificate("127.0.0.1")
    with running_server(tmp_path / "m", identity=server, client_ca=authority.ca) as port:
        async with open_shared_clients(allow_plaintext=False, idle_seconds=300) as clients:
            assert await status(clients, with_files(port)) is ProbeStatus.UP
            assert await status(clients, with_files(port, ca="other")) is ProbeStatus.DOWN
            unverified = with_files(port, ca="other", tls_skip_verify=True)
            with structlog.testing.capture_logs() as logs:
                assert await status(clients, unverified) is ProbeStatus.UP
            assert [log["event"] for log in logs] == ["unverified_connection"]
            without = with_files(port, tls_cert_file="", tls_key_file="")
            assert await status(clients, without) is ProbeStatus.DOWN
            mixed = with_files(port, tls_key_file=str(tmp_path / "wrong"))
            with pytest.raises(TenantNotConfigured, match="do not belong together"):
                await status(clients, mixed)


async def test_nothing_older_than_tls_1_2_is_spoken(asyncio_room: None) -> None:
    place = MongoPlace(database="any", host="h1", port=1, tls=True)
    async with (
        open_shared_clients(allow_plaintext=False, idle_seconds=300) as clients,
        clients.records(place),
    ):
        [shared] = clients._clients.values()
        context: Any = shared.client.driver.options.pool_options._ssl_context
        assert context.minimum_version >= TLSVersion.TLSv1_2
