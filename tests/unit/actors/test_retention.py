"""Retention: results go first, then records, in small batches and whatever fails."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from fetcher.actors import retention
from fetcher.actors.retention import Retention
from fetcher.commands.delete_result import DeleteResult
from fetcher.domain.errors import OperationRefused, PortUnavailable, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.domain.retention import DAY_SECONDS, RetentionTimes
from tests.unit.actors.bench import Bench, a_job, an_outcome


class Bucket:
    """Remembers what was deleted; keys in ``stuck`` cannot be, and while ``away`` none can."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.tried = 0
        self.stuck: dict[str, Exception] = {}
        self.away = False

    async def delete(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        self.tried += 1
        if self.away:
            raise PortUnavailable("bucket away")
        if key in self.stuck:
            raise self.stuck[key]
        self.deleted.append(key)


def an_actor(bench: Bench, bucket: Bucket, *, job_days: int = 0, result_days: int = 0) -> Retention:
    return Retention(
        retention=bench.records.retention,
        audit=bench.records.audit,
        delete_result=DeleteResult(
            jobs=bench.records.jobs,
            objects=bucket,  # type: ignore[arg-type] # the one method that is used
            now=lambda: datetime.now(UTC),
        ),
        times=RetentionTimes(job_days=job_days, result_days=result_days),
        metrics=bench.metrics,
    )


async def ended(bench: Bench, status: JobStatus = JobStatus.COMPLETED) -> Job:
    [job] = await bench.insert(a_job())
    claim = await bench.records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert not isinstance(claim, str)
    outcome: TerminalOutcome = an_outcome(status, job)
    await bench.records.leases.finish(claim.lease, outcome)
    await bench.records.events.mark_published(job.id)
    return job


async def path_of(bench: Bench, job: Job) -> str:
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert stored.result is not None
    return stored.result.path


async def while_running(actor: Retention, action: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        await action()
        nursery.cancel_scope.cancel()


async def result_is_gone(bench: Bench, job_id: JobId) -> bool:
    stored = await bench.records.jobs.get(job_id)
    assert stored is not None
    return stored.result_deleted_at is not None


async def test_result_goes_when_its_days_are_over_and_the_record_says_so(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job, bucket = await ended(bench), Bucket()
    path = await path_of(bench, job)

    async def watch() -> None:
        await trio.sleep(3 * DAY_SECONDS - 7200)
        assert not await result_is_gone(bench, job.id)
        await trio.sleep(4 * 3600)
        assert await result_is_gone(bench, job.id)

    await while_running(an_actor(bench, bucket, result_days=3), watch)
    assert bucket.deleted == [path]
    assert bench.counted("fetcher_expired_total", what="result") == 1


async def test_job_goes_after_its_result(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job, other, bucket = await ended(bench), await ended(bench, JobStatus.FAILED), Bucket()
    path = await path_of(bench, job)

    async def watch() -> None:
        await trio.sleep(2 * DAY_SECONDS + 7200)
        assert await result_is_gone(bench, job.id)
        await trio.sleep(3 * DAY_SECONDS)
        assert await bench.records.jobs.get(job.id) is None
        assert await bench.records.jobs.get(other.id) is None

    await while_running(an_actor(bench, bucket, result_days=2, job_days=5), watch)
    assert bucket.deleted == [path]
    assert bench.counted("fetcher_expired_total", what="job") == 2


async def test_job_whose_result_cannot_be_deleted_stays(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job, bucket = await ended(bench), Bucket()
    bucket.stuck[await path_of(bench, job)] = PortUnavailable("no answer")

    async def watch() -> None:
        await trio.sleep(9 * DAY_SECONDS)
        assert not await result_is_gone(bench, job.id)

    await while_running(an_actor(bench, bucket, result_days=1, job_days=1), watch)
    assert bench.counted("fetcher_expired_total", what="job") is None


@pytest.mark.parametrize(
    "failure", [PortUnavailable("no answer"), OperationRefused("denied"), ValueError("no key")]
)
async def test_one_that_fails_keeps_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench, failure: Exception
) -> None:
    jobs, bucket = [await ended(bench) for _ in range(3)], Bucket()
    bucket.stuck[await path_of(bench, jobs[0])] = failure

    async def watch() -> None:
        await trio.sleep(DAY_SECONDS + 7200)
        assert [await result_is_gone(bench, job.id) for job in jobs] == [False, True, True]

    await while_running(an_actor(bench, bucket, result_days=1), watch)


async def test_bucket_that_is_away_is_left_alone_until_the_next_round(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    jobs, bucket = [await ended(bench) for _ in range(9)], Bucket()
    bucket.away = True

    async def watch() -> None:
        await trio.sleep(DAY_SECONDS + 1800)
        before = bucket.tried
        await trio.sleep(3600)
        assert bucket.tried == before + 3
        bucket.away = False
        await trio.sleep(3600)
        assert all([await result_is_gone(bench, job.id) for job in jobs])

    await while_running(an_actor(bench, bucket, result_days=1), watch)


@pytest.mark.parametrize("batch", [2, 3, 100])
async def test_as_many_stuck_results_as_end_a_round_keep_none_behind_them_for_ever(
    autojump_clock: trio.testing.MockClock,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    monkeypatch.setattr(retention, "BATCH", batch)
    jobs, bucket = [await ended(bench) for _ in range(10)], Bucket()
    stuck = retention.MAX_FAILURES + 1
    for job in jobs[:stuck]:
        bucket.stuck[await path_of(bench, job)] = PortUnavailable("no answer")

    async def watch() -> None:
        await trio.sleep(DAY_SECONDS + 2 * 3600 + 1800)
        gone = [await result_is_gone(bench, job.id) for job in jobs]
        assert gone == [False] * stuck + [True] * (len(jobs) - stuck)
        # Those at the head are tried again, round after round.
        bucket.stuck.clear()
        await trio.sleep(2 * 3600)
        assert all([await result_is_gone(bench, job.id) for job in jobs])

    await while_running(an_actor(bench, bucket, result_days=1), watch)


@pytest.mark.parametrize(
    "failure",
    [OperationRefused("under a hold"), ValueError("no key"), RecordCorrupt("job: result_path")],
)
async def test_any_number_of_results_that_cannot_be_deleted_keeps_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench, failure: Exception
) -> None:
    jobs, bucket = [await ended(bench) for _ in range(150)], Bucket()
    for job in jobs[:-2]:
        bucket.stuck[await path_of(bench, job)] = failure

    async def watch() -> None:
        await trio.sleep(DAY_SECONDS + retention.SWEEP_SECONDS + 600)
        gone = [await result_is_gone(bench, job.id) for job in jobs]
        assert gone == [False] * 148 + [True] * 2

    await while_running(an_actor(bench, bucket, result_days=1), watch)


async def test_all_batches_are_gone_through_in_one_round(
    autojump_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    jobs, bucket = [await ended(bench) for _ in range(5)], Bucket()

    async def watch() -> None:
        await trio.sleep(2 * DAY_SECONDS + 7200)
        found = [await bench.records.jobs.get(job.id) for job in jobs]
        assert found == [None] * 5

    await while_running(an_actor(bench, bucket, result_days=1, job_days=2), watch)
    assert len(bucket.deleted) == 5


async def test_records_that_are_away_end_no_actor(
    autojump_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, bucket = await ended(bench), Bucket()
    find = bench.records.retention.find_results
    calls = 0

    async def away_at_first(**asked: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise PortUnavailable("record store away")
        return await find(**asked)  # type: ignore[arg-type] # passed on as it came

    monkeypatch.setattr(bench.records.retention, "find_results", away_at_first)

    async def watch() -> None:
        await trio.sleep(DAY_SECONDS + 7200)
        assert await result_is_gone(bench, job.id)

    await while_running(an_actor(bench, bucket, result_days=1), watch)
