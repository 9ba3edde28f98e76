"""What a running job has read, and results that were deleted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import Lease
from fetcher.domain.jobs import TableProgress
from fetcher.ports import RecordStore
from tests.contract.records.builders import (
    ALREADY_OVER,
    cancelled,
    claimed,
    completed,
    ended,
    failed,
    inserted,
    now,
    read,
)

READ = {
    "sales_db": {
        "public.orders": TableProgress(rows=2**40, bytes=2**45),
        "$t.表": TableProgress(rows=0, bytes=2),
    },
    "a.b": {},
}
MORE = {"sales_db": {"public.orders": TableProgress(rows=1, bytes=9)}}


async def test_progress_replaces_what_was_noted(store: RecordStore) -> None:
    job = await inserted(store)
    assert job.progress == {}
    claim = await claimed(store, job)
    assert (await read(store, job)).progress == {}
    assert await store.leases.note_progress(claim.lease, READ)
    assert await read(store, job) == replace(claim.job, progress=READ)
    assert await store.leases.note_progress(claim.lease, MORE)
    assert (await read(store, job)).progress == MORE


async def test_progress_stays_when_the_job_ends(store: RecordStore) -> None:
    for outcome in (completed(), failed(), cancelled()):
        job = await inserted(store)
        claim = await claimed(store, job)
        await store.leases.note_progress(claim.lease, READ)
        await store.leases.finish(claim.lease, outcome)
        assert (await read(store, job)).progress == READ
        assert not await store.leases.note_progress(claim.lease, MORE)
        assert (await read(store, job)).progress == READ


async def test_terminal_write_says_what_was_read_at_last(store: RecordStore) -> None:
    for outcome in (completed(progress=MORE), replace(failed(), progress=MORE)):
        job = await inserted(store)
        claim = await claimed(store, job)
        await store.leases.note_progress(claim.lease, READ)
        await store.leases.finish(claim.lease, outcome)
        assert (await read(store, job)).progress == MORE


async def test_claim_begins_anew(store: RecordStore) -> None:
    job = await inserted(store)
    first = await claimed(store, job, lease_seconds=ALREADY_OVER)
    await store.leases.note_progress(first.lease, READ)
    second = await claimed(store, job, owner="worker-2")
    assert second.job.progress == {}
    assert (await read(store, job)).progress == {}


async def test_released_job_shows_what_its_last_attempt_read(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.leases.note_progress(claim.lease, READ)
    await store.leases.release(claim.lease)
    assert (await read(store, job)).progress == READ
    assert (await claimed(store, job)).job.progress == {}


async def test_only_the_leases_owner_notes_progress(store: RecordStore) -> None:
    job = await inserted(store)
    first = await claimed(store, job, lease_seconds=ALREADY_OVER)
    second = await claimed(store, job, owner="worker-2")
    assert not await store.leases.note_progress(first.lease, READ)
    assert (await read(store, job)).progress == {}
    await store.leases.release(second.lease)
    assert not await store.leases.note_progress(second.lease, READ)
    unknown = Lease(job_id=new_job_id(), token=b"t" * 16, attempt=1)
    assert not await store.leases.note_progress(unknown, READ)
    assert (await read(store, job)).progress == {}


async def test_noting_progress_leaves_the_lease_as_it_is(store: RecordStore) -> None:
    job = await inserted(store)
    claim = await claimed(store, job)
    await store.leases.note_progress(claim.lease, READ)
    assert replace(await read(store, job), progress={}) == claim.job


async def test_what_the_writer_changes_afterwards_is_not_stored(store: RecordStore) -> None:
    claim = await claimed(store, await inserted(store))
    tables: dict[str, Any] = dict(READ["sales_db"])
    await store.leases.note_progress(claim.lease, {"sales_db": tables})
    tables.clear()
    assert (await read(store, claim.job)).progress == {"sales_db": READ["sales_db"]}


# --- deleted results --------------------------------------------------------------------------


async def test_result_is_noted_as_deleted_once(store: RecordStore) -> None:
    job = await ended(store, completed(), request_hash="h")
    assert job.result_deleted_at is None
    at = now()
    assert await store.jobs.mark_result_deleted(job.id, at=at)
    deleted = replace(job, result_deleted_at=at)
    assert await read(store, job) == deleted
    assert not await store.jobs.mark_result_deleted(job.id, at=at + timedelta(seconds=1))
    assert await read(store, job) == deleted
    assert await store.jobs.find_latest_by_hash("h", within_seconds=300) == deleted


@pytest.mark.parametrize("outcome", [failed(), cancelled()], ids=lambda o: o.status)
async def test_job_without_a_result_has_none_to_delete(store: RecordStore, outcome: Any) -> None:
    jobs = [await ended(store, outcome), await inserted(store)]
    jobs.append((await claimed(store, await inserted(store))).job)
    for job in jobs:
        assert not await store.jobs.mark_result_deleted(job.id, at=now())
        assert await read(store, job) == job
    assert not await store.jobs.mark_result_deleted(new_job_id(), at=now())
