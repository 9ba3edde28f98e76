"""MongoDB away, coming back, and falling silent in the middle of an operation."""

import gc
import socket
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import trio
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records, server
from fetcher.adapters.mongo.failures import NeverSent
from fetcher.bridge import open_asyncio
from fetcher.domain.connections import TlsSettings, UpdateAnswer
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import Claimed, FinishAnswer, LeaseState
from fetcher.ports import ProbeStatus
from tests.integration.mongo.builders import a_connection, a_job, completed, failed
from tests.integration.mongo.lossy_proxy import LossyProxy, address_of, lossy_proxy

Raw = Database[dict[str, Any]]

LATER = timedelta(seconds=1)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def sockets_of_cancelled_connects_are_collected() -> Iterator[None]:
    """pymongo 4.20 leaves such a socket to the garbage collector: not in somebody else's test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OPERATION_SECONDS", 1.0)
    monkeypatch.setattr(server, "SETTLE_SECONDS", 1.0)


@pytest.fixture
async def proxied(
    short_deadlines: None, raw: Raw, mongo_uri: str
) -> AsyncIterator[tuple[LossyProxy, MongoRecords]]:
    async with (
        lossy_proxy(mongo_uri) as (proxy, address),
        open_asyncio(pytest.fail),
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
    ):
        await records.jobs.latest_ended()
        yield proxy, records


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# --- away -------------------------------------------------------------------------------------


async def test_a_server_that_is_away_at_start_is_found_when_it_comes(
    short_deadlines: None, asyncio_room: None, raw: Raw, mongo_uri: str
) -> None:
    port = free_port()
    async with open_mongo_records(address_of(port), raw.name, allow_plaintext=True) as records:
        with pytest.raises(PortUnavailable) as caught:
            await records.jobs.insert(a_job())
        assert isinstance(caught.value, NeverSent)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
        down = await records.probe.check()
        assert (down.status, down.error, down.tls) == (ProbeStatus.DOWN, "timeout", False)
        async with lossy_proxy(mongo_uri, port=port):
            job = a_job()
            with trio.fail_after(10):
                while True:
                    try:
                        await records.jobs.insert(job)
                        break
                    except PortUnavailable:
                        await trio.sleep(0.05)
            assert await records.jobs.get(job.id) == job
            assert (await records.probe.check()).status is ProbeStatus.UP
    assert "uniq_job_hash_active" in raw["job"].index_information()


async def test_everybody_who_waits_for_an_absent_server_fails_in_time(
    short_deadlines: None, asyncio_room: None, raw: Raw
) -> None:
    failures: list[float] = []

    async def ask(records: MongoRecords) -> None:
        started_at = trio.current_time()
        with pytest.raises(PortUnavailable):
            await records.jobs.latest_ended()
        failures.append(trio.current_time() - started_at)

    address = address_of(free_port())
    async with (
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
        trio.open_nursery() as nursery,
    ):
        for _ in range(20):
            nursery.start_soon(ask, records)
    assert len(failures) == 20
    assert max(failures) < 4


@pytest.mark.parametrize("user", ["kim:s3cr3t-canary@", ""])
async def test_no_error_shows_the_address(
    short_deadlines: None, asyncio_room: None, raw: Raw, user: str
) -> None:
    address = f"mongodb://{user}127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=100"
    async with open_mongo_records(address, raw.name, allow_plaintext=True) as records:
        with pytest.raises(PortUnavailable) as caught:
            await records.jobs.latest_ended()
        shown = f"{caught.value!r} {caught.value.__context__!r} {await records.probe.check()!r}"
    assert "canary" not in shown


async def test_the_probe_answers_in_time_when_the_server_hangs(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    assert (await records.probe.check()).status is ProbeStatus.UP
    proxy.hold()
    started_at = trio.current_time()
    result = await records.probe.check()
    assert 1.5 < trio.current_time() - started_at < 2.5
    assert (result.status, result.error) == (ProbeStatus.DOWN, "timeout")
    assert result.latency_ms >= 1500
    proxy.let_go()


async def test_an_operation_has_a_deadline_when_the_server_hangs(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    proxy.hold()
    started_at = trio.current_time()
    with pytest.raises(PortUnavailable):
        await records.jobs.get(job.id)
    assert trio.current_time() - started_at < 3
    proxy.let_go()
    assert await records.jobs.get(job.id) == job


async def test_the_store_works_on_after_a_cancelled_operation(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    jobs = [a_job() for _ in range(10)]
    for job in jobs:
        await records.jobs.insert(job)
    for _ in range(3):
        proxy.hold()
        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(records.jobs.get, job.id)
            await proxy.holding.wait()
            nursery.cancel_scope.cancel()
        proxy.let_go()
        assert [await records.jobs.get(job.id) for job in jobs] == jobs


async def test_a_cancelled_preparation_is_done_by_the_next_operation(
    short_deadlines: None, asyncio_room: None, raw: Raw, mongo_uri: str
) -> None:
    raw.client.drop_database(raw.name)
    async with (
        lossy_proxy(mongo_uri) as (proxy, address),
        open_mongo_records(address, raw.name, allow_plaintext=True) as records,
    ):
        proxy.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(records.jobs.latest_ended)
            await proxy.holding.wait()
            nursery.cancel_scope.cancel()
        proxy.let_go()
        assert await records.jobs.latest_ended() is None
    assert "uniq_job_hash_active" in raw["job"].index_information()


# --- answers that are lost --------------------------------------------------------------------

Losing = Callable[[], Awaitable[object]]


async def losing(proxy: LossyProxy, command: str, operation: Losing) -> object:
    """The operation's result while every answer to the command is lost."""
    proxy.losing = {command}
    try:
        return await operation()
    finally:
        assert proxy.lost > 0
        proxy.losing = set()


