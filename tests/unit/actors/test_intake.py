"""Intake: deliveries in, settlements out."""

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog
import trio
import trio.testing

from fetcher.actors.lifecycle import Lifecycle
from fetcher.domain.backoff import TENANT_CONSUMER_BACKOFF
from fetcher.domain.errors import DeliveryLost, PortUnavailable
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import JobStatus
from fetcher.fair_places import FairPlaces
from fetcher.ports import Delivery, RejectReason
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


async def test_a_consumer_that_is_refused_waits_ever_longer_and_is_told_as_degraded_from_the_third(
    autojump_clock: trio.testing.MockClock, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda _low, high: high)
    consumer = FakeConsumer(refusals=5)
    backoff = TENANT_CONSUMER_BACKOFF
    with structlog.testing.capture_logs() as logs:
        async with Worker(bench, FakeJobRun(), consumer, backoff=backoff).running():
            opened = []
            for seconds in (1, 5, 10, 20, 40, 40):
                await trio.sleep(seconds)
                opened.append(consumer.opened)
    assert opened == [1, 2, 3, 4, 5, 6]
    degraded = [log["tries"] for log in logs if log["event"] == "consumer_degraded"]
    assert degraded == [3, 4, 5]
    lost = [log for log in logs if log["event"] == "consumer_lost"]
    assert {(log["code"], log["why"]) for log in lost} == {("unavailable", "queue away")}


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


async def test_a_delivery_that_no_extractor_takes_any_more_is_put_back_when_jobs_are_released(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Its extractor has crashed, or has just ended: nobody waits the supervisor's time for it."""
    consumer = FakeConsumer()
    [job] = await bench.insert(a_job())
    delivery = a_delivery_of(job)
    consumer.put(delivery)
    worker = Worker(bench, FakeJobRun(), consumer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.intake.run)
        await trio.sleep(5)
        assert delivery.settled == []
        bench.lifecycle.drain()
        bench.lifecycle.releasing.set()
    assert trio.current_time() == 5
    assert delivery.settled == ["requeue"]
    assert await bench.status_of(job) is JobStatus.PENDING


async def test_a_tenant_with_one_message_waits_for_one_place_whatever_another_one_has(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    shared = FairPlaces(2)
    small = Bench()
    crowd_run, small_run = FakeJobRun(seconds=10), FakeJobRun(seconds=10)
    crowd, single = FakeConsumer(), FakeConsumer()
    for job in await bench.insert(*(a_job() for _ in range(50))):
        crowd.put(a_delivery_of(job))
    [only] = await small.insert(a_job())
    async with (
        Worker(bench, crowd_run, crowd, shared=shared.of("crowd", 2)).running(),
        Worker(small, small_run, single, shared=shared.of("small", 2)).running(),
    ):
        await trio.sleep(5)
        single.put(a_delivery_of(only))
        await trio.sleep(1)
        assert (len(crowd_run.started), small_run.started) == (2, [])
        await trio.sleep(5)
        assert (len(crowd_run.started), small_run.started) == (3, [(only.id, 1)])
        await trio.sleep(10)
        assert await small.status_of(only) is JobStatus.COMPLETED
        assert len(crowd_run.started) == 5


async def test_what_waited_too_long_for_a_place_of_others_is_put_back(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    shared = FairPlaces(1)
    elsewhere, ours = shared.of("other", 1), shared.of("ours", 1)
    elsewhere.acquire_nowait()
    job_run, consumer = FakeJobRun(), FakeConsumer()
    early, late = await bench.insert(a_job(), a_job())
    first, second = a_delivery_of(early), a_delivery_of(late)
    consumer.put(first)
    async with Worker(bench, job_run, consumer, shared=ours).running():
        await trio.sleep(600)
        consumer.put(second)
        await trio.sleep(299)
        assert (first.settled, second.settled) == ([], [])
        await trio.sleep(2)
        assert (first.settled, second.settled) == (["requeue"], []), "each for itself"
        elsewhere.release()
        await trio.sleep(2)
        assert second.settled == ["ack"]
        assert job_run.started == [(late.id, 1)]
        assert shared.free == 1


async def test_a_drain_puts_back_at_once_what_has_no_place_and_waits_for_what_has(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    shared = FairPlaces(1)
    job_run, consumer = FakeJobRun(seconds=60), FakeConsumer()
    running, waiting = await bench.insert(a_job(), a_job())
    in_hand, without_place = a_delivery_of(running), a_delivery_of(waiting)
    consumer.put(in_hand)
    consumer.put(without_place)
    async with Worker(bench, job_run, consumer, shared=shared.of("a", 1)).running():
        await trio.sleep(5)
        bench.lifecycle.drain()
        await trio.sleep(1)
        assert (in_hand.settled, without_place.settled) == ([], ["requeue"])
        await trio.sleep(60)
        assert in_hand.settled == ["ack"]
        assert (job_run.started, consumer.left_at) == ([(running.id, 1)], [60.0])
        assert shared.free == 1


class LastWords(FakeConsumer):
    """Nothing comes after what it has, and the process drains meanwhile."""

    def __init__(self, lifecycle: Lifecycle, *deliveries: Delivery) -> None:
        super().__init__()
        self._lifecycle = lifecycle
        self._deliveries = deliveries

    @asynccontextmanager
    async def consume(self, *, prefetch: int) -> AsyncIterator[Any]:
        yield self

    async def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        for delivery in self._deliveries:
            yield delivery
        self._lifecycle.drain()

    async def stop(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_what_came_last_before_a_drain_is_put_back_as_well(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    running, waiting = await bench.insert(a_job(), a_job())
    in_hand, without_place = a_delivery_of(running), a_delivery_of(waiting)
    job_run, shared = FakeJobRun(seconds=60), FairPlaces(1)
    consumer = LastWords(bench.lifecycle, in_hand, without_place)
    async with Worker(bench, job_run, consumer, shared=shared.of("a", 1)).running():
        await trio.sleep(1)
        assert (in_hand.settled, without_place.settled) == ([], ["requeue"])
        await trio.sleep(100)
    assert job_run.started == [(running.id, 1)]


async def test_what_waits_for_a_place_when_the_connection_is_lost_takes_none(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """The broker delivers it anew; meanwhile it must not stand before others."""
    shared = FairPlaces(1)
    elsewhere, ours = shared.of("other", 1), shared.of("ours", 1)
    elsewhere.acquire_nowait()
    job_run, consumer = FakeJobRun(), FakeConsumer()
    [job] = await bench.insert(a_job())
    lost = a_delivery_of(job)
    consumer.put(lost)
    async with Worker(bench, job_run, consumer, shared=ours).running():
        await trio.sleep(5)
        consumer.put(PortUnavailable("connection lost"))
        await trio.sleep(5)
        elsewhere.release()
        await trio.sleep(60)
        assert (lost.settled, job_run.started, shared.free) == ([], [], 1)


async def test_a_consumer_that_is_cancelled_holds_no_place(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    shared = FairPlaces(1)
    consumer = FakeConsumer()
    for job in await bench.insert(a_job(), a_job()):
        consumer.put(a_delivery_of(job))
    worker = Worker(bench, FakeJobRun(seconds=60), consumer, shared=shared.of("a", 1))
    async with worker.running():
        await trio.sleep(5)
        assert shared.free == 0
    assert shared.free == 1


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
