"""Health and readiness (spec configuration 5 and 6)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import structlog
import trio

from fetcher.actors.channels import Channel, Reply, ReplyLost
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import HealthQuestion, HealthReport, ProbeOrder
from fetcher.ports import ProbeResult, ProbeStatus

log = structlog.get_logger(__name__)

SELF_PROBE_SECONDS: Final = 5.0
PROBE_ANSWER_SECONDS: Final = 4.0
"""Longer than the longest deadline of a probe and its grace."""
WATCH_SECONDS: Final = 30.0
PASSING: Final = (ProbeStatus.UP, ProbeStatus.SKIPPED, ProbeStatus.NOT_APPLICABLE)
NO_ANSWER: Final = {"probes": ProbeResult(status=ProbeStatus.DOWN, error="no answer")}


class SelfProbeGauge(Protocol):
    def set_self_probe(self, name: str, passed: bool) -> None: ...


class Health:
    """Answers what is known of the process's state; repeats the self-probe until it passes once.

    ``watches``: the probes run every half a minute, whoever asks.
    """

    name = "health"

    def __init__(
        self,
        *,
        questions: Channel[HealthQuestion],
        probe_orders: Channel[ProbeOrder],
        lifecycle: Lifecycle,
        gauge: SelfProbeGauge,
        optional: Sequence[str] = (),
        checker_count: int = 0,
        watches: bool = False,
    ) -> None:
        self._questions = questions
        self._probe_orders = probe_orders
        self._lifecycle = lifecycle
        self._gauge = gauge
        self._optional = frozenset(optional)
        self._checker_count = checker_count
        self._watches = watches
        self._passed = False

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._self_probe)
            nursery.start_soon(self._answer_all)
            if self._watches:
                nursery.start_soon(self._keep_watch)

    async def _keep_watch(self) -> None:
        """So that the last hour is known even where nobody asks for readiness."""
        while not self._lifecycle.draining.is_set():
            await trio.sleep(WATCH_SECONDS)
            await self._ask_probes()

    async def _self_probe(self) -> None:
        """Told of in full the first time, then where something has changed."""
        told: Mapping[str, ProbeResult] = {}
        if not self._passed:
            log.info("startup_self_probe_started", checker_count=self._checker_count)
        while not self._passed:
            checks = await self._ask_probes()
            if checks is not None:
                for name, result in checks.items():
                    self._gauge.set_self_probe(name, result.status in PASSING)
                    if name not in told or told[name].status is not result.status:
                        _tell_check(name, result)
                told = checks
            failing = ["probes"] if checks is None else self._failing(checks)
            self._passed = not failing
            if not failing:
                log.info("startup_self_probe_passed", checker_count=self._checker_count)
                return
            log.warning(
                "startup_self_probe_failed",
                failing_deps=",".join(failing),
                failing_count=len(failing),
            )
            await trio.sleep(SELF_PROBE_SECONDS)

    def _failing(self, checks: Mapping[str, ProbeResult]) -> list[str]:
        return [
            name
            for name, result in checks.items()
            if result.status not in PASSING and name not in self._optional
        ]

    async def _ask_probes(self) -> Mapping[str, ProbeResult] | None:
        """None: the probes have crashed meanwhile, or answer nothing."""
        order = ProbeOrder(Reply())
        with trio.move_on_after(PROBE_ANSWER_SECONDS):
            await self._probe_orders.send(order)
            try:
                return await order.reply.get()
            except ReplyLost:
                pass
        return None

    async def _answer_all(self) -> None:
        async with trio.open_nursery() as nursery:
            async for question in self._questions:
                nursery.start_soon(question.reply.answer_by, partial(self._report, question))

    async def _report(self, question: HealthQuestion) -> HealthReport:
        checks: Mapping[str, ProbeResult] | None = None
        if question.probe and not self._lifecycle.draining.is_set():
            checks = await self._ask_probes()
            checks = NO_ANSWER if checks is None else checks
        return HealthReport(
            self_probe_passed=self._passed,
            # Asked after the probes: a drain that began while they ran counts.
            draining=self._lifecycle.draining.is_set(),
            checks=checks,
        )


def _tell_check(name: str, result: ProbeResult) -> None:
    facts = {"dep": name, "status": str(result.status), "elapsed_ms": result.latency_ms}
    if result.status in PASSING:
        log.info("self_probe_check", **facts)
    else:
        log.error("self_probe_check", **facts, error=result.error or "")
