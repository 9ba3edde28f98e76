"""Writes to MongoDB that took effect and whose answer never came."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, open_mongo_records
from fetcher.bridge import open_asyncio
from fetcher.domain.connections import TlsSettings, UpdateAnswer
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import Claimed, FinishAnswer, LeaseState
from tests.faults.mongo_proxy import MongoWriteProxy, WriteFault
from tests.integration.mongo.builders import a_connection, a_job, completed, failed
from tests.integration.mongo.lossy_proxy import LossyProxy

Raw = Database[dict[str, Any]]

LATER = timedelta(seconds=1)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.usefixtures("sockets_of_cancelled_connects_are_collected"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


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


async def test_jobs_whose_claim_for_dispatch_was_not_answered_are_given_all_the_same(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    """They would wait for the end of a lease that nobody knows of."""
    proxy, records = proxied
    jobs = [a_job(), a_job(), a_job()]
    for job in jobs:
        await records.jobs.insert(job)
    [foreign] = await records.dispatch.claim_due(limit=1, lease_seconds=15)
    claims = await losing(
        proxy, "update", lambda: records.dispatch.claim_due(limit=5, lease_seconds=15)
    )
    assert isinstance(claims, list)
    rest = {job.id for job in jobs} - {foreign.job.id}
    assert {claim.job.id for claim in claims} == rest
    assert {claim.dispatch_seq for claim in claims} == {0}
    assert await records.dispatch.claim_due(limit=5, lease_seconds=15) == []


async def test_events_whose_claim_was_not_answered_are_given_all_the_same(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    jobs = [a_job(), a_job()]
    for job in jobs:
        await records.jobs.insert(job)
        claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        await records.leases.finish(claim.lease, completed())
    wanted = [jobs[0].id]
    claims = await losing(
        proxy,
        "update",
        lambda: records.events.claim_due(limit=5, lease_seconds=30, job_ids=wanted),
    )
    assert isinstance(claims, list)
    assert [(claim.job_id, claim.attempts) for claim in claims] == [(jobs[0].id, 0)]
    [other] = await records.events.claim_due(limit=5, lease_seconds=30)
    assert other.job_id == jobs[1].id


async def test_a_claim_of_nothing_that_was_not_answered_is_unavailable(
    proxied: tuple[LossyProxy, MongoRecords],
) -> None:
    proxy, records = proxied
    with pytest.raises(PortUnavailable):
        await losing(proxy, "find", lambda: records.events.claim_due(limit=5, lease_seconds=30))


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


# --- writes that are refused once -------------------------------------------------------------


@pytest.fixture
async def of_a_set(raw: Raw, mongo_uri: str) -> AsyncIterator[tuple[MongoWriteProxy, MongoRecords]]:
    """The primary of a set, and a driver that repeats nothing by itself."""
    place = urlsplit(mongo_uri)
    host, port = place.hostname or "127.0.0.1", place.port or 27017
    proxy = MongoWriteProxy(host, port, database=raw.name)
    address = f"mongodb://127.0.0.1:{proxy.port}/?replicaSet=fetcher-t&retryWrites=false"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.run)
        async with (
            open_asyncio(pytest.fail),
            open_mongo_records(address, raw.name, allow_plaintext=True) as records,
        ):
            yield proxy, records
        nursery.cancel_scope.cancel()


async def test_a_primary_that_steps_down_delays_no_mark_of_an_event(
    of_a_set: tuple[MongoWriteProxy, MongoRecords],
) -> None:
    proxy, records = of_a_set
    jobs = [a_job(), a_job()]
    for job in jobs:
        await records.jobs.insert(job)
        claim = await records.leases.claim(job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        await records.leases.finish(claim.lease, completed())
    assert len(await records.events.claim_due(limit=5, lease_seconds=30)) == 2
    proxy.arm(WriteFault.NOT_PRIMARY, "mark its event as published")
    await records.events.mark_published(jobs[0].id)
    assert proxy.struck is not None
    proxy.arm(WriteFault.NOT_PRIMARY, "claim its event")  # what is put off is due, and not leased
    await records.events.postpone(jobs[1].id, retry_in_seconds=0, error_code="unavailable")
    assert proxy.struck is not None
    [again] = await records.events.claim_due(limit=5, lease_seconds=30)
    assert (again.job_id, again.attempts) == (jobs[1].id, 1)


async def test_a_primary_that_steps_down_delays_no_mark_of_a_dispatch(
    of_a_set: tuple[MongoWriteProxy, MongoRecords],
) -> None:
    proxy, records = of_a_set
    job = a_job()
    await records.jobs.insert(job)
    [claim] = await records.dispatch.claim_due(limit=1, lease_seconds=15)
    proxy.arm(WriteFault.NOT_PRIMARY, "mark as dispatched")
    assert await records.dispatch.mark_dispatched({job.id: claim.dispatch_seq}) == 1
    assert proxy.struck is not None
    stored = await records.jobs.get(job.id)
    assert stored is not None
    assert stored.dispatched_at is not None
