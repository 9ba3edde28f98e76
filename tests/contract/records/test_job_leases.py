"""JobLeases: who works on a job, and what of it is written (design section 4, steps 4 to 8)."""

from dataclasses import replace
from datetime import timedelta

import pytest
import trio

from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import CancelAnswer, Claimed, ClaimRefusal, Lease, LeaseState
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
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

MAX_TAKEOVERS = 3


async def test_claim_makes_a_pending_job_ours(store: RecordStore) -> None:
    job = await inserted(store)
    before = ago(2)
    claim = await claimed(store, job, owner="worker-7")
    record = await read(store, job)
    assert claim.job == record
    assert record.status is JobStatus.PROCESSING
    assert (record.attempt, record.takeovers, record.lease_owner) == (1, 0, "worker-7")
    assert record.lease_token == claim.lease.token
    assert len(claim.lease.token) == 16
    assert (claim.lease.job_id, claim.lease.attempt) == (job.id, 1)
    assert record.started_at is not None
    assert before <= record.started_at <= now() + timedelta(seconds=2)
    assert record.lease_until == record.started_at + timedelta(seconds=LEASE_SECONDS)


async def test_each_claim_has_a_token_of_its_own(store: RecordStore) -> None:
    claims = [await claimed(store, await inserted(store)) for _ in range(3)]
    assert len({claim.lease.token for claim in claims}) == 3


async def test_a_claim_asked_again_under_its_token_finds_what_it_took_before(
    store: RecordStore,
) -> None:
    job, token = await inserted(store), bytes(range(16))
    first = await store.leases.claim(job.id, owner="w", lease_seconds=5, token=token)
    again = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS, token=token)
    assert isinstance(first, Claimed)
    assert isinstance(again, Claimed)
    assert first.lease == again.lease == Lease(job_id=job.id, token=token, attempt=1)
    assert first.job.lease_until is not None
    assert again.job.lease_until is not None
    # A whole lease from now: the caller counts it from this try.
    assert again.job.lease_until - first.job.lease_until >= timedelta(seconds=LEASE_SECONDS - 5)
    assert again.job == replace(first.job, lease_until=again.job.lease_until)
    assert await read(store, job) == again.job


async def test_a_claim_under_a_token_whose_lease_ran_out_is_a_takeover(store: RecordStore) -> None:
    job, token = await inserted(store), bytes(range(16))
    await store.leases.claim(job.id, owner="w", lease_seconds=ALREADY_OVER, token=token)
    again = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS, token=token)
    assert isinstance(again, Claimed)
    assert (again.job.attempt, again.job.takeovers, again.lease.token) == (2, 1, token)


