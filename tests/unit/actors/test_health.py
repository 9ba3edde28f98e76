"""Probes and health: what is asked, and what is answered."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from fetcher.actors.channels import Channel
from fetcher.actors.health import Health
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import HealthQuestion, HealthReport, ProbeOrder
from fetcher.actors.probes import MOST_LEFT_BEHIND, Probes, run_probes
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
        self.observed: list[Mapping[str, ProbeResult]] = []
        self.actors: list[Callable[[], Awaitable[None]]] = [
            Probes(probes=probes, orders=orders, observe=self.observed.append).run,
            Health(
                questions=self.questions,
                probe_orders=orders,
                lifecycle=self.lifecycle,
                gauge=self.gauge,
                optional=optional,
                checker_count=len(probes),
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


async def probed(*probes: Probe) -> Mapping[str, ProbeResult]:
    async with trio.open_nursery() as nursery:
        results = await run_probes(probes, nursery)
        nursery.cancel_scope.cancel()
    return results


async def test_probes_run_side_by_side_each_with_its_own_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    results = await probed(
        a_probe("mongodb", UP, seconds=3),
        a_probe("redis", UP, seconds=3, timeout=1),
        a_probe("rabbitmq", UP, seconds=1.5),
    )
    assert trio.current_time() == 2
    assert results["mongodb"] == ProbeResult(status=ProbeStatus.DOWN, error="timeout")
    assert results["redis"] == ProbeResult(status=ProbeStatus.DOWN, error="timeout")
    assert results["rabbitmq"] == UP


@pytest.mark.parametrize(
    ("result", "latency_ms"),
    [
        (ProbeResult(status=ProbeStatus.DOWN, error="refused"), 0),
        (ProbeResult(status=ProbeStatus.SKIPPED, reason="off"), 0),
        (ProbeResult(status=ProbeStatus.UP, latency_ms=7), 7),
    ],
)
async def test_a_latency_is_added_to_what_is_up_and_tells_none(
    result: ProbeResult, latency_ms: int, autojump_clock: trio.testing.MockClock
) -> None:
    assert (await probed(a_probe("mongodb", result)))["mongodb"].latency_ms == latency_ms


class Deaf:
    """A probe that does not end when it is told to, until it is let go."""

    def __init__(self, name: str = "mongodb") -> None:
        self.begun = 0
        self.let_go = trio.Event()
        self.probe = Probe(name=name, timeout_seconds=2, check=self.check)

    async def check(self) -> ProbeResult:
        self.begun += 1
        with trio.CancelScope(shield=True):
            await self.let_go.wait()
        return UP


async def test_a_probe_that_ignores_cancellation_is_left_behind_and_the_answer_is_in_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    deaf = Deaf()
    clinic = Clinic(deaf.probe, a_probe("rabbitmq", UP))
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        began = trio.current_time()
        report = await clinic.ask(probe=True)
        assert trio.current_time() - began < 2.5
        assert report.checks == {
            "mongodb": ProbeResult(status=ProbeStatus.DOWN, error="timeout"),
            "rabbitmq": UP,
        }
        # However often it is asked for, no more than so many hang at a time.
        for _ in range(10):
            await clinic.ask(probe=True)
        assert deaf.begun == MOST_LEFT_BEHIND
        deaf.let_go.set()
        await trio.testing.wait_all_tasks_blocked()
        report = await clinic.ask(probe=True)
        assert report.checks is not None
        assert report.checks["mongodb"] == UP
        nursery.cancel_scope.cancel()


async def test_twenty_questions_at_once_are_answered_in_the_time_of_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", UP, seconds=3), a_probe("rabbitmq", UP))
    reports: list[HealthReport] = []

    async def ask() -> None:
        reports.append(await clinic.ask(probe=True))

    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        began = trio.current_time()
        async with trio.open_nursery() as asking:
            for _ in range(20):
                asking.start_soon(ask)
        assert trio.current_time() - began < 3
        nursery.cancel_scope.cancel()
    assert [report.checks for report in reports] == [
        {"mongodb": ProbeResult(status=ProbeStatus.DOWN, error="timeout"), "rabbitmq": UP}
    ] * 20


async def test_fifty_questions_at_once_are_all_healthy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", UP, seconds=0.5), a_probe("rabbitmq", UP))
    reports: list[HealthReport] = []

    async def ask() -> None:
        reports.append(await clinic.ask(probe=True))

    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        began = trio.current_time()
        async with trio.open_nursery() as asking:
            for _ in range(50):
                asking.start_soon(ask)
        assert trio.current_time() - began < 1
        nursery.cancel_scope.cancel()
    assert [report.checks for report in reports] == [{"mongodb": UP, "rabbitmq": UP}] * 50
    # one round more is the self-probe's
    assert len(clinic.observed) == 51


async def test_a_question_that_was_given_up_cancels_its_probes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cancelled: list[str] = []

    async def check() -> ProbeResult:
        try:
            await trio.sleep(1000)
        except trio.Cancelled:
            cancelled.append("mongodb")
            raise
        return UP

    clinic = Clinic(Probe(name="mongodb", timeout_seconds=100, check=check))
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
            await trio.sleep(1)
        with trio.move_on_after(1):
            await clinic.ask(probe=True)
        await trio.testing.wait_all_tasks_blocked()
        assert cancelled == ["mongodb"]
        assert trio.current_time() < 4
        nursery.cancel_scope.cancel()


def records(logs: Sequence[Mapping[str, object]], event: str) -> list[Mapping[str, object]]:
    return [each for each in logs if each["event"] == event]


async def test_the_self_probe_is_told_in_full_once_and_then_what_changes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", DOWN, DOWN, UP), a_probe("rabbitmq", UP))
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            for actor in clinic.actors:
                nursery.start_soon(actor)
            await trio.sleep(20)
            nursery.cancel_scope.cancel()
    [started] = records(logs, "startup_self_probe_started")
    assert started["checker_count"] == 2
    assert [
        (each["dep"], each["status"], each["log_level"], each.get("error"))
        for each in records(logs, "self_probe_check")
    ] == [
        ("mongodb", "down", "error", "refused"),
        ("rabbitmq", "up", "info", None),
        ("mongodb", "up", "info", None),
    ]
    assert [
        (each["failing_deps"], each["failing_count"])
        for each in records(logs, "startup_self_probe_failed")
    ] == [("mongodb", 1)] * 2
    assert len(records(logs, "startup_self_probe_passed")) == 1


async def test_probes_that_answer_nothing_are_no_dependency(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(a_probe("mongodb", UP))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clinic.actors[1])
        report = await clinic.ask(probe=True)
        assert trio.current_time() == 4
        assert report.checks == {"probes": ProbeResult(status=ProbeStatus.DOWN, error="no answer")}
        assert not report.self_probe_passed
        assert clinic.gauge.passed == {}
        nursery.cancel_scope.cancel()


async def test_a_check_that_crashes_is_down_and_its_text_is_told_nowhere(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def crash() -> ProbeResult:
        raise RuntimeError("canary")

    with capture_logs() as logs:
        results = await probed(
            Probe(name="mongodb", timeout_seconds=2, check=crash), a_probe("redis", UP)
        )
    assert results == {
        "mongodb": ProbeResult(status=ProbeStatus.DOWN, error="the check failed"),
        "redis": UP,
    }
    [told] = records(logs, "probe_crashed")
    assert (told["dep"], told["crash"]) == ("mongodb", "RuntimeError")
    assert "canary" not in str(logs)


async def test_what_is_skipped_or_does_not_apply_passes_the_self_probe(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clinic = Clinic(
        a_probe("mongodb", ProbeResult(status=ProbeStatus.NOT_APPLICABLE, reason="multi-tenant")),
        a_probe("tenant_manager", ProbeResult(status=ProbeStatus.SKIPPED, reason="off")),
        a_probe("s3", UP),
    )
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        await trio.sleep(1)
        assert (await clinic.ask(probe=False)).self_probe_passed
        assert clinic.gauge.passed == {"mongodb": True, "tenant_manager": True, "s3": True}
        nursery.cancel_scope.cancel()


async def test_a_process_without_probes_is_well(autojump_clock: trio.testing.MockClock) -> None:
    clinic = Clinic()
    async with trio.open_nursery() as nursery:
        for actor in clinic.actors:
            nursery.start_soon(actor)
        await trio.sleep(1)
        report = await clinic.ask(probe=True)
        assert (report.self_probe_passed, report.checks) == (True, {})
        nursery.cancel_scope.cancel()


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
