"""Probes and health: what is asked, and what is answered."""

from collections.abc import Awaitable, Callable

import trio
import trio.testing

from fetcher.actors.channels import Channel
from fetcher.actors.health import Health
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import HealthQuestion, HealthReport, ProbeOrder
from fetcher.actors.probes import Probes, run_probes
from fetcher.ports import Probe, ProbeResult, ProbeStatus

UP = ProbeResult(status=ProbeStatus.UP, latency_ms=3)
DOWN = ProbeResult(status=ProbeStatus.DOWN, error="refused")


def a_probe(name: str, *results: ProbeResult, seconds: float = 0, timeout: float = 2) -> Probe:
    """Answers with each result in turn, the last one for ever."""
    left = list(results)

    async def check() -> ProbeResult:
        await trio.sleep(seconds)
        return left.pop(0) if len(left) > 1 else left[0]

    return Probe(name=name, timeout_seconds=timeout, check=check)


class Gauge:
    def __init__(self) -> None:
        self.passed: dict[str, bool] = {}

    def set_self_probe(self, name: str, passed: bool) -> None:
        self.passed[name] = passed


class Clinic:
    def __init__(self, *probes: Probe, optional: tuple[str, ...] = ()) -> None:
        self.lifecycle = Lifecycle()
        self.questions: Channel[HealthQuestion] = Channel("health", capacity=10)
        orders: Channel[ProbeOrder] = Channel("probes", capacity=10)
        self.gauge = Gauge()
        self.actors: list[Callable[[], Awaitable[None]]] = [
            Probes(probes=probes, orders=orders).run,
            Health(
                questions=self.questions,
                probe_orders=orders,
                lifecycle=self.lifecycle,
                gauge=self.gauge,
                optional=optional,
            ).run,
        ]

    async def ask(self, *, probe: bool) -> HealthReport:
        question = HealthQuestion(probe)
        await self.questions.send(question)
        return await question.reply.get()


async def test_the_self_probe_is_repeated_until_it_passes_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", DOWN, DOWN, UP, DOWN), a_probe("rabbitmq", UP))
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        await trio.sleep(6)
        assert not (await clinic.ask(probe=False)).self_probe_passed
        assert clinic.gauge.passed == {"mongodb": False, "rabbitmq": True}
        await trio.sleep(5)
        assert (await clinic.ask(probe=False)).self_probe_passed
        assert clinic.gauge.passed == {"mongodb": True, "rabbitmq": True}
        await trio.sleep(60)
        # It failed since, and that is readiness's business: health has passed for good.
        assert (await clinic.ask(probe=False)).self_probe_passed
        nursery.cancel_scope.cancel()


async def test_an_optional_dependency_does_not_decide_health(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("redis", DOWN), a_probe("mongodb", UP), optional=("redis",))
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        await trio.sleep(1)
        assert (await clinic.ask(probe=False)).self_probe_passed
        assert clinic.gauge.passed == {"redis": False, "mongodb": True}
        nursery.cancel_scope.cancel()


async def test_probes_run_side_by_side_each_with_its_own_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    results = await run_probes(
        [
            a_probe("mongodb", UP, seconds=3),
            a_probe("redis", UP, seconds=3, timeout=1),
            a_probe("rabbitmq", UP, seconds=1.5),
        ]
    )
    assert trio.current_time() == 2
    assert results["mongodb"] == ProbeResult(status=ProbeStatus.DOWN, error="timeout")
    assert results["redis"] == ProbeResult(status=ProbeStatus.DOWN, error="timeout")
    assert results["rabbitmq"] == UP


async def test_no_probe_runs_while_the_process_drains(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", UP))
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        await trio.sleep(1)
        assert (await clinic.ask(probe=True)).checks == {"mongodb": UP}
        clinic.lifecycle.drain()
        report = await clinic.ask(probe=True)
        assert (report.draining, report.checks) == (True, None)
        nursery.cancel_scope.cancel()
