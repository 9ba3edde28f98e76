"""Jobs that wait for a connection: parked by their owner, woken by its name."""

from datetime import timedelta
from typing import Any

from fetcher.domain.job_store import CancelAnswer, Claimed, ClaimRefusal
from fetcher.domain.jobs import Job, JobStatus
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    LEASE_SECONDS,
    a_mark,
    ago,
    cancelled,
    claimed,
    completed,
    inserted,
    now,
    read,
)

REASON = "connection sales_db is down"


async def parked(store: RecordStore, *, seconds: float = 60, **changes: Any) -> Job:
    job = await inserted(store, **changes)
    claim = await claimed(store, job)
    until = now() + timedelta(seconds=seconds)
    assert await store.leases.park(claim.lease, until=until, reason=REASON)
    return await read(store, job)


async def dispatchable(store: RecordStore) -> list[Job]:
    claims = await store.dispatch.claim_due(limit=50, lease_seconds=ALREADY_OVER)
    return [claim.job for claim in claims]


async def test_parked_job_waits_undispatched_without_owner_until_it_is_due(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    (dispatch,) = await store.dispatch.claim_due(limit=5, lease_seconds=LEASE_SECONDS)
    await store.dispatch.mark_dispatched({job.id: dispatch.dispatch_seq})
    claim = await claimed(store, job)
    until = now() + timedelta(seconds=60)
    assert await store.leases.park(claim.lease, until=until, reason=REASON)
    record = await read(store, job)
    assert record.status is JobStatus.PENDING
    assert (record.due_at, record.waiting_reason) == (until, REASON)
    assert (record.lease_token, record.lease_until, record.lease_owner) == (None, None, None)
    assert (record.dispatched_at, record.dispatch_seq) == (None, dispatch.dispatch_seq + 1)
    assert (record.attempt, record.takeovers) == (1, 0)
    assert record.started_at == claim.job.started_at
    assert [(each.attempt, each.code) for each in record.attempts] == [(1, "parked")]
    assert record.is_parked
    assert await dispatchable(store) == []
    answer = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.NOT_DUE


async def test_parked_job_that_is_due_is_dispatched_and_claimed_again(store: RecordStore) -> None:
    job = await parked(store, seconds=-1)
    assert [each.id for each in await dispatchable(store)] == [job.id]
    claim = await claimed(store, job)
    assert (claim.job.attempt, claim.job.takeovers) == (2, 0)
    assert (claim.job.due_at, claim.job.waiting_reason) == (None, None)


async def test_job_that_is_due_within_a_second_is_not_refused(store: RecordStore) -> None:
    """Another process, whose clock is a little ahead, has dispatched it."""
    job = await parked(store, seconds=0.5)
    answer = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS)
    assert isinstance(answer, Claimed)


async def test_park_without_the_lease_is_refused(store: RecordStore) -> None:
    job = await inserted(store)
    old = await claimed(store, job, lease_seconds=ALREADY_OVER)
    new = await claimed(store, job)
    assert not await store.leases.park(old.lease, until=ago(-60), reason=REASON)
    assert await read(store, job) == new.job
    await store.leases.finish(new.lease, completed())
    assert not await store.leases.park(new.lease, until=ago(-60), reason=REASON)
    assert (await read(store, job)).status is JobStatus.COMPLETED


async def test_job_that_was_asked_to_stop_is_left_to_the_reaper_instead(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.jobs.request_cancel(job.id, a_mark("failed"))
    assert await store.leases.park(claim.lease, until=ago(-60), reason=REASON)
    (expired,) = await store.expired.find_expired(limit=5)
    assert expired.id == job.id
    assert await store.expired.finish(expired, cancelled())
    assert (await read(store, job)).status is JobStatus.CANCELLED


async def test_parked_job_is_cancelled_at_once(store: RecordStore) -> None:
    job = await parked(store)
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.CANCELLED
    assert (await read(store, job)).status is JobStatus.CANCELLED
    assert await store.dispatch.wake_parked("sales_db", told=5) == []


async def test_woken_jobs_are_those_that_wait_and_read_from_the_connection(
    store: RecordStore,
) -> None:
    first = await parked(store)
    both = await parked(store, mapped_fields={"crm": {"t": ("a",)}, "sales_db": {"t": ("a",)}})
    other = await parked(store, mapped_fields={"crm": {"t": ("a",)}})
    due_already = await parked(store, seconds=-1)
    plain_wait = await inserted(store, due_at=ago(-60))
    running = await claimed(store, await inserted(store))
    woken = await store.dispatch.wake_parked("sales_db", told=5)
    assert sorted(woken) == sorted([first.id, both.id])
    due = {first.id, both.id, due_already.id}
    assert {job.id for job in await dispatchable(store)} == due
    assert (await read(store, first)).waiting_reason == REASON
    assert await read(store, other) == other
    assert await read(store, plain_wait) == plain_wait
    assert (await read(store, running.job)).status is JobStatus.PROCESSING
    assert await store.dispatch.wake_parked("sales_db", told=5) == []
    claim = await claimed(store, first)
    assert claim.job.waiting_reason is None


async def test_all_are_woken_however_few_are_told(store: RecordStore) -> None:
    jobs = [await parked(store) for _ in range(4)]
    told = await store.dispatch.wake_parked("sales_db", told=2)
    assert len(told) == 2
    assert set(told) <= {job.id for job in jobs}
    assert {job.id for job in await dispatchable(store)} == {job.id for job in jobs}


async def test_woken_job_does_not_keep_the_connection_until_it_is_claimed(
    store: RecordStore,
) -> None:
    job = await parked(store)
    await store.dispatch.wake_parked("sales_db", told=5)
    assert not await store.jobs.is_in_use("sales_db")
    await claimed(store, job)
    assert await store.jobs.is_in_use("sales_db")
