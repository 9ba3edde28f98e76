"""DispatchOutbox: the job record as the outbox of work messages (design section 4, step 2)."""

from datetime import timedelta

import trio

from fetcher.domain.ids import JobId, new_job_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    LEASE_SECONDS,
    a_job,
    ago,
    claimed,
    completed,
    ended,
    inserted,
    now,
    read,
)

STALE_SECONDS = 600.0


async def due_ids(store: RecordStore, *, limit: int = 50, lease_seconds: float = 0) -> list[JobId]:
    claims = await store.dispatch.claim_due(limit=limit, lease_seconds=lease_seconds)
    return [claim.job.id for claim in claims]


async def test_pending_job_is_claimed_for_dispatch_as_it_stands(store: RecordStore) -> None:
    job = await inserted(store)
    (claim,) = await store.dispatch.claim_due(limit=50, lease_seconds=LEASE_SECONDS)
    assert (claim.job, claim.dispatch_seq) == (job, 0)


async def test_oldest_jobs_come_first_up_to_the_limit(store: RecordStore) -> None:
    jobs = [await inserted(store, created_at=ago(age)) for age in (10, 30, 20, 40)]
    oldest_first = [jobs[i].id for i in (3, 1, 2, 0)]
    assert await due_ids(store, limit=3) == oldest_first[:3]
    assert await due_ids(store) == oldest_first


