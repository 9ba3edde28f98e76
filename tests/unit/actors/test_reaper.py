"""The reaper: jobs whose owner is gone."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.actors.messages import DispatchHint, RelayHint
from fetcher.actors.reaper import BATCH, REAP_SECONDS, Reaper
from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.domain.result_keys import LATE_WRITE_SECONDS
from tests.unit.actors.bench import (
    Bench,
    a_job,
    an_outcome,
)


class Objects:
    """A bucket that remembers what was deleted."""

    def __init__(self, *, away_until: float = 0) -> None:
        self.deleted: list[str] = []
        self._away_until = away_until

    async def delete(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        if trio.current_time() < self._away_until:
            raise PortUnavailable("bucket away")
        self.deleted.append(key)


def a_reaper(bench: Bench, objects: object = None) -> Reaper:
    def outcome_of(job: Job, status: JobStatus) -> TerminalOutcome:
        return an_outcome(status, job)

    return Reaper(
        expired=bench.records.expired,
        cleanup=bench.records.cleanup,
        objects=objects,  # type: ignore[arg-type] # unused unless the test gives one
        outcome_of=outcome_of,
        keys_of=lambda job: [f"external-data/{job.id}.{n + 1}.json" for n in range(job.attempt)],
        dispatch_hints=bench.dispatch_hints,
        relay_hints=bench.relay_hints,
        metrics=bench.jobs,
    )


async def test_the_job_of_a_dead_worker_is_pending_again_after_its_lease(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    [job] = await bench.insert(a_job())
    await bench.records.leases.claim(job.id, owner="dead", lease_seconds=60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench).run)
        await trio.sleep(59)
        assert await bench.status_of(job) is JobStatus.PROCESSING
        await trio.sleep(7)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.status is JobStatus.PENDING
        assert stored.takeovers == 1
        assert bench.dispatch_hints.receive_waiting(limit=5) == [DispatchHint(job.id)]
        nursery.cancel_scope.cancel()


async def test_a_job_fails_when_its_lease_runs_out_after_three_takeovers(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    objects = Objects()
    [job] = await bench.insert(a_job())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, objects).run)
        for _ in range(4):
            claim = await bench.records.leases.claim(job.id, owner="dies", lease_seconds=1)
            assert isinstance(claim, Claimed)
            await trio.sleep(10)
        await trio.sleep(5)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.status is JobStatus.FAILED
        assert stored.takeovers == 3
        assert stored.attempt == 4
        assert objects.deleted == [f"external-data/{job.id}.{n}.json" for n in (1, 2, 3, 4)]
        assert bench.relay_hints.receive_waiting(limit=5) == [RelayHint(job.id)]
        nursery.cancel_scope.cancel()


async def test_an_expired_job_that_was_asked_to_stop_ends_as_cancelled(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    [job] = await bench.insert(a_job())
    await bench.records.leases.claim(job.id, owner="dead", lease_seconds=60)
    await bench.records.jobs.request_cancel(job.id, an_outcome(JobStatus.CANCELLED, job).event)
    objects = Objects()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, objects).run)
        await trio.sleep(75)
        assert await bench.status_of(job) is JobStatus.CANCELLED
        assert objects.deleted == [f"external-data/{job.id}.1.json"]
        nursery.cancel_scope.cancel()


async def test_left_objects_are_deleted_once_the_store_is_back(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    objects = Objects(away_until=30)
    [job] = await bench.insert(a_job())
    await bench.records.cleanup.note(job.id, ["external-data/a.json", "external-data/a.2.json"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, objects).run)
        await trio.sleep(70)
        assert objects.deleted == ["external-data/a.json", "external-data/a.2.json"]
        assert await bench.records.cleanup.find_due(limit=5) == []
        await trio.sleep(LATE_WRITE_SECONDS)
        assert objects.deleted == 2 * ["external-data/a.json", "external-data/a.2.json"]
        await trio.sleep(10 * LATE_WRITE_SECONDS)
        assert len(objects.deleted) == 4
        nursery.cancel_scope.cancel()


async def test_an_object_that_appears_after_it_was_deleted_is_deleted_again(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """The store carries out a put that its caller gave up, 14 minutes after it was signed."""

    class LatePut(Objects):
        def __init__(self) -> None:
            super().__init__()
            self.visible: set[str] = set()

        async def delete(self, key: str) -> None:
            await super().delete(key)
            self.visible.discard(key)

    objects = LatePut()
    [job] = await bench.insert(a_job())
    await bench.records.cleanup.note(job.id, ["late.json"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, objects).run)
        await trio.sleep(14 * 60)
        assert objects.deleted == ["late.json"]
        objects.visible.add("late.json")
        await trio.sleep(6 * 60 + 10)
        assert objects.visible == set()
        nursery.cancel_scope.cancel()


async def test_one_record_that_cannot_be_written_keeps_no_other_waiting(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    first, second = await bench.insert(a_job(), a_job())
    for job in (first, second):
        await bench.records.leases.claim(job.id, owner="dead", lease_seconds=1)
    expired = bench.records.expired

    class OneIsCorrupt:
        find_expired, push_back = expired.find_expired, expired.push_back

        async def requeue(self, job: Job) -> bool:
            if job.id == first.id:
                raise RecordCorrupt("job: mapped_fields")
            return await expired.requeue(job)

    bench.records = replace(bench.records, expired=OneIsCorrupt())  # type: ignore[arg-type] # what is asked
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench).run)
        await trio.sleep(10)
        assert await bench.status_of(second) is JobStatus.PENDING
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("failure", [PortUnavailable("forbidden"), ValueError("no key")])
async def test_an_object_that_cannot_be_deleted_keeps_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench, failure: Exception
) -> None:
    tries = 0

    class Guarded(Objects):
        async def delete(self, key: str) -> None:
            nonlocal tries
            tries += key == "locked.json"
            if key == "locked.json":
                raise failure
            await super().delete(key)

    objects = Guarded()
    first, second = await bench.insert(a_job(), a_job())
    await bench.records.cleanup.note(first.id, ["locked.json"])
    await bench.records.cleanup.note(second.id, ["other.json"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, objects).run)
        await trio.sleep(1)
        assert objects.deleted == ["other.json"]
        # It makes way for others, and is tried again later.
        assert await bench.records.cleanup.find_due(limit=5) == []
        await trio.sleep(60)
        assert tries == 2
        nursery.cancel_scope.cancel()


async def test_a_bucket_that_hangs_keeps_no_job_waiting(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    class Hanging(Objects):
        async def delete(self, key: str) -> None:
            await trio.sleep_forever()

    left, expired = await bench.insert(a_job(), a_job())
    await bench.records.cleanup.note(left.id, ["left.json"])
    await bench.records.leases.claim(expired.id, owner="dead", lease_seconds=30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench, Hanging()).run)
        await trio.sleep(36)
        assert await bench.status_of(expired) is JobStatus.PENDING
        nursery.cancel_scope.cancel()


async def test_more_jobs_than_a_batch_that_cannot_be_taken_back_make_way_for_others(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    broken = await bench.insert(*(a_job() for _ in range(BATCH)))
    for job in broken:
        await bench.records.leases.claim(job.id, owner="dead", lease_seconds=1)
    [sound] = await bench.insert(a_job())
    await bench.records.leases.claim(sound.id, owner="dead", lease_seconds=2)
    expired, broken_ids = bench.records.expired, {job.id for job in broken}

    class ManyAreCorrupt:
        find_expired, push_back = expired.find_expired, expired.push_back

        async def requeue(self, job: Job) -> bool:
            if job.id in broken_ids:
                raise RecordCorrupt("job: mapped_fields")
            return await expired.requeue(job)

    bench.records = replace(bench.records, expired=ManyAreCorrupt())  # type: ignore[arg-type] # what is asked
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_reaper(bench).run)
        # In the round that found them: their filled batch does not end it.
        await trio.sleep(REAP_SECONDS + 1)
        assert await bench.status_of(sound) is JobStatus.PENDING
        nursery.cancel_scope.cancel()
