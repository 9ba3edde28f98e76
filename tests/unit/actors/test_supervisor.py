from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
import structlog
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from fetcher.actors.board import ActorBoard
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.supervisor import Restart, ShutdownTimes, Supervised, Supervisor, find_refusal
from fetcher.domain.errors import StartRefused

START = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
TIMES = ShutdownTimes(drain_seconds=12, job_wait_seconds=30)


class Scripted:
    """An actor whose run is a function."""

    def __init__(self, name: str, behaviour: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.runs = 0
        self._behaviour = behaviour

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        self.runs += 1
        await self._behaviour()


class Bench:
    def __init__(self, *actors: Scripted, restart: Restart = Restart.PERMANENT) -> None:
        self.lifecycle = Lifecycle()
        self.registry = CollectorRegistry()
        self.metrics = ActorMetrics(self.registry)
        self.board = ActorBoard(lambda: START)
        self.supervisor = Supervisor(
            [Supervised(actor, restart) for actor in actors],
            lifecycle=self.lifecycle,
            times=TIMES,
            metrics=self.metrics,
            board=self.board,
        )

    def restarts(self, name: str) -> float | None:
        return self.registry.get_sample_value("fetcher_actor_restarts_total", {"actor": name})


async def crash() -> None:
    raise KeyError("unexpected")


async def test_a_crashing_actor_restarts_with_backoff_and_is_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    starts: list[float] = []

    async def crash_twice() -> None:
        starts.append(trio.current_time())
        if len(starts) <= 2:
            await crash()
        await trio.sleep_forever()

    actor = Scripted("extractor-1", crash_twice)
    bench = Bench(actor)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.supervisor.run)
        await trio.sleep(30)
        assert actor.runs == 3
        assert bench.restarts("extractor-1") == 2
        assert starts[0] <= starts[1] <= starts[0] + 0.1
        assert starts[1] <= starts[2] <= starts[1] + 0.2
        assert not bench.lifecycle.draining.is_set()
        nursery.cancel_scope.cancel()


async def test_the_sixth_crash_in_a_minute_drains_the_process_with_a_failure(
    autojump_clock: trio.testing.MockClock,
) -> None:
    actor = Scripted("intake", crash)
    bench = Bench(actor)
    await bench.supervisor.run()
    assert actor.runs == 6
    assert bench.restarts("intake") == 6
    assert bench.lifecycle.failure == "actor intake crashed too often: KeyError"
    assert bench.lifecycle.last_round.is_set()


async def test_crashes_spread_over_more_than_a_minute_are_survived(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def crash_every_20_seconds() -> None:
        await trio.sleep(20)
        await crash()

    actor = Scripted("reaper", crash_every_20_seconds)
    bench = Bench(actor)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.supervisor.run)
        await trio.sleep(20 * 10 + 60)
        assert bench.lifecycle.failure is None
        assert actor.runs >= 10
        nursery.cancel_scope.cancel()


async def test_a_permanent_actor_that_ends_early_is_restarted_and_a_transient_one_is_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def end_at_once() -> None:
        await trio.sleep(1)

    permanent, transient = Scripted("permanent", end_at_once), Scripted("transient", end_at_once)
    for actor, restart, runs in (
        (permanent, Restart.PERMANENT, 3),
        (transient, Restart.TRANSIENT, 1),
    ):
        bench = Bench(actor, restart=restart)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.supervisor.run)
            await trio.sleep(2.9)
            assert actor.runs == runs
            nursery.cancel_scope.cancel()


async def test_a_refused_start_ends_the_process_at_once_with_its_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def refuse() -> None:
        raise StartRefused(["SERVER_ADDRESS: 127.0.0.1:4006 is in use"])

    bench = Bench(Scripted("http", refuse), Scripted("reaper", trio.sleep_forever))
    with pytest.raises(StartRefused, match="is in use"):
        await bench.supervisor.run()
    assert trio.current_time() < 1


