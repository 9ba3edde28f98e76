"""DispatchOutbox.redrive: an operator has a job dispatched anew (decisions, DLQ redrive)."""

from collections.abc import Mapping
from datetime import timedelta

import trio

from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.job_store import RedriveAnswer
from fetcher.domain.jobs import JobStatus
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    LEASE_SECONDS,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)


async def dispatched(store: RecordStore) -> list[object]:
    return [claim.job.id for claim in await store.dispatch.claim_due(limit=50, lease_seconds=30.0)]


async def redriven(store: RecordStore, job_id: JobId) -> RedriveAnswer:
    answers = await store.dispatch.redrive([job_id])
    assert answers.keys() == {job_id}
    return answers[job_id]


async def test_a_dispatched_job_that_is_pending_is_dispatched_anew(store: RecordStore) -> None:
    job = await inserted(store, takeovers=2, attempt=3)
    assert await dispatched(store) == [job.id]
    assert await store.dispatch.mark_dispatched({job.id: 0})
    assert await dispatched(store) == []
    assert await redriven(store, job.id) is RedriveAnswer.DISPATCHED
    again = await read(store, job)
    assert (again.status, again.dispatched_at) == (JobStatus.PENDING, None)
    assert (again.takeovers, again.attempt, again.dispatch_seq) == (0, 3, 1)
    assert await dispatched(store) == [job.id]


async def test_a_dispatch_under_way_does_not_keep_it_back(store: RecordStore) -> None:
    job = await inserted(store)
    (claim,) = await store.dispatch.claim_due(limit=1, lease_seconds=LEASE_SECONDS)
    assert await redriven(store, job.id) is RedriveAnswer.DISPATCHED
    assert not await store.dispatch.mark_dispatched({job.id: claim.dispatch_seq})
    assert await dispatched(store) == [job.id]


async def test_a_job_whose_lease_ran_out_is_pending_again(store: RecordStore) -> None:
    job = await inserted(store, takeovers=3)
    claim = await claimed(store, job, lease_seconds=ALREADY_OVER)
    assert await redriven(store, job.id) is RedriveAnswer.DISPATCHED
    again = await read(store, job)
    assert (again.status, again.takeovers, again.attempt) == (JobStatus.PENDING, 0, 1)
    assert (again.lease_token, again.lease_until, again.lease_owner) == (None, None, None)
    assert again.attempts[-1].code == "lease_ran_out"
    assert not await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)
    assert await dispatched(store) == [job.id]
    assert (await claimed(store, job)).job.attempt == 2


async def test_what_a_worker_has_in_hand_is_left_alone(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    assert await redriven(store, job.id) is RedriveAnswer.IN_HAND
    assert await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)


async def test_what_has_ended_or_is_unknown_changes_nothing(store: RecordStore) -> None:
    for outcome in (completed(), failed(), cancelled()):
        job = await ended(store, outcome)
        assert await redriven(store, job.id) is RedriveAnswer.ENDED
        assert await read(store, job) == job
    assert await redriven(store, new_job_id()) is RedriveAnswer.UNKNOWN


async def test_what_waits_for_its_breaker_or_the_reaper_waits_on(store: RecordStore) -> None:
    due_at = now() + timedelta(hours=1)
    parked = await inserted(store, due_at=due_at, waiting_reason="sales_db")
    assert await redriven(store, parked.id) is RedriveAnswer.WAITS
    assert await read(store, parked) == parked
    stopped = await inserted(store, cancel_requested=now())
    assert await redriven(store, stopped.id) is RedriveAnswer.WAITS


async def test_many_jobs_are_answered_each_for_itself(store: RecordStore) -> None:
    jobs = [await inserted(store) for _ in range(3)]
    over = await ended(store, completed())
    answers = await store.dispatch.redrive([jobs[0].id, over.id, jobs[2].id])
    assert answers == {
        jobs[0].id: RedriveAnswer.DISPATCHED,
        over.id: RedriveAnswer.ENDED,
        jobs[2].id: RedriveAnswer.DISPATCHED,
    }
    assert [(await read(store, job)).dispatch_seq for job in jobs] == [1, 0, 1]


async def test_a_job_that_is_named_twice_or_redriven_by_two_at_once_is_answered(
    store: RecordStore,
) -> None:
    jobs = [await inserted(store) for _ in range(25)]
    ids = [job.id for job in jobs]
    told: list[Mapping[JobId, RedriveAnswer]] = []

    async def redrive() -> None:
        told.append(await store.dispatch.redrive([*ids, ids[0]]))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(redrive)
    assert told == [dict.fromkeys(ids, RedriveAnswer.DISPATCHED)] * 3
    assert len(await dispatched(store)) == len(ids)
    assert 0 not in [(await read(store, job)).dispatch_seq for job in jobs]
    assert await store.dispatch.redrive([]) == {}
