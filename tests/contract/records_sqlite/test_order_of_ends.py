"""The order of ended jobs never gains a place behind a reader (SqliteJobs)."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import trio

from fetcher.adapters.sqlite import SqliteRecordStore
from fetcher.domain.jobs import EndedCursor, Job
from tests.contract.records.builders import (
    a_mark,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    read,
)

MILLISECOND = timedelta(milliseconds=1)


async def test_jobs_that_end_together_end_at_different_times(store: SqliteRecordStore) -> None:
    claims = [await claimed(store, await inserted(store)) for _ in range(12)]
    pending = [await inserted(store) for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for claim in claims:
            nursery.start_soon(store.leases.finish, claim.lease, failed())
        for job in pending:
            nursery.start_soon(store.jobs.request_cancel, job.id, a_mark("failed"))
    times = [job.completed_at for job in await store.jobs.list_ended(after=None, limit=99)]
    assert len(times) == 16
    assert len(set(times)) == 16


async def test_clock_that_was_set_back_puts_no_job_behind_a_reader(
    store: SqliteRecordStore, path: Path
) -> None:
    first = await ended(store, completed())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE job SET completed_at = completed_at + 86400000")
    first = await read(store, first)
    place = await store.jobs.latest_ended()
    second = await ended(store, completed())
    assert first.completed_at is not None
    assert second.completed_at == first.completed_at + MILLISECOND
    assert await store.jobs.list_ended(after=place, limit=9) == [second]


async def test_reader_that_runs_along_sees_each_job_once(store: SqliteRecordStore) -> None:
    jobs = [await inserted(store) for _ in range(30)]
    seen: list[Job] = []
    all_ended = trio.Event()

    async def follow() -> None:
        after: EndedCursor | None = None
        while True:
            last_round = all_ended.is_set()
            for job in await store.jobs.list_ended(after=after, limit=3):
                assert job.completed_at is not None
                after = EndedCursor(completed_at=job.completed_at, job_id=job.id)
                seen.append(job)
            if last_round and len(seen) >= len(jobs):
                return

    async def end(some: list[Job]) -> None:
        for job in some:
            claim = await claimed(store, job)
            await store.leases.finish(claim.lease, completed())

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            async with trio.open_nursery() as writers:
                for start in range(3):
                    writers.start_soon(end, jobs[start::3])
            all_ended.set()
    assert len(seen) == len(jobs)
    assert {job.id for job in seen} == {job.id for job in jobs}
