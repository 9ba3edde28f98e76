"""What an attempt leaves in a store that carries out requests which nobody waits for any more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.commands.left_objects import LeftObjects
from fetcher.commands.run_job import RunJob
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import JobStatus
from fetcher.domain.result_keys import LATE_WRITE_SECONDS
from tests.unit.commands.job_bench import Bench, MemoryObjects, MemoryUpload, a_connection


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.records.connections.insert(a_connection())
    return bench


def key_of(claim: Claimed) -> str:
    return f"results/external-data/{claim.job.id}.json"


async def noted(bench: Bench) -> list[str]:
    return [key for _, keys in await bench.records.cleanup.find_due(limit=9) for key in keys]


async def reap(bench: Bench) -> None:
    """One round of the reaper."""
    for job_id, keys in await bench.records.cleanup.find_due(limit=9):
        for key in keys:
            await bench.objects.delete(key)
        await bench.records.cleanup.clear(job_id, keys)


async def test_a_put_that_is_carried_out_after_the_failed_jobs_objects_were_deleted_is_found(
    bench: Bench,
) -> None:
    bench.objects.loses_puts = True
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.FAILED
    assert await noted(bench) == [key_of(claim)]
    await bench.records.leases.finish(claim.lease, outcome)
    await bench.run_job.tidy(claim.job, keep_attempt=None)
    await reap(bench)
    bench.objects.apply_late_puts()
    assert list(bench.objects.objects) == [key_of(claim)]
    await reap(bench)
    assert list(bench.objects.objects) == [key_of(claim)]  # not due yet
    bench.pass_time(LATE_WRITE_SECONDS)
    await reap(bench)
    assert bench.objects.objects == {}
    bench.pass_time(LATE_WRITE_SECONDS)
    assert await noted(bench) == []


async def test_an_attempt_that_is_released_during_its_put_is_noted_and_the_next_one_wins(
    bench: Bench,
) -> None:
    """SIGTERM: its own put comes while the next attempt works, or after that was done."""

    class Hanging(MemoryUpload):
        async def complete(self) -> int:
            self.may_appear_late = True
            self._store.late_puts[self._key] = bytes(self._data)
            await trio.sleep_forever()
            raise AssertionError

    class HangingObjects(MemoryObjects):
        @asynccontextmanager
        async def upload(self, key: str) -> AsyncIterator[MemoryUpload]:
            yield Hanging(self, key)

    first = await bench.claimed()
    working, bench.objects = bench.objects, HangingObjects()
    parts = replace(bench.run_job._parts, objects=bench.objects)  # type: ignore[arg-type] # the parts that are used
    async with trio.open_nursery() as nursery:
        nursery.start_soon(RunJob(parts).run, first.job, first.lease)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert await noted(bench) == [key_of(first)]
    assert await bench.records.leases.release(first.lease)
    late, bench.objects = bench.objects, working
    second = await bench.records.leases.claim(first.job.id, owner="w2", lease_seconds=60)
    assert isinstance(second, Claimed)
    outcome = await bench.outcome(second)
    await bench.records.leases.finish(second.lease, outcome)
    await bench.run_job.tidy(second.job, keep_attempt=2)
    await reap(bench)
    working.late_puts = late.late_puts
    working.apply_late_puts()
    bench.pass_time(LATE_WRITE_SECONDS)
    await reap(bench)
    assert list(working.objects) == [f"results/external-data/{first.job.id}.2.json"]


async def test_an_upload_that_asked_for_nothing_or_was_completed_leaves_no_note(
    bench: Bench,
) -> None:
    failed = await bench.claimed(mapped_fields={"sales_db": {"ordres": ("id",)}})
    assert (await bench.outcome(failed)).status is JobStatus.FAILED
    completed = await bench.claimed(request_hash="h2")
    assert (await bench.outcome(completed)).status is JobStatus.COMPLETED
    bench.pass_time(LATE_WRITE_SECONDS)
    assert await noted(bench) == []


async def test_what_could_not_be_noted_is_noted_with_the_deletion(bench: Bench) -> None:
    """The record store was away when the upload failed, and has taken the job's end since."""
    claim = await bench.claimed()
    upload = MemoryUpload(bench.objects, key_of(claim))
    upload.may_appear_late = True

    class Away:
        is_away = True

        async def note(self, *arguments: object) -> None:
            await trio.lowlevel.checkpoint()
            if self.is_away:
                raise PortUnavailable("away")
            await bench.records.cleanup.note(*arguments)  # type: ignore[arg-type] # passed on

    cleanup = Away()
    left = LeftObjects(objects=bench.objects, cleanup=cleanup, key_prefix="results/")  # type: ignore[arg-type] # what is asked
    await left.note_failed_upload(claim.job, key_of(claim), upload)
    assert await noted(bench) == []
    cleanup.is_away = False
    await left.delete(claim.job, [key_of(claim)])
    assert await noted(bench) == [key_of(claim)]
    await reap(bench)
    await left.delete(claim.job, [key_of(claim)])
    assert await noted(bench) == []  # once is enough
