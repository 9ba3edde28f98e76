"""The memory store under a clock that the test moves; the contract is tested in tests/contract."""

from datetime import UTC, datetime, timedelta

import trio
from trio.testing import MockClock

from fetcher.adapters.memory import open_memory_records
from fetcher.domain.job_store import Claimed, ClaimRefusal
from fetcher.domain.jobs import JobStatus
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_job, completed, ended

START = datetime(2026, 3, 14, 9, 26, 53, 589793, tzinfo=UTC)


def a_store(clock: MockClock) -> RecordStore:
    began = clock.current_time()
    return open_memory_records(lambda: START + timedelta(seconds=clock.current_time() - began))


async def test_lease_runs_out_by_the_injected_clock(autojump_clock: MockClock) -> None:
    store = a_store(autojump_clock)
    job = a_job(created_at=START)
    await store.jobs.insert(job)
    first = await store.leases.claim(job.id, owner="w1", lease_seconds=60)
    assert isinstance(first, Claimed)
    await trio.sleep(59)
    second = await store.leases.claim(job.id, owner="w2", lease_seconds=60)
    assert second is ClaimRefusal.LEASED
    assert await store.leases.renew(first.lease, lease_seconds=60)
    await trio.sleep(59)
    assert await store.expired.find_expired(limit=9) == []
    await trio.sleep(1)
    assert [found.id for found in await store.expired.find_expired(limit=9)] == [job.id]
    third = await store.leases.claim(job.id, owner="w2", lease_seconds=60)
    assert isinstance(third, Claimed)
    assert third.job.takeovers == 1


async def test_record_without_a_lease_runs_out_ten_minutes_after_it_was_seen(
    autojump_clock: MockClock,
) -> None:
    store = a_store(autojump_clock)
    job = a_job(status=JobStatus.PROCESSING)
    await store.jobs.insert(job)
    assert await store.expired.find_expired(limit=9) == []
    await trio.sleep(599)
    assert await store.expired.find_expired(limit=9) == []
    await trio.sleep(1)
    assert [found.id for found in await store.expired.find_expired(limit=9)] == [job.id]


async def test_postponed_event_is_due_again_in_time(autojump_clock: MockClock) -> None:
    store = a_store(autojump_clock)
    job = await ended(store, completed())
    await store.events.postpone(job.id, retry_in_seconds=5, error_code="unavailable")
    assert await store.events.claim_due(limit=9, lease_seconds=30) == []
    await trio.sleep(5)
    (claim,) = await store.events.claim_due(limit=9, lease_seconds=30)
    assert claim.attempts == 1
    assert (await store.events.backlog()).oldest_seconds == 5


async def test_times_are_cut_to_milliseconds(autojump_clock: MockClock) -> None:
    store = a_store(autojump_clock)
    job = await ended(store, completed(), created_at=START)
    assert job.completed_at == START.replace(microsecond=589000)
    assert job.started_at == START.replace(microsecond=589000)


async def test_jobs_that_end_at_one_time_end_one_after_the_other(autojump_clock: MockClock) -> None:
    store = a_store(autojump_clock)
    times = [(await ended(store, completed())).completed_at for _ in range(3)]
    assert times == [
        START.replace(microsecond=589000) + timedelta(milliseconds=n) for n in range(3)
    ]


async def test_cancelled_call_has_changed_nothing(autojump_clock: MockClock) -> None:
    store = a_store(autojump_clock)
    job = a_job()
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.jobs.insert(job)
    assert scope.cancelled_caught
    assert await store.jobs.get(job.id) is None
