"""JobRetention: what has had its time goes, and nothing else (decision 035)."""

import trio

from fetcher.domain.job_store import EndedCursor, JobQuery
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    RESULT,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)

NOW = -60.0
"""A minute ahead: what ended just now is older."""
HOUR = 3600.0


async def told(store: RecordStore, job: Job) -> Job:
    """The job, with its event published."""
    await store.events.mark_published(job.id)
    return await read(store, job)


def place_of(job: Job) -> EndedCursor:
    assert job.completed_at is not None
    return EndedCursor(completed_at=job.completed_at, job_id=job.id)


async def ids_of_kept_results(store: RecordStore, *, older_than_seconds: float) -> list[object]:
    found = await store.retention.find_results(
        older_than_seconds=older_than_seconds, after=None, limit=9
    )
    return [kept.place.job_id for kept in found]


async def delete(store: RecordStore, *, older_than_seconds: float = NOW, limit: int = 9) -> int:
    return await store.retention.delete_jobs(older_than_seconds=older_than_seconds, limit=limit)


async def test_results_are_found_with_their_place_oldest_first(store: RecordStore) -> None:
    jobs = [
        await ended(store, completed(result=a_result(f"external-data/{number}.json")))
        for number in range(3)
    ]
    found = await store.retention.find_results(older_than_seconds=NOW, after=None, limit=2)
    jobs.sort(key=lambda job: (place_of(job).completed_at, job.id))
    assert [kept.place for kept in found] == [place_of(job) for job in jobs[:2]]
    assert [kept.path for kept in found] == [job.result.path for job in jobs[:2] if job.result]
    rest = await store.retention.find_results(
        older_than_seconds=NOW, after=found[-1].place, limit=2
    )
    assert [kept.place for kept in rest] == [place_of(jobs[2])]
    last = rest[-1].place
    assert await store.retention.find_results(older_than_seconds=NOW, after=last, limit=2) == []


def a_result(path: str) -> ResultFacts:
    return ResultFacts(path=path, hmac=RESULT.hmac, size_bytes=1, row_count=1, key_version="1")


async def test_only_results_that_are_there_and_old_are_found(store: RecordStore) -> None:
    old = await ended(store, completed())
    gone = await ended(store, completed())
    assert await store.jobs.mark_result_deleted(gone.id, at=now())
    await ended(store, failed())
    await ended(store, cancelled())
    await claimed(store, await inserted(store))
    await inserted(store)
    assert await ids_of_kept_results(store, older_than_seconds=NOW) == [old.id]
    assert await ids_of_kept_results(store, older_than_seconds=HOUR) == []


async def test_ended_jobs_go_when_nothing_of_them_is_left_to_do(store: RecordStore) -> None:
    gone = [await told(store, await ended(store, outcome)) for outcome in (failed(), cancelled())]
    result_gone = await told(store, await ended(store, completed()))
    assert await store.jobs.mark_result_deleted(result_gone.id, at=now())
    assert await delete(store, older_than_seconds=HOUR) == 0
    assert await delete(store) == 3
    for job in (*gone, result_gone):
        assert await store.jobs.get(job.id) is None
    assert await delete(store) == 0


async def test_active_jobs_stay(store: RecordStore) -> None:
    pending, running = await inserted(store), await inserted(store)
    await claimed(store, running)
    assert await delete(store) == 0
    assert (await read(store, pending)).status is JobStatus.PENDING
    assert (await read(store, running)).status is JobStatus.PROCESSING


async def test_job_stays_until_its_event_is_published(store: RecordStore) -> None:
    job = await ended(store, failed())
    await store.events.postpone(job.id, retry_in_seconds=300, error_code="unavailable")
    assert await delete(store) == 0
    await told(store, job)
    assert await delete(store) == 1


async def test_job_stays_until_what_it_left_is_deleted(store: RecordStore) -> None:
    job = await told(store, await ended(store, failed()))
    await store.cleanup.note(job.id, ["a/1.json"], late_seconds=0)
    assert await delete(store) == 0
    await store.cleanup.clear(job.id, ["a/1.json"])
    assert await delete(store) == 1


async def test_job_stays_as_long_as_its_result(store: RecordStore) -> None:
    """Nothing else says where that lies."""
    job = await told(store, await ended(store, completed()))
    assert await delete(store) == 0
    assert await store.jobs.mark_result_deleted(job.id, at=now())
    assert await delete(store) == 1


async def test_limit_counts_jobs_and_the_oldest_go_first(store: RecordStore) -> None:
    jobs = [await told(store, await ended(store, failed())) for _ in range(3)]
    jobs.sort(key=lambda job: (place_of(job).completed_at, job.id))
    assert await delete(store, limit=2) == 2
    assert await store.jobs.get(jobs[2].id) == jobs[2]
    assert [await store.jobs.get(job.id) for job in jobs[:2]] == [None, None]


async def test_deleted_job_is_in_no_list_and_frees_its_key(store: RecordStore) -> None:
    job = await told(store, await ended(store, failed(), idempotency_key="k"))
    assert await delete(store) == 1
    assert await store.jobs.find_by_idempotency_key("k") is None
    assert await store.jobs.list_ended(after=None, limit=9) == []
    again = await inserted(store, idempotency_key="k", created_at=job.created_at)
    page = await store.jobs.list_page(JobQuery(config_name="sales_db"))
    assert [found.id for found in page.items] == [again.id]


async def test_two_processes_at_once_delete_each_job_once(store: RecordStore) -> None:
    for _ in range(6):
        await told(store, await ended(store, failed()))
    counts: list[int] = []

    async def delete_all() -> None:
        while (count := await delete(store, limit=2)) > 0:
            counts.append(count)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(delete_all)
        nursery.start_soon(delete_all)
    while (count := await delete(store, limit=2)) > 0:
        counts.append(count)
    assert sum(counts) == 6
