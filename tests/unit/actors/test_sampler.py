"""Gauges of the stores are sampled beside the scrapes, and go on when one question fails."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from fetcher.actors.sampled_metrics import SampledMetrics
from fetcher.actors.sampler import ANSWER_SECONDS, SAMPLE_SECONDS, Sampler, store_samples
from fetcher.bootstrap.disks import disk_sample
from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.job_store import ActiveJobs, EventBacklog
from fetcher.domain.jobs import JobStatus
from tests.contract.records.builders import a_connection, a_job
from tests.unit.actors.bench import Bench, an_outcome, now


class Queue:
    def __init__(self) -> None:
        self.ready = 7
        self.is_down = False
        self.hangs = False

    async def ready_count(self) -> int:
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        if self.is_down:
            raise PortUnavailable("broker away")
        return self.ready


def a_sampler(bench: Bench, queue: Queue) -> Sampler:
    sampled = bench.metrics.sampled
    return Sampler(store_samples(bench.records, queue, sampled.share()), metrics=sampled)


async def test_the_states_of_jobs_events_breakers_and_queue_are_shown(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    start = now()
    waiting = a_job(created_at=start - timedelta(seconds=100))
    sent = a_job(created_at=start - timedelta(seconds=200))
    parked = a_job(due_at=start + timedelta(seconds=600), waiting_reason="down")
    running, ended = a_job(), a_job()
    await bench.insert(waiting, sent, parked, running, ended)
    assert await bench.records.dispatch.mark_dispatched({sent.id: 0})
    await bench.records.leases.claim(running.id, owner="w", lease_seconds=60)
    claim = await bench.records.leases.claim(ended.id, owner="w", lease_seconds=60)
    await bench.records.leases.finish(claim.lease, an_outcome(JobStatus.COMPLETED, claim.job))  # type: ignore[union-attr] # it is claimed
    await bench.records.events.postpone(ended.id, retry_in_seconds=9, error_code="unroutable")
    connection = a_connection()
    for _ in range(FAILURES_TO_OPEN):
        down = SourceDown(stage="auth", reason="auth")
        await bench.records.breakers.change(connection.id, failed(connection, down))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a_sampler(bench, Queue()).run)
        await trio.sleep(SAMPLE_SECONDS + 1)
        nursery.cancel_scope.cancel()
    states = ("undispatched", "dispatched", "parked", "processing")
    assert [bench.counted("fetcher_active_jobs", state=each) for each in states] == [1, 1, 1, 1]
    assert bench.counted("fetcher_undispatched_oldest_seconds") == pytest.approx(115, abs=1)
    assert bench.counted("fetcher_dispatched_oldest_seconds") == pytest.approx(15, abs=1)
    assert bench.counted("fetcher_outbox_pending") == 1
    assert bench.counted("fetcher_outbox_oldest_seconds") == pytest.approx(15, abs=1)
    assert bench.counted("fetcher_events_unroutable") == 1
    assert bench.counted("fetcher_connection_breakers_open") == 1
    assert bench.counted("fetcher_queue_ready_messages") == 7


async def test_a_question_that_fails_keeps_its_gauge_and_holds_up_no_other(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    queue = Queue()
    with structlog.testing.capture_logs() as records:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(a_sampler(bench, queue).run)
            await trio.sleep(1)
            queue.is_down = True
            await bench.insert(a_job())
            await trio.sleep(2 * SAMPLE_SECONDS)
            assert bench.counted("fetcher_queue_ready_messages") == 7
            assert bench.counted("fetcher_sample_failures_total", what="queue") == 2
            assert bench.counted("fetcher_active_jobs", state="undispatched") == 1
            queue.is_down, queue.hangs = False, True
            await trio.sleep(SAMPLE_SECONDS + ANSWER_SECONDS)
            assert bench.counted("fetcher_sample_failures_total", what="queue") == 3
            queue.hangs, queue.ready = False, 9
            await trio.sleep(2 * SAMPLE_SECONDS)
            assert bench.counted("fetcher_queue_ready_messages") == 9
            nursery.cancel_scope.cancel()
    assert [record["event"] for record in records] == ["sample_failed", "sample_answered"]


async def test_disks_are_told_by_what_lies_there(tmp_path: Path, bench: Bench) -> None:
    sampled: SampledMetrics = bench.metrics.sampled
    await disk_sample({"spool": tmp_path}, sampled)()
    free = bench.counted("fetcher_disk_free_bytes", place="spool")
    size = bench.counted("fetcher_disk_size_bytes", place="spool")
    assert free is not None
    assert size is not None
    assert 0 < free < size
    with pytest.raises(PortUnavailable):
        await disk_sample({"data": tmp_path / "gone"}, sampled)()


# --- several tenants -------------------------------------------------------------------------


def of_jobs(count: int, *, undispatched_seconds: float, dispatched_seconds: float) -> ActiveJobs:
    return ActiveJobs(
        undispatched=count,
        dispatched=2 * count,
        parked=3 * count,
        processing=4 * count,
        oldest_undispatched_seconds=undispatched_seconds,
        oldest_dispatched_seconds=dispatched_seconds,
    )


def shown(bench: Bench) -> dict[str, float | None]:
    states = ("undispatched", "dispatched", "parked", "processing")
    names = (
        "fetcher_undispatched_oldest_seconds",
        "fetcher_dispatched_oldest_seconds",
        "fetcher_queue_ready_messages",
        "fetcher_outbox_pending",
        "fetcher_outbox_oldest_seconds",
        "fetcher_events_unroutable",
        "fetcher_connection_breakers_open",
    )
    by_state = {state: bench.counted("fetcher_active_jobs", state=state) for state in states}
    return by_state | {name.removeprefix("fetcher_"): bench.counted(name) for name in names}


async def test_a_process_shows_the_sums_of_its_tenants_and_the_oldest_of_each_kind(
    bench: Bench,
) -> None:
    sampled = bench.metrics.sampled
    first, second, silent = sampled.share(), sampled.share(), sampled.share()
    first.jobs = of_jobs(1, undispatched_seconds=7, dispatched_seconds=2)
    first.events = EventBacklog(pending=3, oldest_seconds=40, unroutable=1)
    first.breakers_open, first.queue_ready = 1, 5
    of_first = {
        "undispatched": 1,
        "dispatched": 2,
        "parked": 3,
        "processing": 4,
        "undispatched_oldest_seconds": 7,
        "dispatched_oldest_seconds": 2,
        "queue_ready_messages": 5,
        "outbox_pending": 3,
        "outbox_oldest_seconds": 40,
        "events_unroutable": 1,
        "connection_breakers_open": 1,
    }
    assert shown(bench) == of_first
    second.jobs = of_jobs(10, undispatched_seconds=1, dispatched_seconds=90)
    second.events = EventBacklog(pending=4, oldest_seconds=8, unroutable=2)
    second.breakers_open, second.queue_ready = 2, 6
    assert shown(bench) == {
        "undispatched": 11,
        "dispatched": 22,
        "parked": 33,
        "processing": 44,
        "undispatched_oldest_seconds": 7,
        "dispatched_oldest_seconds": 90,
        "queue_ready_messages": 11,
        "outbox_pending": 7,
        "outbox_oldest_seconds": 40,
        "events_unroutable": 3,
        "connection_breakers_open": 3,
    }
    sampled.forget(second)
    sampled.forget(silent)
    assert shown(bench) == of_first
    sampled.forget(first)
    assert set(shown(bench).values()) == {0}


async def test_many_that_start_at_once_ask_one_after_another_and_as_often_as_told(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    asked: list[tuple[str, float]] = []

    async def ask(name: str) -> None:
        await trio.lowlevel.checkpoint()
        asked.append((name, trio.current_time()))

    async with trio.open_nursery() as nursery:
        for name, first_after in (("a", 10.0), ("b", 35.0)):
            sampler = Sampler(
                {"jobs": partial(ask, name)},
                metrics=bench.metrics.sampled,
                sample_seconds=60,
                first_after_seconds=first_after,
            )
            nursery.start_soon(sampler.run)
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert asked == [("a", 10), ("b", 35), ("a", 70), ("b", 95)]