async def test_an_insert_whose_answer_is_lost_has_happened(
    proxied: tuple[LossyProxy, MongoRecords], raw: Raw
) -> None:
    proxy, records = proxied
    job, connection = a_job(), a_connection()
    await losing(proxy, "insert", lambda: records.jobs.insert(job))
    await losing(proxy, "insert", lambda: records.connections.insert(connection))
    assert await records.jobs.get(job.id) == job
    assert await records.connections.get(connection.id) == connection
    assert (raw["job"].count_documents({}), raw["connection"].count_documents({})) == (1, 1)


async def test_a_claim_whose_answer_is_lost_is_ours(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    claim = await losing(
        proxy, "update", lambda: records.leases.claim(job.id, owner="w", lease_seconds=60)
    )
    assert isinstance(claim, Claimed)
    assert claim.lease.attempt == 1
    assert await records.leases.check([claim.lease]) == {job.id: LeaseState.HELD}
    assert claim.job == await records.jobs.get(job.id)


async def test_a_terminal_write_whose_answer_is_lost_is_written_once(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    answer = await losing(proxy, "update", lambda: records.leases.finish(claim.lease, completed()))
    assert answer is FinishAnswer.WRITTEN
    first = await records.jobs.get(job.id)
    assert await records.leases.finish(claim.lease, failed()) is FinishAnswer.WRITTEN
    assert await records.jobs.get(job.id) == first
    assert (await records.events.backlog()).pending == 1


async def test_a_release_whose_answer_is_lost_has_happened(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    assert await losing(proxy, "update", lambda: records.leases.release(claim.lease)) is True
    released = await records.jobs.get(job.id)
    assert released is not None
    assert (released.status, released.dispatch_seq) == ("pending", 1)


async def test_a_patch_whose_answer_is_lost_is_written(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    before = a_connection(metadata={"a": {"n": 1}})
    await records.connections.insert(before)
    after = replace(
        before,
        updated_at=before.updated_at + LATER,
        metadata={"n": Decimal("1.50"), "l": [2**40, {"x": None}]},
        tls=TlsSettings(mode="require"),
    )

    async def patch() -> object:
        return await records.connections.update(after, before=before)

    assert await losing(proxy, "update", patch) is UpdateAnswer.WRITTEN
    assert await records.connections.get(before.id) == after


async def test_credentials_whose_new_seal_was_not_answered_are_sealed_anew(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    before = a_connection(tls=TlsSettings(mode="require", key="fetcher-encrypted:1:b2xk"))
    await records.connections.insert(before)
    after = replace(
        before,
        password_encrypted="bmV3",
        encryption_key_version="2",
        tls=TlsSettings(mode="require", key="fetcher-encrypted:2:bmV3"),
    )

    async def reseal() -> object:
        return await records.credentials.reseal(after, before=before)

    assert await losing(proxy, "update", reseal) is UpdateAnswer.WRITTEN
    assert await records.connections.get(before.id) == after


async def test_a_patch_that_lost_its_answer_and_its_place_is_not_taken_for_written(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    connection = a_connection()
    await records.connections.insert(connection)
    stale = replace(connection, host="stale", updated_at=connection.updated_at + LATER)
    too_old = replace(connection, updated_at=connection.updated_at - LATER)
    with pytest.raises(PortUnavailable):
        await losing(
            proxy,
            "update",
            lambda: records.connections.update(stale, before=too_old),
        )
    assert await records.connections.get(connection.id) == connection


async def test_assignment_and_deletion_whose_answers_are_lost_have_happened(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    connection = a_connection(product_name="")
    await records.connections.insert(connection)
    at = connection.updated_at + LATER

    async def assign() -> object:
        return await records.connections.assign(connection.id, product_name="bi", at=at)

    async def delete() -> object:
        return await records.connections.delete(connection.id, at=at + LATER)

    assigned = replace(connection, product_name="bi", updated_at=at)
    assert await losing(proxy, "findAndModify", assign) == assigned
    assert await losing(proxy, "update", delete) is True
    assert await records.connections.get(connection.id) is None
    assert await records.connections.delete(connection.id, at=at + LATER) is False


async def test_a_deleted_result_whose_answer_is_lost_is_noted(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    await records.leases.finish(claim.lease, completed())
    at = job.created_at + LATER
    marking = records.jobs.mark_result_deleted
    assert await losing(proxy, "update", lambda: marking(job.id, at=at)) is True
    assert await marking(job.id, at=at) is False
    found = await records.jobs.get(job.id)
    assert found is not None
    assert found.result_deleted_at == at


async def test_a_write_that_cannot_be_settled_is_unavailable_and_can_be_repeated(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    job = a_job()
    await records.jobs.insert(job)
    claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    proxy.losing = {"update", "find"}
    with pytest.raises(PortUnavailable) as caught:
        await records.leases.finish(claim.lease, completed())
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    proxy.losing = set()
    assert await records.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
