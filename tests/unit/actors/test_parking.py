"""Extractors and dispatcher: a job that waits for its connection."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.job_store import CancelAnswer
from fetcher.domain.jobs import JobStatus
from tests.unit.actors.bench import Bench, FakeConsumer, FakeJobRun, a_job, an_outcome
from tests.unit.actors.worker import StoreAway, Worker, a_delivery_of


async def test_a_parked_job_is_pending_and_its_delivery_acknowledged(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    job_run.parks_for = 30
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(2)
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert (stored.status, stored.waiting_reason) == (
        JobStatus.PENDING,
        "connection sales_db is down",
    )
    assert (stored.takeovers, stored.lease_token, stored.dispatched_at) == (0, None, None)
    assert delivery.settled == ["ack"]
    assert job_run.tidied == []
    assert bench.relay_hints.receive_waiting(limit=5) == []
    assert bench.counted("fetcher_jobs_total", outcome="parked") == 1
    assert await bench.records.dispatch.claim_due(limit=5, lease_seconds=15) == []
    await trio.sleep(30)
    (again,) = await bench.records.dispatch.claim_due(limit=5, lease_seconds=15)
    assert (again.job.id, again.dispatch_seq) == (job.id, 1)


async def test_a_parked_job_runs_when_it_is_delivered_again(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    job_run.parks_for = 30
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(2)
        early = a_delivery_of(job)
        consumer.put(early)
        await trio.sleep(2)
        assert early.settled == ["ack"]
        assert len(job_run.started) == 1
        job_run.parks_for = 0
        await trio.sleep(30)
        consumer.put(a_delivery_of(job))
        await trio.sleep(2)
        assert await bench.status_of(job) is JobStatus.COMPLETED
        assert job_run.started == [(job.id, 1), (job.id, 2)]


async def test_a_parking_waits_for_the_record_store(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    leases = StoreAway(bench, 0.5, 20)
    bench.records = replace(bench.records, leases=leases)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(), FakeConsumer()
    job_run.parks_for = 100
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(19)
        assert delivery.settled == []
        await trio.sleep(15)
        assert delivery.settled == ["ack"]
        assert await bench.status_of(job) is JobStatus.PENDING


async def test_a_wait_that_cannot_be_stored_gives_the_delivery_back(
    autojump_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def corrupt(*_: object, **__: object) -> bool:
        await trio.lowlevel.checkpoint()
        raise RecordCorrupt("job record: status")

    monkeypatch.setattr(bench.records.leases, "park", corrupt)
    job_run, consumer = FakeJobRun(), FakeConsumer()
    job_run.parks_for = 100
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(2)
    assert delivery.settled == ["requeue"]
    assert bench.counted("fetcher_jobs_total", outcome="unrecorded") == 1


async def test_what_is_parked_is_cancelled_at_once(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    job_run.parks_for = 30
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(2)
    mark = an_outcome(JobStatus.CANCELLED, job).event
    assert await bench.records.jobs.request_cancel(job.id, mark) is CancelAnswer.CANCELLED
