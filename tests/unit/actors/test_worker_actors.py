"""Intake, extractors, lease keeper and reaper together, over a record store in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.actors.extractor import Extractor
from fetcher.actors.intake import Intake
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.messages import DispatchHint, RelayHint
from fetcher.actors.reaper import Reaper
from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import (
    CancelAnswer,
    Claimed,
    Job,
    JobStatus,
    Lease,
    TerminalOutcome,
)
from tests.unit.actors.bench import (
    Bench,
    FakeConsumer,
    FakeDelivery,
    FakeJobRun,
    FakeVerifier,
    a_job,
    an_outcome,
    now,
)


class Worker:
    """One worker process's actors for jobs."""

    def __init__(
        self, bench: Bench, job_run: FakeJobRun, consumer: FakeConsumer, places: int = 2
    ) -> None:
        self.bench = bench
        self.intake = Intake(
            consumer=consumer,
            verifier=FakeVerifier(),
            orders=bench.orders,
            places=places,
            lifecycle=bench.lifecycle,
            metrics=bench.metrics,
        )
        self.keeper = LeaseKeeper(
            leases=bench.records.leases, commands=bench.leases, times=LeaseTimes()
        )
        self.extractors = [
            Extractor(
                number=number,
                owner="w1",
                leases=bench.records.leases,
                lease_seconds=60,
                hold_seconds=900,
                job_run=job_run,
                orders=bench.orders,
                lease_commands=bench.leases,
                relay_hints=bench.relay_hints,
                lifecycle=bench.lifecycle,
                metrics=bench.metrics,
            )
            for number in range(places)
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.keeper.run)
            for extractor in self.extractors:
                nursery.start_soon(extractor.run)
            nursery.start_soon(self.intake.run)
            yield nursery
            nursery.cancel_scope.cancel()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def a_delivery_of(job: Job) -> FakeDelivery:
    return FakeDelivery(body=str(job.id).encode())


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


async def test_an_unknown_job_and_a_forged_message_go_to_the_dead_letters(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    unknown = FakeDelivery(body=str(new_job_id()).encode())
    forged = FakeDelivery(body=b"forged")
    consumer.put(unknown)
    consumer.put(forged)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(1)
        assert unknown.settled == ["reject unknown_job"]
        assert forged.settled == ["reject bad_signature"]
        assert bench.counted("fetcher_deliveries_rejected_total", reason="bad_signature") == 1


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


class StoreAway:
    """The record store's leases, away between two times."""

    def __init__(self, bench: Bench, away_from: float, away_until: float) -> None:
        self._leases = bench.records.leases
        self._span = (away_from, away_until)

    def __getattr__(self, name: str) -> object:
        if self._span[0] <= trio.current_time() < self._span[1]:
            return self._away
        return getattr(self._leases, name)

    async def _away(self, *_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("store away")


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


async def test_a_record_that_cannot_be_read_goes_to_the_dead_letters_at_once(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    class Corrupt:
        async def claim(self, *_: object, **__: object) -> None:
            await trio.lowlevel.checkpoint()
            raise RecordCorrupt("job: status")

    bench.records = replace(bench.records, leases=Corrupt())  # type: ignore[arg-type] # what is asked
    consumer = FakeConsumer()
    delivery = FakeDelivery(body=str(new_job_id()).encode())
    consumer.put(delivery)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(1)
        assert delivery.settled == ["reject unreadable_job"]


async def test_one_record_that_cannot_be_written_keeps_no_other_waiting(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    first, second = await bench.insert(a_job(), a_job())
    for job in (first, second):
        await bench.records.leases.claim(job.id, owner="dead", lease_seconds=1)
    expired = bench.records.expired

    class OneIsCorrupt:
        find_expired = expired.find_expired

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


async def test_no_more_deliveries_are_taken_than_there_are_places(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=10), FakeConsumer()
    jobs = await bench.insert(*(a_job() for _ in range(5)))
    for job in jobs:
        consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer, places=2).running():
        await trio.sleep(5)
        assert len(job_run.started) == 2
        assert bench.counted("fetcher_jobs_in_flight") == 2
        await trio.sleep(30)
        assert len(job_run.started) == 5


async def test_a_lost_connection_is_waited_out_and_jobs_in_hand_go_on(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=20), FakeConsumer(refusals=2)
    first, second = await bench.insert(a_job(), a_job())
    consumer.put(a_delivery_of(first))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(10)
        consumer.put(PortUnavailable("connection lost"))
        await trio.sleep(5)
        consumer.put(a_delivery_of(second))
        await trio.sleep(60)
        assert consumer.opened >= 4
        assert await bench.status_of(first) is JobStatus.COMPLETED
        assert await bench.status_of(second) is JobStatus.COMPLETED


async def test_the_drain_stops_the_consumer_at_once_and_settles_what_is_in_hand(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(seconds=20), FakeConsumer()
    running, later = await bench.insert(a_job(), a_job())
    delivery, not_taken = a_delivery_of(running), a_delivery_of(later)
    consumer.put(delivery)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(5)
        bench.lifecycle.drain()
        await trio.sleep(1)
        consumer.put(not_taken)
        await trio.sleep(30)
        assert delivery.settled == ["ack"]
        assert not_taken.settled == []
        assert consumer.left_at == [20.0]
        assert await bench.status_of(running) is JobStatus.COMPLETED


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
        metrics=bench.metrics,
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
        await trio.sleep(70)
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
        await trio.sleep(40)
        assert objects.deleted == ["external-data/a.json", "external-data/a.2.json"]
        assert await bench.records.cleanup.find_due(limit=5) == []
        nursery.cancel_scope.cancel()
