"""Plans to execute, the ways to execute them, and how that ends."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fetcher_engine import (
    Batch,
    ExecutionStatus,
    ExtractionPlan,
    ExtractionResult,
    Limits,
    PlanStep,
    StreamRequest,
)
from fetcher_engine.memory import MemorySource

from .hosts import Host, host_of
from .loops import run

TWO = {"a": {"t": [{"x": 1}, {"x": 2}, {"x": 3}]}, "b": {"t": [{"x": 4}, {"x": 5}]}}
TWO_DOCUMENT = b'{"a":{"t":[{"x":1},{"x":2},{"x":3}]},"b":{"t":[{"x":4},{"x":5}]}}'
ROWS = {"t": [{"x": 1}, {"x": 2}]}

RUNNING, COMPLETED, FAILED, CANCELED = (
    ExecutionStatus.RUNNING,
    ExecutionStatus.COMPLETED,
    ExecutionStatus.FAILED,
    ExecutionStatus.CANCELED,
)


def execute(host: Host, **changes: Any) -> ExtractionResult:
    """Plan everything, then execute it as job j1; the planner's connectors forgotten."""

    async def main() -> ExtractionResult:
        plan = replace(await host.plan_all(), **{"request_id": "j1", **changes})
        for factory in host.factories.values():
            factory.built.clear()
        return await host.engine.execute_extraction(plan)

    return run(main)


def one_step(fields: dict[str, tuple[str, ...]], name: str = "a", **rest: Any) -> ExtractionPlan:
    steps = (PlanStep(ordinal=0, config_name=name, fields=fields, **rest),)
    return ExtractionPlan(tenant_id="acme", request_id="j1", steps=steps, limits=Limits.defaults())


def run_plan(host: Host, plan: ExtractionPlan) -> ExtractionResult:
    return run(host.engine.execute_extraction(plan))


def batches_of(*batches: Batch) -> MemorySource:
    def make(request: StreamRequest) -> Iterable[Batch]:
        return batches

    return MemorySource(batches=make)


def planned(host: Host) -> ExtractionPlan:
    """A plan made before anything hangs; its connectors forgotten."""
    plan = run(host_of({n: s.rows for n, s in host.sources.items()}).plan_all())
    return replace(plan, request_id="j1", limits=host.engine.limits)


class Signal:
    """A host's cooperative cancellation."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.cancelled = cancelled

    def is_cancelled(self) -> bool:
        return self.cancelled
