"""Health and readiness (spec configuration 5 and 6)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel, Reply, ReplyLost
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import HealthQuestion, HealthReport, ProbeOrder
from fetcher.ports import ProbeResult, ProbeStatus

log = structlog.get_logger(__name__)

SELF_PROBE_SECONDS = 5.0
PROBE_ANSWER_SECONDS = 10.0
PASSING = (ProbeStatus.UP, ProbeStatus.SKIPPED, ProbeStatus.NOT_APPLICABLE)


class SelfProbeGauge(Protocol):
    def set_self_probe(self, name: str, passed: bool) -> None: ...


class Health:
    """Answers what is known of the process's state; repeats the self-probe until it passes once."""

    name = "health"

    def __init__(
        self,
        *,
        questions: Channel[HealthQuestion],
        probe_orders: Channel[ProbeOrder],
        lifecycle: Lifecycle,
        gauge: SelfProbeGauge,
        optional: Sequence[str] = (),
    ) -> None:
        self._questions = questions
        self._probe_orders = probe_orders
        self._lifecycle = lifecycle
        self._gauge = gauge
        self._optional = frozenset(optional)
        self._passed = False

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._self_probe)
            nursery.start_soon(self._answer_all)

    async def _self_probe(self) -> None:
        while not self._passed:
            checks = await self._ask_probes()
            failing = [
                name
                for name, result in checks.items()
                if result.status not in PASSING and name not in self._optional
            ]
            for name, result in checks.items():
                self._gauge.set_self_probe(name, result.status in PASSING)
            self._passed = not failing
            if self._passed:
                log.info("startup_self_probe_passed", checker_count=len(checks))
                return
            log.warning("startup_self_probe_failed", failing_deps=",".join(failing))
            await trio.sleep(SELF_PROBE_SECONDS)

    async def _ask_probes(self) -> Mapping[str, ProbeResult]:
        order = ProbeOrder(Reply())
        with trio.move_on_after(PROBE_ANSWER_SECONDS):
            await self._probe_orders.send(order)
            try:
                return await order.reply.get()
            except ReplyLost:
                pass
        return {"probes": ProbeResult(status=ProbeStatus.DOWN, error="no answer")}

    async def _answer_all(self) -> None:
        async with trio.open_nursery() as nursery:
            async for question in self._questions:
                nursery.start_soon(self._answer, question)

    async def _answer(self, question: HealthQuestion) -> None:
        with question.reply.answering():
            draining = self._lifecycle.draining.is_set()
            checks = await self._ask_probes() if question.probe and not draining else None
            question.reply.set(
                HealthReport(
                    self_probe_passed=self._passed,
                    # Asked again: a drain that began while the probes ran counts.
                    draining=self._lifecycle.draining.is_set(),
                    checks=checks,
                )
            )