async def test_a_restart_that_is_refused_is_a_crash_and_the_process_drains(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def serve_once_then_find_the_port_taken() -> None:
        if actor.runs == 1:
            await trio.sleep(5)
            await crash()
        raise StartRefused(["SERVER_ADDRESS: 127.0.0.1:4006 is in use"])

    actor = Scripted("http", serve_once_then_find_the_port_taken)
    bench = Bench(actor)
    await bench.supervisor.run()
    assert bench.lifecycle.failure == "actor http crashed too often: StartRefused"
    assert bench.lifecycle.last_round.is_set()


async def test_a_refusal_is_found_inside_exception_groups() -> None:
    refused = StartRefused(["x"])
    group = ExceptionGroup("a", [ExceptionGroup("b", [ValueError("v"), refused])])
    assert find_refusal(group) is refused
    assert find_refusal(ValueError("v")) is None


async def test_the_way_down_keeps_its_order_and_times(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Drain window, then no new requests, then jobs released, then the last round."""
    seen: list[tuple[str, float]] = []
    bench: Bench

    async def http() -> None:
        await bench.lifecycle.closing.wait()
        seen.append(("closing", trio.current_time() - began))
        await trio.sleep(2)

    async def intake() -> None:
        await bench.lifecycle.draining.wait()
        seen.append(("draining", trio.current_time() - began))
        await bench.lifecycle.releasing.wait()
        seen.append(("releasing", trio.current_time() - began))
        await trio.sleep(1)

    async def relay() -> None:
        await bench.lifecycle.last_round.wait()
        seen.append(("last_round", trio.current_time() - began))

    bench = Bench(
        Scripted("http", http), Scripted("intake", intake), Scripted("outbox_relay", relay)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.supervisor.run)
        await trio.sleep(5)
        began = trio.current_time()
        bench.lifecycle.drain()
    assert seen == [("draining", 0), ("closing", 12), ("releasing", 42), ("last_round", 43)]
    assert trio.current_time() - began == 43
    assert bench.lifecycle.failure is None


async def test_jobs_that_end_in_time_are_not_released(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def intake() -> None:
        await bench.lifecycle.draining.wait()
        await trio.sleep(20)

    bench = Bench(Scripted("intake", intake))
    bench.lifecycle.drain()
    await bench.supervisor.run()
    assert trio.current_time() == 20
    assert not bench.lifecycle.releasing.is_set()


async def test_a_cancelled_supervisor_leaves_no_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    bench = Bench(*(Scripted(f"a{n}", trio.sleep_forever) for n in range(5)))
    with trio.move_on_after(1):
        await bench.supervisor.run()
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_the_record_of_a_crash_names_types_and_places_and_no_text(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def crash_with_secret() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leak)

    async def leak() -> None:
        raise ValueError("host=10.0.0.5 password=hunter2")

    with structlog.testing.capture_logs() as records:
        await Bench(Scripted("intake", crash_with_secret)).supervisor.run()
    crashes = [r for r in records if r["event"] == "actor_crashed"]
    assert len(crashes) == 6
    assert crashes[0]["crash"] == "ExceptionGroup(ValueError)"
    assert crashes[0]["places"][-1].endswith(" leak")
    assert "hunter2" not in repr(records)


async def test_a_crash_beside_the_cancellation_on_the_way_down_stays_inside(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Both come in one group, which is no ``Exception``: its texts must not reach the terminal."""

    async def crash_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("host=10.0.0.5 password=hunter2")

    async def two_tasks() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    bench = Bench(Scripted("reaper", two_tasks))
    with structlog.testing.capture_logs() as records:
        bench.lifecycle.drain()
        await bench.supervisor.run()
    [crash] = [r for r in records if r["event"] == "actor_crashed"]
    assert (crash["actor"], crash["crash"]) == ("reaper", "ExceptionGroup(ValueError)")
    assert "hunter2" not in repr(records)


async def test_jobs_whose_intake_is_gone_are_released_before_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An intake that was restarted has nothing in hand, but its former jobs still run."""
    released_at: list[float] = []

    async def extractor() -> None:
        await bench.lifecycle.releasing.wait()
        await trio.sleep(3)
        released_at.append(trio.current_time())

    async def intake() -> None:
        await bench.lifecycle.draining.wait()

    bench = Bench(Scripted("intake", intake), Scripted("extractor-1", extractor))
    bench.lifecycle.drain()
    await bench.supervisor.run()
    assert released_at == [15]
