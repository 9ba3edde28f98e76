"""The order of ended jobs never gains a place behind a reader (SqliteJobs)."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
import trio

from fetcher.adapters.sqlite import SqliteRecordStore
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import Job
from fetcher.queries.ended_jobs import EndedJobs, cursor_of
from tests.contract.records.builders import (
    a_mark,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
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
        other.execute("UPDATE job SET completed_at = completed_at + 900")
    first = await read(store, first)
    place = await store.jobs.latest_ended()
    second = await ended(store, completed())
    assert first.completed_at is not None
    assert second.completed_at == first.completed_at + MILLISECOND
    assert await store.jobs.list_ended(after=place, limit=9) == [second]


async def test_an_end_far_ahead_of_the_clock_makes_no_later_one_false(
    store: SqliteRecordStore, path: Path
) -> None:
    first = await ended(store, completed())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE job SET completed_at = completed_at + 315360000000")
    with structlog.testing.capture_logs() as logs:
        later = [await ended(store, completed()) for _ in range(3)]
    times = [job.completed_at for job in later if job.completed_at is not None]
    assert times == sorted(set(times))
    assert abs(times[-1] - now()) < timedelta(hours=1)
    assert [line["event"] for line in logs].count("ends_ahead_of_clock") == 1
    assert (await read(store, first)).completed_at is not None


@pytest.mark.parametrize("ahead", [2_500, 4_000, 86_400_000, 315_360_000_000])
async def test_reader_loses_nothing_that_ends_after_the_clock_was_set_back(
    store: SqliteRecordStore, path: Path, ahead: int
) -> None:
    """Neither one that had come as far as the wrong clock, nor one that begins now."""
    reader = await EndedJobs.from_now(store.jobs, product_name=None)
    first = await ended(store, completed())
    assert await reader.next() == [first]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE job SET completed_at = completed_at + ?", (ahead,))
    place = cursor_of(await read(store, first))
    along = EndedJobs.after(store.jobs, place, product_name=None)
    new = await EndedJobs.from_now(store.jobs, product_name=None)
    for _ in range(3):
        second = await ended(store, completed())
        for each in (reader, along, new):
            assert [job.id for job in await each.next()] == [second.id]


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
