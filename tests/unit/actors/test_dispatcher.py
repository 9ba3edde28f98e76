import pytest
import trio
import trio.testing

from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.messages import DispatchHint, HeldJob
from fetcher.domain.errors import PortUnavailable, QueueFull
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus
from tests.unit.actors.bench import Bench, a_job


class FakeSender:
    def __init__(self) -> None:
        self.sent: list[tuple[JobId, float]] = []
        self.down_until = -1.0

    async def send(self, job: Job) -> None:
        await trio.lowlevel.checkpoint()
        if trio.current_time() < self.down_until:
            raise PortUnavailable("broker away")
        self.sent.append((job.id, trio.current_time()))


class SmallQueue(FakeSender):
    """Has room for so many messages, and loses one every half second to a worker."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room

    async def send(self, job: Job) -> None:
        await trio.lowlevel.checkpoint()
        if len(self.sent) - trio.current_time() * 2 >= self._room:
            raise QueueFull("full")
        self.sent.append((job.id, trio.current_time()))


class SlowBroker(FakeSender):
    """Takes a second for each message, and dies with the one whose number is ``dies_at``."""

    def __init__(self, *, dies_at: int | None = None) -> None:
        super().__init__()
        self._dies_at = dies_at

    async def send(self, job: Job) -> None:
        await trio.sleep(1)
        if len(self.sent) == self._dies_at:
            raise PortUnavailable("broker away")
        self.sent.append((job.id, trio.current_time()))


class FakeBacklog:
    def __init__(self, ready: int = 0) -> None:
        self.ready = ready

    async def ready_count(self) -> int:
        await trio.lowlevel.checkpoint()
        return self.ready


def a_dispatcher(bench: Bench, sender: FakeSender, ready: int = 0) -> Dispatcher:
    return Dispatcher(
        outbox=bench.records.dispatch,
        sender=sender,
        backlog=FakeBacklog(ready),
        hints=bench.dispatch_hints,
        metrics=bench.metrics,
    )


async def test_a_hint_is_dispatched_at_once(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        [job] = await bench.insert(a_job())
        bench.dispatch_hints.offer(DispatchHint(job.id))
        await trio.sleep(0.1)
        assert sender.sent == [(job.id, 1.0)]
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.dispatched_at is not None
        nursery.cancel_scope.cancel()


async def test_the_sweep_finds_what_no_hint_told_of(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        jobs = await bench.insert(*(a_job() for _ in range(120)))
        await trio.sleep(5)
        assert {job_id for job_id, _ in sender.sent} == {job.id for job in jobs}
        assert len(sender.sent) == 120
        nursery.cancel_scope.cancel()


async def test_a_new_job_that_is_held_is_sent_without_a_claim(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        job = a_job()
        await bench.records.jobs.insert(job, dispatch_lease_seconds=20)
        bench.dispatch_hints.offer(DispatchHint(job.id, HeldJob(job, until=11)))
        await trio.sleep(0.1)
        assert sender.sent == [(job.id, 1.0)]
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.dispatched_at is not None
        await trio.sleep(60)
        assert len(sender.sent) == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("lost", ["hint", "time", "broker"])
async def test_a_held_job_that_is_not_sent_in_time_is_found_by_a_sweep(
    autojump_clock: trio.testing.MockClock, bench: Bench, lost: str
) -> None:
    sender = FakeSender()
    if lost == "broker":
        sender.down_until = 2
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        job = a_job()
        await bench.records.jobs.insert(job, dispatch_lease_seconds=20)
        if lost != "hint":
            held = HeldJob(job, until=1 if lost == "time" else 11)
            bench.dispatch_hints.offer(DispatchHint(job.id, held))
        await trio.sleep(18)
        assert sender.sent == []
        await trio.sleep(8)
        assert [job_id for job_id, _ in sender.sent] == [job.id]
        nursery.cancel_scope.cancel()


async def test_one_whose_time_is_over_holds_up_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        late, good, named = a_job(), a_job(), a_job()
        for job in (late, good):
            await bench.records.jobs.insert(job, dispatch_lease_seconds=20)
        await bench.insert(named)
        bench.dispatch_hints.offer(DispatchHint(late.id, HeldJob(late, until=1)))
        bench.dispatch_hints.offer(DispatchHint(good.id, HeldJob(good, until=11)))
        bench.dispatch_hints.offer(DispatchHint(named.id))
        await trio.sleep(0.1)
        assert [job_id for job_id, _ in sender.sent] == [good.id, named.id]
        nursery.cancel_scope.cancel()


async def test_jobs_that_come_one_after_another_are_dispatched_together(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        for _ in range(8):
            (job,) = await bench.insert(a_job())
            bench.dispatch_hints.offer(DispatchHint(job.id))
            await trio.sleep(0.005)
        await trio.sleep(0.1)
        assert [round(at, 3) for _, at in sender.sent] == [1.0, *[1.05] * 7]
        nursery.cancel_scope.cancel()


async def test_a_broker_outage_delays_jobs_and_loses_none(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = FakeSender()
    sender.down_until = 600
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        jobs = await bench.insert(*(a_job() for _ in range(60)))
        await trio.sleep(599)
        assert sender.sent == []
        assert all([await bench.status_of(job) is JobStatus.PENDING for job in jobs])
        await trio.sleep(120)
        assert sorted(job_id for job_id, _ in sender.sent) == sorted(job.id for job in jobs)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("ready", "sent_again"), [(0, 1), (1, 0)])
async def test_a_dispatched_job_is_sent_again_only_when_the_queue_cannot_hold_it(
    autojump_clock: trio.testing.MockClock, bench: Bench, ready: int, sent_again: int
) -> None:
    sender = FakeSender()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender, ready).run)
        await bench.insert(a_job())
        await trio.sleep(590)
        assert len(sender.sent) == 1
        await trio.sleep(50)
        assert len(sender.sent) == 1 + sent_again
        nursery.cancel_scope.cancel()


async def test_a_full_queue_is_filled_again_at_every_sweep(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Busy is not broken: no growing waits, so the queue never runs dry."""
    sender = SmallQueue(room=10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await bench.insert(*(a_job() for _ in range(300)))
        await trio.sleep(120)
        # Two a second are taken; each sweep finds the room that they left.
        assert len(sender.sent) >= 2 * 100
        nursery.cancel_scope.cancel()


async def test_a_slow_broker_is_never_sent_a_message_whose_lease_has_run_out(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Two replicas' sweeps share the jobs: none is sent twice, however long a batch takes."""
    sender = SlowBroker()
    jobs = await bench.insert(*(a_job() for _ in range(40)))
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(300)
        assert sorted(job_id for job_id, _ in sender.sent) == sorted(job.id for job in jobs)
        nursery.cancel_scope.cancel()


async def test_what_was_sent_before_the_broker_went_away_is_not_sent_again(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    sender = SlowBroker(dies_at=3)
    jobs = await bench.insert(*(a_job() for _ in range(5)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(120)
        dispatched = [await bench.records.jobs.get(job.id) for job in jobs]
        assert len(sender.sent) == 3
        assert sum(job is not None and job.dispatched_at is not None for job in dispatched) == 3
        nursery.cancel_scope.cancel()


async def test_a_held_job_that_came_while_the_broker_failed_is_sent_with_the_next_sweep(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """Nobody else may send it: else it would wait for the end of its lease."""
    sender = FakeSender()
    sender.down_until = 2.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_dispatcher(bench, sender).run)
        await trio.sleep(1)
        jobs = [a_job(), a_job()]
        for job in jobs:
            await bench.records.jobs.insert(job, dispatch_lease_seconds=15)
            bench.dispatch_hints.offer(
                DispatchHint(job.id, HeldJob(job, until=trio.current_time() + 7.5))
            )
            await trio.sleep(0.1)
        assert sender.sent == []
        await trio.sleep(5)
        assert [job_id for job_id, _ in sender.sent] == [jobs[1].id]
        await trio.sleep(15)
        assert {job_id for job_id, _ in sender.sent} == {job.id for job in jobs}
        assert len(sender.sent) == 2
        nursery.cancel_scope.cancel()
