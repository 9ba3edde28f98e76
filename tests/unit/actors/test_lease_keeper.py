"""The lease keeper, seen from the jobs whose leases it keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio
import trio.testing

from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.messages import LeaseEnded, LeaseLoss, LeaseStarted
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import CancelAnswer, Claimed, Lease, LeaseState
from fetcher.domain.jobs import Job, JobStatus
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


async def test_an_attempt_is_stopped_when_its_own_process_claims_the_job_anew(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """The clock of the store jumps past the lease, and the same worker takes the job again."""
    job_run, consumer = FakeJobRun(seconds=5), FakeConsumer()
    [job] = await bench.insert(a_job())
    first, second = a_delivery_of(job), a_delivery_of(job)
    consumer.put(first)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(0.5)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        await expire(bench, stored)
        consumer.put(second)
        await trio.sleep(0.2)
        assert job_run.started == [(job.id, 1), (job.id, 2)]
        assert job_run.cut_off == [job.id]
        assert first.settled == ["ack"]
        await trio.sleep(6)
        assert second.settled == ["ack"]
        assert await bench.status_of(job) is JobStatus.COMPLETED


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


class SlowStore:
    """The record store's leases: what they do is done at once, the answer takes its time."""

    def __init__(self, bench: Bench, **seconds: float) -> None:
        self._leases = bench.records.leases
        self._seconds = seconds

    def __getattr__(self, name: str) -> object:
        method = getattr(self._leases, name)
        if name not in self._seconds:
            return method

        async def slowly(*args: object, **kwargs: object) -> object:
            answer = await method(*args, **kwargs)
            await trio.sleep(self._seconds[name])
            return answer

        return slowly


async def test_many_leases_are_renewed_in_time_by_a_slow_store(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    slow = SlowStore(bench, renew=4, check=4)
    bench.records = replace(bench.records, leases=slow)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(seconds=200), FakeConsumer()
    jobs = await bench.insert(*(a_job() for _ in range(20)))
    for job in jobs:
        consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer, places=20).running():
        await trio.sleep(230)
        assert job_run.cut_off == []
        assert [await bench.status_of(job) for job in jobs] == [JobStatus.COMPLETED] * 20


async def test_many_attempts_end_themselves_in_time_when_the_store_hangs(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    slow = SlowStore(bench, renew=10_000, check=10_000)
    bench.records = replace(bench.records, leases=slow)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(seconds=200), FakeConsumer()
    jobs = await bench.insert(*(a_job() for _ in range(20)))
    for job in jobs:
        consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer, places=20).running():
        await trio.sleep(49)
        assert job_run.cut_off == []
        await trio.sleep(2.5)
        assert len(job_run.cut_off) == 20


async def test_the_lease_counts_from_when_the_claim_was_asked_for(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    slow = SlowStore(bench, claim=9, renew=10_000, check=10_000)
    bench.records = replace(bench.records, leases=slow)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(seconds=200), FakeConsumer()
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(52)
        assert job_run.cut_off == [job.id]


async def test_a_late_answer_about_a_former_lease_does_not_end_the_next_attempt(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Asked while the first attempt ran, answered when the second one has the job."""
    answers = trio.Event()
    lost: list[LeaseLoss] = []

    class Leases:
        async def check(self, leases: Sequence[Lease]) -> Mapping[JobId, LeaseState]:
            await answers.wait()
            return {lease.job_id: LeaseState.LOST for lease in leases if lease.token == b"1"} or {
                lease.job_id: LeaseState.HELD for lease in leases
            }

    keeper = LeaseKeeper(leases=Leases(), commands=bench.leases, times=LeaseTimes())  # type: ignore[arg-type] # only what is asked here
    job = a_job()
    first = LeaseStarted(lease=Lease(job_id=job.id, token=b"1", attempt=1), asked_at=0)
    second = LeaseStarted(lease=Lease(job_id=job.id, token=b"2", attempt=2), asked_at=0)

    async def hear(started: LeaseStarted) -> None:
        lost.append(await started.lost.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        nursery.start_soon(hear, second)
        await bench.leases.send(first)
        await trio.sleep(1.5)
        await bench.leases.send(LeaseEnded(lease=first.lease))
        await bench.leases.send(second)
        answers.set()
        await trio.sleep(5)
        assert lost == []
        nursery.cancel_scope.cancel()
