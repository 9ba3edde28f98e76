"""The lease keeper, seen from the jobs whose leases it keeps."""

from dataclasses import replace

import trio
import trio.testing

from fetcher.domain.jobs import (
    CancelAnswer,
    Claimed,
    Job,
    JobStatus,
    Lease,
)
from tests.unit.actors.bench import (
    Bench,
    FakeConsumer,
    FakeJobRun,
    a_job,
    an_outcome,
    now,
)
from tests.unit.actors.worker import StoreAway, Worker, a_delivery_of


async def test_the_lease_is_renewed_for_as_long_as_the_job_runs(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=250), FakeConsumer()
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        for _ in range(24):
            await trio.sleep(10)
            stored = await bench.records.jobs.get(job.id)
            assert stored is not None
            assert stored.lease_until is not None
            assert (stored.lease_until - now()).total_seconds() > 40
        await trio.sleep(20)
        assert await bench.status_of(job) is JobStatus.COMPLETED


async def test_a_cancelled_job_stops_within_two_seconds_and_ends_as_cancelled(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=250), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(10)
        mark = an_outcome(JobStatus.CANCELLED, job).event
        assert await bench.records.jobs.request_cancel(job.id, mark) is CancelAnswer.REQUESTED
        await trio.sleep(2)
        assert await bench.status_of(job) is JobStatus.CANCELLED
        assert job_run.cut_off == [job.id]
        assert job_run.tidied == [(job.id, None)]
        assert delivery.settled == ["ack"]


async def test_a_taken_over_attempt_stops_deletes_its_own_object_only_and_writes_nothing(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """The clock of the store jumps past the lease; another worker claims."""
    job_run, consumer = FakeJobRun(seconds=5), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(0.5)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.lease_token is not None
        await expire(bench, stored)
        other = await bench.records.leases.claim(job.id, owner="w2", lease_seconds=60)
        assert isinstance(other, Claimed)
        await trio.sleep(3)
        assert job_run.cut_off == [job.id]
        assert delivery.settled == ["ack"]
        assert await bench.status_of(job) is JobStatus.PROCESSING
        assert job_run.tidied == []


async def expire(bench: Bench, job: Job) -> None:
    """Renew the lease with one that ran out already."""
    assert job.lease_token is not None
    lease = Lease(job_id=job.id, token=job.lease_token, attempt=job.attempt)
    assert await bench.records.leases.renew(lease, lease_seconds=-1)


async def test_without_a_renewal_the_attempt_ends_itself_before_its_lease_does(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """50 s without an answer of the store: acknowledges nothing, deletes nothing."""
    leases = StoreAway(bench, 1, 10_000)
    bench.records = replace(bench.records, leases=leases)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(seconds=250), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(49)
        assert job_run.cut_off == []
        await trio.sleep(4)
        assert job_run.cut_off == [job.id]
        assert delivery.settled == ["requeue"]
        assert job_run.tidied == []
        assert job_run.discarded == []
