"""EventOutbox: the job record as the outbox of terminal events (design section 4, step 7)."""

from datetime import timedelta

import trio

from fetcher.domain.ids import JobId, new_job_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    LEASE_SECONDS,
    a_mark,
    ago,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)


async def due_ids(store: RecordStore, *, limit: int = 50, lease_seconds: float = 0) -> list[JobId]:
    claims = await store.events.claim_due(limit=limit, lease_seconds=lease_seconds)
    return [claim.job_id for claim in claims]


async def test_events_of_ended_jobs_are_claimed_oldest_first(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(4)]
    for job in (jobs[2], jobs[0], jobs[3]):
        claim = await claimed(store, job)
        await store.leases.finish(claim.lease, failed())
        # The next one ends in a later millisecond.
        before = now()
        while now() == before:
            await trio.lowlevel.checkpoint()
    assert await due_ids(store, limit=2) == [jobs[2].id, jobs[0].id]
    assert await due_ids(store) == [jobs[2].id, jobs[0].id, jobs[3].id]


async def test_mark_is_given_byte_for_byte(store: RecordStore) -> None:
    payload = '{"b":1.10,"a":"é\\u00e9\\n","n":18446744073709551616}'
    mark = a_mark("completed", payload)
    job = await ended(store, completed(event=mark))
    (claim,) = await store.events.claim_due(limit=9, lease_seconds=LEASE_SECONDS)
    assert (claim.job_id, claim.mark, claim.attempts) == (job.id, mark, 0)


async def test_time_of_the_event_is_that_of_the_mark(store: RecordStore) -> None:
    mark = a_mark()
    await ended(store, completed(event=mark))
    for tries in range(3):
        (claim,) = await store.events.claim_due(limit=9, lease_seconds=LEASE_SECONDS)
        assert (claim.mark.time, claim.attempts) == (mark.time, tries)
        await store.events.postpone(claim.job_id, retry_in_seconds=-1, error_code="unavailable")


async def test_claimed_event_is_not_given_to_another_until_the_lease_ends(
    store: RecordStore,
) -> None:
    job = await ended(store, completed())
    assert await due_ids(store, lease_seconds=LEASE_SECONDS) == [job.id]
    assert await due_ids(store) == []
    other = await ended(store, completed())
    assert await due_ids(store, lease_seconds=ALREADY_OVER) == [other.id]
    assert await due_ids(store) == [other.id]


async def test_of_concurrent_relays_each_event_goes_to_one(store: RecordStore) -> None:
    jobs = {(await ended(store, completed())).id for _ in range(8)}
    found: list[JobId] = []

    async def claim() -> None:
        found.extend(await due_ids(store, limit=3, lease_seconds=LEASE_SECONDS))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(claim)
    assert len(found) == len(set(found))
    found += await due_ids(store, lease_seconds=LEASE_SECONDS)
    assert sorted(found) == sorted(jobs)


async def test_hinted_events_alone_are_claimed(store: RecordStore) -> None:
    jobs = [await ended(store, completed()) for _ in range(3)]
    running = await inserted(store)
    hints = [jobs[2].id, jobs[0].id, jobs[0].id, running.id, new_job_id()]
    claims = await store.events.claim_due(limit=9, lease_seconds=LEASE_SECONDS, job_ids=hints)
    assert sorted(claim.job_id for claim in claims) == sorted([jobs[0].id, jobs[2].id])
    assert await store.events.claim_due(limit=9, lease_seconds=0, job_ids=hints) == []
    assert await store.events.claim_due(limit=9, lease_seconds=0, job_ids=[]) == []
    assert await due_ids(store) == [jobs[1].id]


async def test_published_event_is_never_given_again(store: RecordStore) -> None:
    job = await ended(store, completed())
    assert await due_ids(store) == [job.id]
    await store.events.mark_published(job.id)
    await store.events.mark_published(job.id)
    assert await due_ids(store) == []
    record = await read(store, job)
    assert not record.event_pending
    assert (record.status, record.result) == (job.status, job.result)
    backlog = await store.events.backlog()
    assert (backlog.pending, backlog.oldest_seconds) == (0, 0)


async def test_late_postponement_does_not_bring_a_published_event_back(
    store: RecordStore,
) -> None:
    job = await ended(store, completed())
    await store.events.mark_published(job.id)
    await store.events.postpone(job.id, retry_in_seconds=-5, error_code="unavailable")
    assert await due_ids(store) == []
    assert not (await read(store, job)).event_pending


async def test_unknown_job_has_no_event_to_mark(store: RecordStore) -> None:
    await store.events.mark_published(new_job_id())
    await store.events.postpone(new_job_id(), retry_in_seconds=0, error_code="unavailable")
    assert await due_ids(store) == []


async def test_postponed_event_waits_and_drops_its_lease(store: RecordStore) -> None:
    later = await ended(store, completed())
    sooner = await ended(store, completed())
    assert len(await due_ids(store, lease_seconds=LEASE_SECONDS)) == 2
    await store.events.postpone(later.id, retry_in_seconds=3600, error_code="unroutable")
    await store.events.postpone(sooner.id, retry_in_seconds=-1, error_code="unavailable")
    (claim,) = await store.events.claim_due(limit=9, lease_seconds=LEASE_SECONDS)
    assert (claim.job_id, claim.attempts) == (sooner.id, 1)
    assert (await read(store, later)).event_pending
    assert (await store.events.backlog()).pending == 2


async def test_event_that_always_fails_does_not_starve_the_others(store: RecordStore) -> None:
    stuck = await ended(store, completed())
    assert await due_ids(store, lease_seconds=LEASE_SECONDS) == [stuck.id]
    await store.events.postpone(stuck.id, retry_in_seconds=300, error_code="unroutable")
    fresh = await ended(store, completed())
    assert await due_ids(store, limit=1) == [fresh.id]


async def test_backlog_tells_the_age_of_the_oldest_event(store: RecordStore) -> None:
    backlog = await store.events.backlog()
    assert (backlog.pending, backlog.oldest_seconds) == (0, 0)
    await ended(store, completed())
    await ended(store, completed())
    await inserted(store)
    backlog = await store.events.backlog()
    assert backlog.pending == 2
    assert 0 <= backlog.oldest_seconds < 10


async def test_backlog_counts_what_no_queue_took(store: RecordStore) -> None:
    returned, away, fresh = [await ended(store, completed()) for _ in range(3)]
    await store.events.postpone(returned.id, retry_in_seconds=60, error_code="unroutable")
    await store.events.postpone(away.id, retry_in_seconds=60, error_code="unavailable")
    assert (await store.events.backlog()).unroutable == 1
    await store.events.mark_published(returned.id)
    backlog = await store.events.backlog()
    assert (backlog.pending, backlog.unroutable) == (2, 0)
    assert (await read(store, fresh)).event_pending


async def test_event_of_a_job_created_long_ago_is_due_when_it_ends(store: RecordStore) -> None:
    job = await ended(store, completed(), created_at=ago(90_000))
    assert await due_ids(store) == [job.id]
    assert job.completed_at is not None
    assert job.completed_at > now() - timedelta(seconds=10)
