"""ExpiredLeases: jobs whose owner is gone (design section 4, step 8)."""

from datetime import timedelta

import pytest
import trio

from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import Claimed, ClaimRefusal, FinishAnswer
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    FAILURE,
    LEASE_SECONDS,
    a_job,
    a_mark,
    ago,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)


async def an_expired_job(store: RecordStore, *, overdue_seconds: float = 0) -> Job:
    claim = await claimed(store, await inserted(store), lease_seconds=-overdue_seconds)
    return claim.job


async def test_jobs_with_a_lease_that_ran_out_come_oldest_first(store: RecordStore) -> None:
    jobs = [await an_expired_job(store, overdue_seconds=age) for age in (100, 300, 200)]
    await claimed(store, await inserted(store))
    await inserted(store)
    await ended(store, completed())
    oldest_first = [jobs[1], jobs[2], jobs[0]]
    assert await store.expired.find_expired(limit=9) == oldest_first
    assert await store.expired.find_expired(limit=2) == oldest_first[:2]


async def test_requeue_makes_the_job_pending_and_counts_a_takeover(store: RecordStore) -> None:
    job = await an_expired_job(store)
    assert await store.expired.requeue(job)
    record = await read(store, job)
    assert record.status is JobStatus.PENDING
    assert (record.attempt, record.takeovers, record.dispatch_seq) == (1, 1, 1)
    assert (record.lease_token, record.lease_until, record.lease_owner) == (None, None, None)
    assert record.dispatched_at is None
    assert record.attempts[-1].code == "lease_ran_out"
    assert record.attempts[-1].ended_at is not None
    assert await store.expired.find_expired(limit=9) == []
    (dispatch,) = await store.dispatch.claim_due(limit=9, lease_seconds=LEASE_SECONDS)
    assert (dispatch.job.id, dispatch.dispatch_seq) == (job.id, 1)
    again = await claimed(store, job)
    assert (again.job.attempt, again.job.takeovers) == (2, 1)


async def test_requeue_twice_counts_once(store: RecordStore) -> None:
    job = await an_expired_job(store)
    assert await store.expired.requeue(job)
    assert not await store.expired.requeue(job)
    assert (await read(store, job)).takeovers == 1


async def test_requeue_is_refused_when_the_lease_was_renewed(store: RecordStore) -> None:
    claim = await claimed(store, await inserted(store), lease_seconds=ALREADY_OVER)
    (seen,) = await store.expired.find_expired(limit=9)
    await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)
    assert not await store.expired.requeue(seen)
    assert not await store.expired.finish(seen, failed())
    assert (await store.leases.check([claim.lease]))[seen.id] == "held"


async def test_requeue_is_refused_when_another_took_over_even_if_that_lease_ran_out(
    store: RecordStore,
) -> None:
    seen = await an_expired_job(store)
    second = await claimed(store, seen, lease_seconds=ALREADY_OVER)
    assert not await store.expired.requeue(seen)
    assert not await store.expired.finish(seen, failed())
    assert await read(store, seen) == second.job


async def test_requeue_is_refused_once_the_job_has_ended_or_is_unknown(store: RecordStore) -> None:
    claim = await claimed(store, await inserted(store), lease_seconds=ALREADY_OVER)
    (seen,) = await store.expired.find_expired(limit=9)
    await store.leases.finish(claim.lease, completed())
    done = await read(store, seen)
    assert not await store.expired.requeue(seen)
    assert not await store.expired.finish(seen, failed())
    assert await read(store, seen) == done
    unknown = a_job(status=JobStatus.PROCESSING, lease_token=bytes(16), lease_until=ago(5))
    assert not await store.expired.requeue(unknown)
    assert not await store.expired.finish(unknown, failed())


async def test_requeue_is_refused_once_the_job_was_asked_to_stop(store: RecordStore) -> None:
    seen = await an_expired_job(store)
    await store.jobs.request_cancel(seen.id, a_mark("failed"))
    assert not await store.expired.requeue(seen)
    (asked,) = await store.expired.find_expired(limit=9)
    assert asked.cancel_requested is not None
    assert await store.expired.finish(asked, cancelled())
    assert (await read(store, seen)).status is JobStatus.CANCELLED


async def test_finish_ends_the_job_with_its_event(store: RecordStore) -> None:
    job = await an_expired_job(store)
    outcome = failed()
    assert await store.expired.finish(job, outcome)
    record = await read(store, job)
    assert record.status is JobStatus.FAILED
    assert record.failure == FAILURE
    assert record.completed_at is not None
    assert record.lease_until is None
    assert record.attempts[-1].ended_at is not None
    (event,) = await store.events.claim_due(limit=9, lease_seconds=LEASE_SECONDS)
    assert (event.job_id, event.mark) == (job.id, outcome.event)
    assert not await store.expired.finish(job, failed())
    assert await read(store, job) == record


