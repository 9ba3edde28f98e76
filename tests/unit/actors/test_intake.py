"""Intake: deliveries in, settlements out."""

from dataclasses import replace

import trio
import trio.testing

from fetcher.domain.errors import DeliveryLost, PortUnavailable
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import (
    JobStatus,
)
from fetcher.ports import RejectReason
from tests.unit.actors.bench import (
    Bench,
    FakeConsumer,
    FakeDelivery,
    FakeJobRun,
    a_job,
)
from tests.unit.actors.worker import StoreAway, Worker, a_delivery_of


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


async def test_while_the_record_store_is_away_nothing_is_consumed_and_what_is_in_hand_is_held(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    held, later = await bench.insert(a_job(), a_job())
    bench.records = replace(bench.records, leases=StoreAway(bench, 0, 300))  # type: ignore[arg-type] # a fake by getattr
    in_hand, waiting = a_delivery_of(held), a_delivery_of(later)
    consumer.put(in_hand)
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(60)
        consumer.put(waiting)
        await trio.sleep(230)
        assert (consumer.opened, consumer.untaken) == (1, 1)
        assert in_hand.settled == []
        await trio.sleep(60)
        assert consumer.opened == 2
        assert (in_hand.settled, waiting.settled) == (["ack"], ["ack"])
        assert sorted(job_run.started) == sorted([(held.id, 1), (later.id, 1)])


async def test_a_single_claim_without_an_answer_stops_no_consumer(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    bench.records = replace(bench.records, leases=StoreAway(bench, 0, 0.0001))  # type: ignore[arg-type] # a fake by getattr
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer).running():
        await trio.sleep(20)
        assert consumer.opened == 1
        assert job_run.started == [(job.id, 1)]


async def test_a_drain_while_the_record_store_is_away_waits_for_it_no_longer(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job())
    bench.records = replace(bench.records, leases=StoreAway(bench, 0, 1000))  # type: ignore[arg-type] # a fake by getattr
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(60)
        bench.lifecycle.drain()
        await trio.sleep(900)
        assert delivery.settled == ["requeue"]
        assert len(consumer.left_at) == 1


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


class PickyDelivery(FakeDelivery):
    """The dead letters take nothing until a time; the connection may be lost before that."""

    taken_from = 100.0
    lost_from = float("inf")

    async def reject(self, reason: RejectReason) -> None:
        await trio.lowlevel.checkpoint()
        if trio.current_time() >= self.lost_from:
            raise DeliveryLost("gone")
        if trio.current_time() < self.taken_from:
            raise PortUnavailable("full")
        await super().reject(reason)


async def test_what_the_dead_letters_do_not_take_holds_its_place_until_they_do(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    forged = [PickyDelivery(body=b"forged") for _ in range(2)]
    [job] = await bench.insert(a_job())
    for delivery in (*forged, a_delivery_of(job)):
        consumer.put(delivery)
    async with Worker(bench, job_run, consumer, places=2).running():
        await trio.sleep(99)
        assert bench.counted("fetcher_deliveries_rejected_waiting") == 2
        assert bench.counted("fetcher_deliveries_rejected_total", reason="bad_signature") == 2
        assert job_run.started == []
        await trio.sleep(40)
        assert [d.settled for d in forged] == [["reject bad_signature"]] * 2
        assert bench.counted("fetcher_deliveries_rejected_waiting") == 0
        assert await bench.status_of(job) is JobStatus.COMPLETED


async def test_a_rejected_delivery_whose_connection_is_lost_frees_its_place(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    job_run, consumer = FakeJobRun(), FakeConsumer()
    forged = PickyDelivery(body=b"forged")
    forged.lost_from = 30.0
    [job] = await bench.insert(a_job())
    consumer.put(forged)
    consumer.put(a_delivery_of(job))
    async with Worker(bench, job_run, consumer, places=1).running():
        await trio.sleep(90)
        assert forged.settled == []
        assert await bench.status_of(job) is JobStatus.COMPLETED


async def test_a_drain_leaves_what_the_dead_letters_do_not_take_to_the_queue(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    forged = PickyDelivery(body=b"forged")
    consumer.put(forged)
    async with Worker(bench, FakeJobRun(), consumer).running():
        await trio.sleep(40)
        bench.lifecycle.drain()
        await trio.sleep(1)
        assert forged.settled == []
        assert consumer.left_at == [40.0]