async def test_unknown_job_cannot_be_claimed(store: RecordStore) -> None:
    answer = await store.leases.claim(new_job_id(), owner="w", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.UNKNOWN


async def test_job_under_a_live_lease_cannot_be_claimed(store: RecordStore) -> None:
    job = await inserted(store)
    first = await claimed(store, job)
    answer = await store.leases.claim(job.id, owner="worker-2", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.LEASED
    assert await read(store, job) == first.job


@pytest.mark.parametrize("outcome", [completed(), failed(), cancelled()], ids=lambda o: o.status)
async def test_ended_job_cannot_be_claimed(store: RecordStore, outcome: TerminalOutcome) -> None:
    job = await ended(store, outcome)
    answer = await store.leases.claim(job.id, owner="worker-2", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.ENDED
    assert await read(store, job) == job


async def test_job_that_is_not_due_cannot_be_claimed(store: RecordStore) -> None:
    job = await inserted(store, due_at=now() + timedelta(hours=1), waiting_reason="breaker open")
    answer = await store.leases.claim(job.id, owner="worker-1", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.NOT_DUE
    assert (await read(store, job)).status is JobStatus.PENDING


async def test_a_dispatched_job_can_be_claimed_though_the_clock_was_turned_back_since(
    store: RecordStore,
) -> None:
    """Its message would be acknowledged, and nothing would send another one for ten minutes."""
    job = await inserted(store, due_at=now() + timedelta(seconds=70), dispatched_at=now())
    claim = await claimed(store, job)
    assert (claim.job.status, claim.job.due_at) == (JobStatus.PROCESSING, None)


async def test_job_that_has_become_due_waits_for_nothing_once_claimed(store: RecordStore) -> None:
    job = await inserted(store, due_at=ago(1), waiting_reason="breaker open")
    claim = await claimed(store, job)
    assert (claim.job.due_at, claim.job.waiting_reason) == (None, None)


async def test_of_concurrent_claims_one_wins(store: RecordStore) -> None:
    job = await inserted(store)
    answers: list[Claimed | ClaimRefusal] = []

    async def claim(owner: str) -> None:
        answers.append(await store.leases.claim(job.id, owner=owner, lease_seconds=LEASE_SECONDS))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(claim, f"worker-{number}")
    winners = [answer for answer in answers if isinstance(answer, Claimed)]
    assert len(winners) == 1
    assert [a for a in answers if a not in winners] == [ClaimRefusal.LEASED] * 7
    assert (await read(store, job)).lease_owner == winners[0].job.lease_owner


async def test_expired_lease_lets_another_worker_claim_and_counts_a_takeover(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    first = await claimed(store, job, owner="worker-1", lease_seconds=ALREADY_OVER)
    second = await claimed(store, job, owner="worker-2")
    assert (second.job.attempt, second.job.takeovers) == (2, 1)
    assert second.lease.attempt == 2
    assert second.job.started_at == first.job.started_at
    assert [(a.attempt, a.owner, a.code) for a in second.job.attempts] == [
        (1, "worker-1", "lease_ran_out"),
        (2, "worker-2", None),
    ]
    assert second.job.attempts[0].ended_at is not None
    assert second.job.attempts[1].ended_at is None


async def test_of_concurrent_claims_of_an_expired_lease_one_wins(store: RecordStore) -> None:
    job = await inserted(store)
    await claimed(store, job, lease_seconds=ALREADY_OVER)
    answers: list[Claimed | ClaimRefusal] = []

    async def claim() -> None:
        answers.append(await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(claim)
    assert len([a for a in answers if isinstance(a, Claimed)]) == 1
    assert (await read(store, job)).takeovers == 1


async def test_job_that_used_up_its_takeovers_is_left_to_the_reaper(store: RecordStore) -> None:
    job = await inserted(store)
    for takeovers in range(MAX_TAKEOVERS + 1):
        claim = await claimed(store, job, lease_seconds=ALREADY_OVER)
        assert claim.job.takeovers == takeovers
    answer = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.NOT_DUE
    assert [j.id for j in await store.expired.find_expired(limit=5)] == [job.id]


async def test_expired_job_that_was_asked_to_stop_is_left_to_the_reaper(
    store: RecordStore,
) -> None:
    job = await inserted(store)
    await claimed(store, job, lease_seconds=ALREADY_OVER)
    assert await store.jobs.request_cancel(job.id, a_mark("failed")) is CancelAnswer.REQUESTED
    answer = await store.leases.claim(job.id, owner="w", lease_seconds=LEASE_SECONDS)
    assert answer is ClaimRefusal.NOT_DUE
    assert [j.id for j in await store.expired.find_expired(limit=5)] == [job.id]


async def test_renewal_prolongs_a_lease_that_ran_out_but_was_not_taken(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job, lease_seconds=ALREADY_OVER)
    assert await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)
    record = await read(store, job)
    assert record.lease_until is not None
    assert record.lease_until > now() + timedelta(seconds=LEASE_SECONDS - 5)
    assert await store.expired.find_expired(limit=5) == []


async def test_renewal_with_an_old_token_is_refused(store: RecordStore) -> None:
    job = await inserted(store)
    old = await claimed(store, job, lease_seconds=ALREADY_OVER)
    new = await claimed(store, job)
    assert not await store.leases.renew(old.lease, lease_seconds=9999)
    assert await read(store, job) == new.job


async def test_renewal_of_an_ended_or_unknown_job_is_refused(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.leases.finish(claim.lease, completed())
    before = await read(store, job)
    assert not await store.leases.renew(claim.lease, lease_seconds=LEASE_SECONDS)
    assert await read(store, job) == before
    unknown = Lease(job_id=new_job_id(), token=bytes(16), attempt=1)
    assert not await store.leases.renew(unknown, lease_seconds=LEASE_SECONDS)


async def test_check_tells_the_state_of_every_lease(store: RecordStore) -> None:
    held = await claimed(store, await inserted(store))
    asked = await claimed(store, await inserted(store))
    await store.jobs.request_cancel(asked.job.id, a_mark("failed"))
    old = await claimed(store, await inserted(store), lease_seconds=ALREADY_OVER)
    await claimed(store, old.job)
    done = await claimed(store, await inserted(store))
    await store.leases.finish(done.lease, failed())
    unknown = Lease(job_id=new_job_id(), token=bytes(16), attempt=1)
    leases = [held.lease, asked.lease, old.lease, done.lease, unknown]
    assert await store.leases.check(leases) == {
        held.lease.job_id: LeaseState.HELD,
        asked.lease.job_id: LeaseState.CANCEL_REQUESTED,
        old.lease.job_id: LeaseState.LOST,
        done.lease.job_id: LeaseState.LOST,
        unknown.job_id: LeaseState.LOST,
    }
    assert await store.leases.check([]) == {}


async def test_history_keeps_the_last_twenty_attempts(store: RecordStore) -> None:
    job = await inserted(store)
    for _ in range(25):
        claim = await claimed(store, job)
        await store.leases.release(claim.lease)
    record = await read(store, job)
    assert record.attempt == 25
    assert [attempt.attempt for attempt in record.attempts] == list(range(6, 26))


async def test_claim_leaves_the_request_as_it_was(store: RecordStore) -> None:
    job = await inserted(store, filters={"a": {"t": {"f": {"eq": (1, "x", None, True)}}}})
    claim = await claimed(store, job)
    assert _request(claim.job) == _request(job)


def _request(job: Job) -> Job:
    """The job without what becomes of it."""
    blank = a_job(id=job.id)
    return replace(
        blank,
        created_at=job.created_at,
        request_hash=job.request_hash,
        mapped_fields=job.mapped_fields,
        filters=job.filters,
        metadata=job.metadata,
        options=job.options,
        request_id=job.request_id,
    )
