"""An Engine without a concurrency port, on every loop and on none (spec 19.3)."""

from typing import Any

from fetcher_engine import ErrorCategory, Limits, SequentialConcurrency
from fetcher_engine.memory import ManualClock

from .hosts import host_of
from .loops import every_loop, run
from .plans import FAILED, RUNNING, TWO, execute, run_plan
from .refusals import refuses

pytestmark = every_loop


def test_sequential_fallback_notices_its_deadline_between_batches() -> None:
    clock = ManualClock()
    host = host_of(TWO, SequentialConcurrency(monotonic=clock.monotonic), limits=Limits(timeout=5))
    batches = 0

    async def slow() -> None:
        nonlocal batches
        batches += 1
        clock.advance(3)

    for source in host.sources.values():
        source.rows_per_batch = 1
        source.before_batch = slow
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        execute(host)
    assert batches == 2
    assert host.close_counts() == [1]
    assert host.executions.statuses == [RUNNING, FAILED]


def test_sequential_fallback_starts_the_next_source_when_one_has_ended() -> None:
    host = host_of(TWO, None)
    order: list[str] = []

    def note(name: str) -> Any:
        async def hook() -> None:
            order.append(name)

        return hook

    for name, source in host.sources.items():
        source.before_query = note(f"{name} opens")
        source.before_close = note(f"{name} closes")
    plan = run(host.plan_all())
    order.clear()
    run_plan(host, plan)
    assert order == ["a opens", "a closes", "b opens", "b closes"]
