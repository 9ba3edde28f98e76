"""Numbers over jobs and breakers, for operators."""

from datetime import timedelta

from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown
from fetcher.domain.breakers import failed as failure_of
from fetcher.domain.connections import Connection
from fetcher.domain.job_store import CancelAnswer, FinishAnswer
from fetcher.domain.jobs import JobStatus, TerminalOutcome
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    a_connection,
    a_mark,
    ago,
    claimed,
    completed,
    failed,
    inserted,
    now,
)


async def end(store: RecordStore, outcome: TerminalOutcome) -> None:
    claim = await claimed(store, await inserted(store))
    assert await store.leases.finish(claim.lease, outcome) is FinishAnswer.WRITTEN


async def test_empty_store_counts_nothing(store: RecordStore) -> None:
    assert await store.statistics.count_by_status() == dict.fromkeys(JobStatus, 0)
    assert await store.statistics.ended_by_minute(since=ago(3600)) == []


async def test_jobs_are_counted_by_state(store: RecordStore) -> None:
    for outcome in (completed(), completed(), failed()):
        await end(store, outcome)
    for _ in range(3):
        await inserted(store)
    await claimed(store, await inserted(store))
    assert await store.statistics.count_by_status() == {
        JobStatus.PENDING: 3,
        JobStatus.PROCESSING: 1,
        JobStatus.COMPLETED: 2,
        JobStatus.FAILED: 1,
        JobStatus.CANCELLED: 0,
    }


async def test_what_ended_is_grouped_by_minute_and_state(store: RecordStore) -> None:
    since = ago(60)
    for outcome in (completed(), completed(), failed()):
        await end(store, outcome)
    waiting = await inserted(store)
    assert await store.jobs.request_cancel(waiting.id, a_mark("failed")) is CancelAnswer.CANCELLED
    await claimed(store, await inserted(store))
    minutes = await store.statistics.ended_by_minute(since=since)
    found = {
        status: sum(each.jobs for each in minutes if each.status is status) for status in JobStatus
    }
    assert found == {
        JobStatus.PENDING: 0,
        JobStatus.PROCESSING: 0,
        JobStatus.COMPLETED: 2,
        JobStatus.FAILED: 1,
        JobStatus.CANCELLED: 1,
    }
    assert minutes == sorted(minutes, key=lambda each: (each.minute, each.status))
    for each in minutes:
        assert (each.minute.second, each.minute.microsecond) == (0, 0)
        assert since - timedelta(minutes=1) < each.minute <= now()
        assert each.timed == (0 if each.status is JobStatus.CANCELLED else each.jobs)
        assert 0 <= each.longest_seconds <= each.total_seconds < 60
    assert await store.statistics.ended_by_minute(since=now() + timedelta(minutes=1)) == []


async def test_failed_jobs_are_listed_by_their_end_the_last_first(store: RecordStore) -> None:
    assert await store.jobs.latest_failed(limit=5) == []
    jobs = [await inserted(store, created_at=ago(60 - n)) for n in range(4)]
    for job in (jobs[2], jobs[3], jobs[0]):
        claim = await claimed(store, job)
        assert await store.leases.finish(claim.lease, failed()) is FinishAnswer.WRITTEN
    await end(store, completed())
    waiting = await inserted(store)
    await store.jobs.request_cancel(waiting.id, a_mark("failed"))
    await claimed(store, jobs[1])
    listed = await store.jobs.latest_failed(limit=5)
    assert [job.id for job in listed] == [jobs[0].id, jobs[3].id, jobs[2].id]
    assert listed[0] == await store.jobs.get(jobs[0].id)
    assert await store.jobs.latest_failed(limit=2) == listed[:2]


async def opened(store: RecordStore) -> Connection:
    connection = a_connection()
    for _ in range(FAILURES_TO_OPEN):
        down = SourceDown(stage="tcp", reason="refused")
        await store.breakers.change(connection.id, failure_of(connection, down))
    return connection


async def test_open_breakers_are_listed_the_latest_first(store: RecordStore) -> None:
    assert await store.breakers.list_open(limit=5) == []
    closed = a_connection()
    await store.breakers.change(
        closed.id, failure_of(closed, SourceDown(stage="tcp", reason="refused"))
    )
    connections = [await opened(store) for _ in range(3)]
    listed = await store.breakers.list_open(limit=5)
    assert {each.connection_id for each in listed} == {each.id for each in connections}
    changes = [each.changed_at for each in listed]
    assert changes == sorted(changes, reverse=True)
    assert (listed[0].down.reason, listed[0].failures) == ("refused", FAILURES_TO_OPEN)
    assert listed[0].retry_at is not None
    assert list(await store.breakers.list_open(limit=2)) == list(listed[:2])
