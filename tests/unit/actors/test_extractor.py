"""Extractors: what becomes of a delivery's job."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.actors.messages import RelayHint
from fetcher.domain.errors import PortError, PortUnavailable, RecordCorrupt
from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.job_store import Claimed, ClaimRefusal, Lease
from fetcher.domain.jobs import FailureFacts, Job, JobStatus, TerminalOutcome
from fetcher.domain.tenants import TenantNotConfigured, TenantSuspended, TenantUnknown
from fetcher.ports import JobLeases
from tests.unit.actors.bench import (
    Bench,
    FakeConsumer,
    FakeDelivery,
    FakeJobRun,
    a_job,
    an_outcome,
)
from tests.unit.actors.worker import StoreAway, Worker, a_delivery_of


class FirstClaimUnanswered:
    """The first claim takes effect, and nobody hears of it."""

    def __init__(self, leases: JobLeases) -> None:
        self._leases = leases
        self._asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._leases, name)

    async def claim(
        self, job_id: JobId, *, owner: str, lease_seconds: float, token: bytes | None = None
    ) -> Claimed | ClaimRefusal:
        answer = await self._leases.claim(
            job_id, owner=owner, lease_seconds=lease_seconds, token=token
        )
        self._asked += 1
        if self._asked == 1:
            raise PortUnavailable("no answer")
        return answer


async def test_a_pending_job_is_run_recorded_and_then_acknowledged(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(0.5)
        assert await bench.status_of(job) is JobStatus.PROCESSING
        assert delivery.settled == []
        await trio.sleep(1)
        assert await bench.status_of(job) is JobStatus.COMPLETED
        assert delivery.settled == ["ack"]
        assert bench.relay_hints.receive_waiting(limit=5) == [RelayHint(job.id)]
        assert job_run.tidied == [(job.id, 1)]
        assert bench.counted("fetcher_jobs_total", outcome="completed") == 1


@pytest.mark.parametrize(
    ("status", "settled"),
    [(JobStatus.COMPLETED, ["ack"]), (JobStatus.FAILED, ["ack"]), (JobStatus.CANCELLED, ["ack"])],
)
async def test_a_redelivery_of_an_ended_job_is_acknowledged_without_a_run(
    autojump_clock: trio.testing.MockClock, bench: Bench, status: JobStatus, settled: list[str]
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    claim = await bench.records.leases.claim(job.id, owner="other", lease_seconds=60)
    assert isinstance(claim, Claimed)
    await bench.records.leases.finish(claim.lease, an_outcome(status, job))
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
        assert delivery.settled == settled
        assert job_run.started == []


async def test_a_job_under_a_live_lease_is_acknowledged_without_a_run(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    await bench.records.leases.claim(job.id, owner="other", lease_seconds=60)
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
        assert delivery.settled == ["ack"]
        assert job_run.started == []


async def test_a_claim_whose_answer_is_lost_is_found_by_its_next_try(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    bench.records = replace(bench.records, leases=FirstClaimUnanswered(bench.records.leases))  # type: ignore[arg-type] # the rest passes through
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
        assert delivery.settled == ["ack"]
        assert await bench.status_of(job) is JobStatus.COMPLETED
        assert job_run.started == [(job.id, 1)]


async def test_a_completion_that_loses_against_a_cancel_ends_as_cancelled(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=0.5), FakeConsumer()
    [job] = await bench.insert(a_job())
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(0.4)
        await bench.records.jobs.request_cancel(job.id, an_outcome(JobStatus.CANCELLED, job).event)
        await trio.sleep(0.3)
        assert await bench.status_of(job) is JobStatus.CANCELLED
        assert job_run.tidied == [(job.id, None)]


async def test_a_delivery_is_held_while_the_record_store_is_away(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    leases = StoreAway(bench, 0, 120)
    bench.records = replace(bench.records, leases=leases)  # type: ignore[arg-type] # a fake by getattr
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(119)
        assert delivery.settled == []
        await trio.sleep(30)
        assert delivery.settled == ["ack"]
        assert await bench.status_of(job) is JobStatus.COMPLETED


async def test_a_delivery_held_for_half_of_the_ack_timeout_is_put_back(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    leases = StoreAway(bench, 0, 10_000)
    bench.records = replace(bench.records, leases=leases)  # type: ignore[arg-type] # a fake by getattr
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(930)
        assert delivery.settled == ["requeue"]


@pytest.mark.parametrize(
    "failure",
    [
        RecordCorrupt("job: status"),
        TenantUnknown("acme"),
        TenantSuspended("suspended"),
        TenantNotConfigured("mongodb"),
    ],
    ids=lambda failure: str(failure.code),
)
async def test_a_record_that_cannot_be_read_goes_to_the_dead_letters_at_once(
    autojump_clock: trio.testing.MockClock, bench: Bench, failure: PortError
) -> None:
    class Corrupt:
        async def claim(self, *_: object, **__: object) -> None:
            await trio.lowlevel.checkpoint()
            raise failure

    bench.records = replace(bench.records, leases=Corrupt())  # type: ignore[arg-type] # what is asked
    consumer = FakeConsumer()
    delivery = FakeDelivery(body=str(new_job_id()).encode())
    consumer.put(delivery)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(1)
        assert delivery.settled == ["reject unreadable_job"]


async def test_a_job_that_outlives_the_wait_is_released_and_put_back(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=200), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
        bench.lifecycle.drain()
        bench.lifecycle.releasing.set()
        await trio.sleep(1)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.status is JobStatus.PENDING
        assert stored.lease_token is None
        assert stored.dispatched_at is None
        assert stored.takeovers == 0
        assert delivery.settled == ["requeue"]


FAILURE_CODES = (
    *("validation", "not_found", "unauthorized", "forbidden", "limit_exceeded", "conflict"),
    *("unavailable", "timeout", "canceled", "internal", "storage_failed", "worker_lost"),
)


@pytest.mark.parametrize("code", FAILURE_CODES)
async def test_a_failed_job_is_recorded_and_acknowledged_whatever_failed(
    autojump_clock: trio.testing.MockClock, bench: Bench, code: str
) -> None:
    """No failure is permanent or transient for its message: once it is recorded, it is done."""
    consumer = FakeConsumer()

    class FailingRun(FakeJobRun):
        async def run(self, job: Job, lease: Lease) -> TerminalOutcome:
            await trio.lowlevel.checkpoint()
            outcome = an_outcome(JobStatus.FAILED, job)
            return replace(outcome, failure=FailureFacts(message="KEY NOT CONFIGURED", code=code))

    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, FailingRun(), consumer).running():
        await trio.sleep(1)
    assert delivery.settled == ["ack"]
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert stored.failure == FailureFacts(message="KEY NOT CONFIGURED", code=code)
    assert stored.event_pending


async def test_a_terminal_write_that_fails_for_long_acknowledges_nothing_and_deletes_nothing(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=1), FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    worker = Worker(bench, job_run, consumer)
    for extractor in worker.extractors:
        extractor._leases = StoreAway(bench, 0.5, 10_000)  # type: ignore[assignment] # a fault
    async with worker.running():
        await trio.sleep(200)
        assert delivery.settled == ["requeue"]
    stored = await bench.records.jobs.get(job.id)
    assert stored is not None
    assert (stored.status, stored.event_pending) == (JobStatus.PROCESSING, False)
    assert (job_run.tidied, job_run.discarded) == ([], [])


async def test_a_message_whose_extractor_crashes_is_put_back(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """The crash is the supervisor's affair; the claim decides who works on the job next."""
    consumer = FakeConsumer()

    class CrashingRun(FakeJobRun):
        async def run(self, job: Job, lease: Lease) -> TerminalOutcome:
            await trio.lowlevel.checkpoint()
            raise ZeroDivisionError

    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    worker = Worker(bench, CrashingRun(), consumer, places=1)
    crashed: list[bool] = []

    async def extract() -> None:
        try:
            await worker.extractors[0].run()
        except* ZeroDivisionError:
            crashed.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.keeper.run)
        nursery.start_soon(extract)
        nursery.start_soon(worker.intake.run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert crashed == [True]
    assert delivery.settled == ["requeue"]
    assert await bench.status_of(job) is JobStatus.PROCESSING
