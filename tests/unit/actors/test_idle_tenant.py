"""What a tenant costs whose actors have nothing to do, and what its longer periods may not cost."""

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from fetcher.actors.channels import Channel
from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.messages import DispatchHint, LeaseEnded, LeaseStarted
from fetcher.actors.outbox_repairer import OutboxRepairer
from fetcher.actors.reaper import Reaper
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Claimed
from tests.unit.actors.bench import Bench, FakeConsumer, FakeJobRun, a_job, an_outcome
from tests.unit.actors.test_dispatcher import FakeBacklog, FakeSender
from tests.unit.actors.worker import Worker, a_delivery_of

LEASE_SECONDS = 60.0
SWEEP_SECONDS = 15.0


class Steps(trio.abc.Instrument):
    """Counts how often tasks of an actor run."""

    def __init__(self, *names: str) -> None:
        self.count = 0
        self._names = names

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += any(name in task.name for name in self._names)


async def test_no_actor_of_jobs_wakes_while_there_is_no_job(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    consumer = FakeConsumer()
    async with Worker(bench, FakeJobRun(seconds=30), consumer).running():
        await trio.sleep(1)
        steps = Steps("LeaseKeeper", "Extractor", "Intake", "_cancel_when")
        trio.lowlevel.add_instrument(steps)
        await trio.sleep(3600)
        assert steps.count == 0
        [job] = await bench.insert(a_job())
        consumer.put(a_delivery_of(job))
        await trio.sleep(20)
        stored = await bench.records.jobs.get(job.id)
        assert stored is not None
        assert stored.lease_token is not None
        await trio.sleep(20)
        steps.count = 0
        await trio.sleep(3600)
        assert steps.count == 0, "and again when the last one has ended"


async def test_a_keeper_that_slept_keeps_the_next_lease_as_the_first(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    renewed: list[float] = []
    leases = bench.records.leases

    class Watched:
        def __getattr__(self, name: str) -> object:
            if name == "renew":
                renewed.append(trio.current_time())
            return getattr(leases, name)

    keeper = LeaseKeeper(leases=Watched(), commands=bench.leases, times=LeaseTimes())  # type: ignore[arg-type] # by getattr
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.run)
        for start in (100.0, 500.0):
            await trio.sleep_until(start)
            renewed.clear()
            [job] = await bench.insert(a_job())
            claim = await leases.claim(job.id, owner="w", lease_seconds=60)
            assert isinstance(claim, Claimed)
            await bench.leases.send(LeaseStarted(lease=claim.lease, asked_at=start))
            await trio.sleep(40)
            assert renewed == pytest.approx([start + 15, start + 30], abs=2.1)
            await bench.leases.send(LeaseEnded(lease=claim.lease))
            await trio.sleep(100)
            assert len(renewed) == 2
        nursery.cancel_scope.cancel()


def no_keys(_: object) -> Sequence[str]:
    return ()


@pytest.mark.parametrize("reap_first", [0.0, 7.0, 14.9])
@pytest.mark.parametrize("sweep_first", [0.0, 7.0, 14.9])
@pytest.mark.parametrize("killed_at", [0.0, 3.0, 8.0, 14.0])
async def test_a_job_of_a_worker_that_is_gone_is_sent_within_its_lease_and_thirty_seconds(
    autojump_clock: trio.testing.MockClock,
    bench: Bench,
    reap_first: float,
    sweep_first: float,
    killed_at: float,
) -> None:
    """At the periods of tenants, and with every hint dropped."""
    sender = FakeSender()
    unheard: Channel[DispatchHint] = Channel("dispatch", capacity=0)
    dispatcher = Dispatcher(
        outbox=bench.records.dispatch,
        sender=sender,
        backlog=FakeBacklog(),
        hints=bench.dispatch_hints,
        metrics=bench.metrics,
        sweep_seconds=SWEEP_SECONDS,
        first_after_seconds=sweep_first,
    )
    reaper = Reaper(
        expired=bench.records.expired,
        cleanup=bench.records.cleanup,
        objects=None,  # type: ignore[arg-type] # nothing was left
        outcome_of=lambda job, status: an_outcome(status, job),
        keys_of=no_keys,
        dispatch_hints=unheard,
        relay_hints=bench.relay_hints,
        metrics=bench.jobs,
        reap_seconds=SWEEP_SECONDS,
        tidy_seconds=60,
        first_after_seconds=reap_first,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dispatcher.run)
        nursery.start_soon(reaper.run)
        await trio.sleep(100 + killed_at)
        [job] = await bench.insert(a_job())
        claimed_at = trio.current_time()
        await bench.records.leases.claim(job.id, owner="gone", lease_seconds=LEASE_SECONDS)
        await trio.sleep(LEASE_SECONDS + 31)
        [(job_id, sent_at)] = sender.sent
        assert job_id == job.id
        assert LEASE_SECONDS <= sent_at - claimed_at <= LEASE_SECONDS + 30
        nursery.cancel_scope.cancel()


async def test_sweeps_begin_when_they_are_told_to_and_hints_are_heard_before(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    asked: list[tuple[str, float]] = []

    class Events:
        async def publish_due(self, *, limit: int, job_ids: list[JobId] | None = None) -> int:
            await trio.lowlevel.checkpoint()
            asked.append(("repair", trio.current_time()))
            return 0

    sender = FakeSender()
    dispatcher = Dispatcher(
        outbox=bench.records.dispatch,
        sender=sender,
        backlog=FakeBacklog(),
        hints=bench.dispatch_hints,
        metrics=bench.metrics,
        sweep_seconds=SWEEP_SECONDS,
        first_after_seconds=10,
    )
    hinted, found = await bench.insert(a_job(), a_job())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(OutboxRepairer(events=Events(), first_after_seconds=12).run)
        nursery.start_soon(dispatcher.run)
        await trio.sleep(2)
        bench.dispatch_hints.offer(DispatchHint(hinted.id))
        await trio.sleep(48)
        nursery.cancel_scope.cancel()
    assert asked == [("repair", 12), ("repair", 42)]
    assert sender.sent == [(hinted.id, 2), (found.id, 10)]
