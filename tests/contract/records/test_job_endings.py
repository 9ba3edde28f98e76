"""JobLeases: how an attempt ends, by a terminal write or a release (design section 4, step 6)."""

import pytest

from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import FinishAnswer, Lease
from fetcher.domain.jobs import JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    FAILURE,
    LEASE_SECONDS,
    RESULT,
    a_mark,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    read,
)

MAX_TAKEOVERS = 3


async def test_completed_write_holds_state_facts_and_event(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    outcome = completed()
    assert await store.leases.finish(claim.lease, outcome) is FinishAnswer.WRITTEN
    record = await read(store, job)
    assert record.status is JobStatus.COMPLETED
    assert (record.result, record.failure) == (RESULT, None)
    assert record.completed_at is not None
    assert record.event_pending
    assert record.lease_until is None
    (attempt,) = record.attempts
    assert (attempt.ended_at, attempt.code) == (record.completed_at, None)
    (event,) = await store.events.claim_due(limit=5, lease_seconds=LEASE_SECONDS)
    assert (event.job_id, event.mark, event.attempts) == (job.id, outcome.event, 0)


async def test_failed_write_holds_the_failure_and_its_code(store: RecordStore) -> None:
    record = await ended(store, failed())
    assert record.status is JobStatus.FAILED
    assert (record.result, record.failure) == (None, FAILURE)
    assert record.attempts[-1].code == "connect"
    assert record.event_pending


async def test_finish_is_idempotent_for_its_own_token(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    assert await store.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
    first = await read(store, job)
    assert await store.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
    assert await store.leases.finish(claim.lease, failed()) is FinishAnswer.WRITTEN
    assert await read(store, job) == first
    assert first.lease_token == claim.lease.token


async def test_late_owner_after_a_takeover_is_superseded(store: RecordStore) -> None:
    job = await inserted(store)
    late = await claimed(store, job, lease_seconds=ALREADY_OVER)
    winner = await claimed(store, job)
    assert await store.leases.finish(late.lease, failed()) is FinishAnswer.SUPERSEDED
    assert await read(store, job) == winner.job
    assert await store.leases.finish(winner.lease, completed()) is FinishAnswer.WRITTEN
    done = await read(store, job)
    assert await store.leases.finish(late.lease, failed()) is FinishAnswer.SUPERSEDED
    assert await read(store, job) == done


async def test_late_owner_that_nobody_replaced_still_writes(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job, lease_seconds=ALREADY_OVER)
    assert await store.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
    assert await store.expired.find_expired(limit=5) == []


async def test_finish_of_an_unknown_job_is_superseded(store: RecordStore) -> None:
    lease = Lease(job_id=new_job_id(), token=bytes(16), attempt=1)
    assert await store.leases.finish(lease, completed()) is FinishAnswer.SUPERSEDED


@pytest.mark.parametrize("outcome", [completed(), failed()], ids=lambda o: o.status)
async def test_finish_is_refused_once_the_job_was_asked_to_stop(
    store: RecordStore, outcome: TerminalOutcome
) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.jobs.request_cancel(job.id, a_mark("failed"))
    before = await read(store, job)
    assert await store.leases.finish(claim.lease, outcome) is FinishAnswer.CANCEL_REQUESTED
    assert await read(store, job) == before
    assert await store.leases.finish(claim.lease, cancelled()) is FinishAnswer.WRITTEN
    record = await read(store, job)
    assert record.status is JobStatus.CANCELLED
    assert record.failure == cancelled().failure
    assert record.attempts[-1].code == "cancelled"


async def test_release_makes_the_job_pending_due_and_undispatched(store: RecordStore) -> None:
    job = await inserted(store)
    (dispatch,) = await store.dispatch.claim_due(limit=5, lease_seconds=LEASE_SECONDS)
    await store.dispatch.mark_dispatched({job.id: dispatch.dispatch_seq})
    claim = await claimed(store, job)
    assert await store.leases.release(claim.lease)
    record = await read(store, job)
    assert record.status is JobStatus.PENDING
    assert (record.lease_token, record.lease_until, record.lease_owner) == (None, None, None)
    assert (record.dispatched_at, record.dispatch_seq) == (None, dispatch.dispatch_seq + 1)
    assert (record.attempt, record.takeovers) == (1, 0)
    assert record.attempts[-1].code == "released"
    assert record.attempts[-1].ended_at is not None
    (again,) = await store.dispatch.claim_due(limit=5, lease_seconds=LEASE_SECONDS)
    assert (again.job.id, again.dispatch_seq) == (job.id, dispatch.dispatch_seq + 1)
    second = await claimed(store, job, owner="worker-2")
    assert (second.job.attempt, second.job.takeovers) == (2, 0)


async def test_release_with_an_old_token_or_after_the_end_is_refused(store: RecordStore) -> None:
    job = await inserted(store)
    old = await claimed(store, job, lease_seconds=ALREADY_OVER)
    new = await claimed(store, job)
    assert not await store.leases.release(old.lease)
    assert await read(store, job) == new.job
    await store.leases.finish(new.lease, completed())
    assert not await store.leases.release(new.lease)
    assert (await read(store, job)).status is JobStatus.COMPLETED


async def test_released_owner_writes_nothing_more(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.leases.release(claim.lease)
    assert await store.leases.finish(claim.lease, completed()) is FinishAnswer.SUPERSEDED
    assert not await store.leases.release(claim.lease)
    assert (await read(store, job)).status is JobStatus.PENDING


async def test_release_of_a_job_that_was_asked_to_stop_leaves_it_to_the_reaper(
    store: RecordStore,
) -> None:
    """Every path out of ``processing`` honours the request: pending again, nobody would end it."""
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.jobs.request_cancel(job.id, a_mark("failed"))
    assert await store.leases.release(claim.lease)
    (expired,) = await store.expired.find_expired(limit=5)
    assert expired.id == job.id
    assert await store.expired.finish(expired, cancelled())
    assert (await read(store, job)).status is JobStatus.CANCELLED