async def test_claimed_job_is_not_given_to_another_until_the_lease_ends(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    assert await due_ids(store, lease_seconds=LEASE_SECONDS) == [job.id]
    assert await due_ids(store) == []
    other = await inserted(store)
    assert await due_ids(store, lease_seconds=ALREADY_OVER) == [other.id]
    assert await due_ids(store) == [other.id]


async def test_new_job_may_be_its_inserters_to_dispatch_until_the_lease_ends(
    store: RecordStore,
) -> None:
    held, left = a_job(), a_job()
    await store.jobs.insert(held, dispatch_lease_seconds=LEASE_SECONDS)
    await store.jobs.insert(left, dispatch_lease_seconds=ALREADY_OVER)
    assert await due_ids(store) == [left.id]
    assert await store.dispatch.mark_dispatched({held.id: held.dispatch_seq}) == 1
    assert (await read(store, held)).dispatched_at is not None


async def test_of_concurrent_dispatchers_each_job_goes_to_one(store: RecordStore) -> None:
    jobs = {(await inserted(store)).id for _ in range(10)}
    claimed_ids: list[JobId] = []

    async def claim() -> None:
        claimed_ids.extend(await due_ids(store, limit=4, lease_seconds=LEASE_SECONDS))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(claim)
    assert len(claimed_ids) == len(set(claimed_ids))
    claimed_ids += await due_ids(store, lease_seconds=LEASE_SECONDS)
    assert sorted(claimed_ids) == sorted(jobs)


async def test_hinted_jobs_alone_are_claimed(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(3)]
    hints = [jobs[2].id, new_job_id(), jobs[0].id, jobs[0].id]
    claims = await store.dispatch.claim_due(limit=50, lease_seconds=LEASE_SECONDS, job_ids=hints)
    assert {claim.job.id for claim in claims} == {jobs[0].id, jobs[2].id}
    assert len(claims) == 2
    assert await store.dispatch.claim_due(limit=5, lease_seconds=0, job_ids=hints) == []
    assert await store.dispatch.claim_due(limit=5, lease_seconds=0, job_ids=[]) == []
    assert await due_ids(store) == [jobs[1].id]


async def test_hinted_jobs_respect_the_limit(store: RecordStore) -> None:
    jobs = [await inserted(store, created_at=ago(age)) for age in (100, 300, 200)]
    claims = await store.dispatch.claim_due(
        limit=2, lease_seconds=LEASE_SECONDS, job_ids=[job.id for job in jobs]
    )
    assert [claim.job.id for claim in claims] == [jobs[1].id, jobs[2].id]


async def test_jobs_that_need_no_message_are_not_claimed(store: RecordStore) -> None:
    await inserted(store, due_at=now() + timedelta(hours=1))
    await claimed(store, await inserted(store))
    await ended(store, completed())
    dispatched = await inserted(store)
    assert await store.dispatch.mark_dispatched({dispatched.id: 0})
    parked_until_now = await inserted(store, due_at=ago(1), waiting_reason="breaker open")
    assert await due_ids(store) == [parked_until_now.id]


async def test_mark_notes_when_the_message_went_out(store: RecordStore) -> None:
    job = await inserted(store)
    assert await due_ids(store, lease_seconds=LEASE_SECONDS) == [job.id]
    assert await store.dispatch.mark_dispatched({job.id: 0})
    record = await read(store, job)
    assert record.dispatched_at is not None
    assert ago(5) <= record.dispatched_at <= now() + timedelta(seconds=2)
    assert record.dispatch_seq == 0
    assert await due_ids(store) == []


async def test_mark_is_refused_when_the_record_has_moved_on(store: RecordStore) -> None:
    processing = await inserted(store)
    await claimed(store, processing)
    assert not await store.dispatch.mark_dispatched({processing.id: 0})
    assert (await read(store, processing)).dispatched_at is None

    released = await inserted(store)
    await store.leases.release((await claimed(store, released)).lease)
    assert not await store.dispatch.mark_dispatched({released.id: 0})
    assert (await read(store, released)).dispatched_at is None
    assert await store.dispatch.mark_dispatched({released.id: 1})

    done = await ended(store, completed())
    assert not await store.dispatch.mark_dispatched({done.id: 0})
    assert not await store.dispatch.mark_dispatched({new_job_id(): 0})


async def test_released_job_is_free_of_the_dispatch_lease_before(store: RecordStore) -> None:
    job = await inserted(store)
    assert await due_ids(store, lease_seconds=LEASE_SECONDS) == [job.id]
    await store.leases.release((await claimed(store, job)).lease)
    assert await due_ids(store) == [job.id]


async def test_backlog_counts_pending_dispatched_jobs_and_the_stale_among_them(
    store: RecordStore,
) -> None:
    await inserted(store)
    for dispatched_at in (ago(700), ago(601), ago(5)):
        await inserted(store, dispatched_at=dispatched_at)
    started = await inserted(store, dispatched_at=ago(700))
    await claimed(store, started)
    backlog = await store.dispatch.backlog(older_than_seconds=STALE_SECONDS)
    assert (backlog.dispatched, backlog.stale) == (3, 2)


async def test_empty_store_has_no_backlog(store: RecordStore) -> None:
    backlog = await store.dispatch.backlog(older_than_seconds=STALE_SECONDS)
    assert (backlog.dispatched, backlog.stale) == (0, 0)


async def test_stale_jobs_are_dispatched_again_under_a_new_number(store: RecordStore) -> None:
    oldest = await inserted(store, dispatched_at=ago(900))
    older = await inserted(store, dispatched_at=ago(700))
    fresh = await inserted(store, dispatched_at=ago(5))
    again = store.dispatch.dispatch_again
    assert await again(older_than_seconds=STALE_SECONDS, limit=1) == 1
    assert await due_ids(store) == [oldest.id]
    record = await read(store, oldest)
    assert (record.dispatched_at, record.dispatch_seq) == (None, 1)
    assert not await store.dispatch.mark_dispatched({oldest.id: 0})
    assert await store.dispatch.mark_dispatched({oldest.id: 1})
    assert await again(older_than_seconds=STALE_SECONDS, limit=9) == 1
    assert await due_ids(store) == [older.id]
    assert await again(older_than_seconds=STALE_SECONDS, limit=9) == 0
    assert await read(store, fresh) == fresh


async def test_jobs_that_were_claimed_are_never_dispatched_again(store: RecordStore) -> None:
    job = await inserted(store, dispatched_at=ago(900))
    claim = await claimed(store, job)
    assert await store.dispatch.dispatch_again(older_than_seconds=STALE_SECONDS, limit=9) == 0
    assert await read(store, job) == claim.job