async def test_failure_is_refused_when_the_job_was_asked_to_stop_meanwhile(
    store: RecordStore,
) -> None:
    seen = await an_expired_job(store)
    await store.jobs.request_cancel(seen.id, a_mark("failed"))
    assert not await store.expired.finish(seen, failed())
    assert (await read(store, seen)).status is JobStatus.PROCESSING
    assert await store.expired.finish(seen, cancelled())


@pytest.mark.parametrize("late", [completed(), failed(), cancelled()], ids=lambda o: o.status)
async def test_owner_that_comes_late_after_the_reaper_is_superseded(
    store: RecordStore, late: TerminalOutcome
) -> None:
    """It must not read its own token in a record that the reaper ended, and call that success."""
    claim = await claimed(store, await inserted(store), lease_seconds=ALREADY_OVER)
    assert await store.expired.finish(claim.job, failed())
    record = await read(store, claim.job)
    assert await store.leases.finish(claim.lease, late) is FinishAnswer.SUPERSEDED
    assert await read(store, claim.job) == record


async def test_requeue_and_claim_at_once_take_the_job_over_once(store: RecordStore) -> None:
    for _ in range(10):
        seen = await an_expired_job(store)
        answers: dict[str, object] = {}

        async def requeue(seen: Job = seen, answers: dict[str, object] = answers) -> None:
            answers["requeued"] = await store.expired.requeue(seen)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(requeue)
            claim = await store.leases.claim(seen.id, owner="w", lease_seconds=LEASE_SECONDS)
        assert isinstance(claim, Claimed)
        record = await read(store, seen)
        assert (record.status, record.attempt, record.takeovers) == (JobStatus.PROCESSING, 2, 1)


async def test_processing_record_without_a_lease_runs_out_ten_minutes_after_first_sight(
    store: RecordStore,
) -> None:
    """A worker of the reference writes no lease."""
    job = await inserted(store, status=JobStatus.PROCESSING, created_at=ago(9000))
    answer = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.LEASED
    assert await store.expired.find_expired(limit=9) == []
    first = (await read(store, job)).lease_until
    assert first is not None
    assert abs(first - (now() + timedelta(minutes=10))) < timedelta(seconds=10)
    assert await store.expired.find_expired(limit=9) == []
    assert (await read(store, job)).lease_until == first


async def test_expired_record_of_a_worker_of_the_reference_is_requeued_and_ended(
    store: RecordStore,
) -> None:
    requeued, finished = [
        await inserted(store, status=JobStatus.PROCESSING, lease_until=ago(age)) for age in (9, 8)
    ]
    assert await store.expired.find_expired(limit=9) == [requeued, finished]
    assert await store.expired.requeue(requeued)
    assert (await read(store, requeued)).status is JobStatus.PENDING
    assert await store.expired.finish(finished, failed())
    assert (await read(store, finished)).status is JobStatus.FAILED


async def test_job_goes_through_three_takeovers_and_then_fails(store: RecordStore) -> None:
    job = await inserted(store)
    for takeovers in range(3):
        await claimed(store, job, lease_seconds=ALREADY_OVER)
        (seen,) = await store.expired.find_expired(limit=9)
        assert seen.takeovers == takeovers
        assert await store.expired.requeue(seen)
    await claimed(store, job, lease_seconds=ALREADY_OVER)
    (seen,) = await store.expired.find_expired(limit=9)
    assert (seen.takeovers, seen.attempt) == (3, 4)
    assert await store.expired.finish(seen, failed())
    assert (await read(store, job)).status is JobStatus.FAILED


async def test_unknown_job_is_nothing_to_the_reaper(store: RecordStore) -> None:
    assert await store.expired.find_expired(limit=9) == []
    assert not await store.expired.requeue(a_job(id=new_job_id()))


async def test_what_is_pushed_back_makes_way_for_others(store: RecordStore) -> None:
    first, second = await inserted(store), await inserted(store)
    for job in (first, second):
        await claimed(store, job, lease_seconds=ALREADY_OVER)
    (found,) = await store.expired.find_expired(limit=1)
    await store.expired.push_back(found, seconds=60)
    (other,) = await store.expired.find_expired(limit=9)
    assert {found.id, other.id} == {first.id, second.id}


async def test_a_lease_that_was_renewed_is_not_pushed_back(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job, lease_seconds=ALREADY_OVER)
    (found,) = await store.expired.find_expired(limit=1)
    assert await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)
    renewed = await read(store, job)
    await store.expired.push_back(found, seconds=3600)
    assert await read(store, job) == renewed
