"""Store mode that is cancelled or runs out of time while the sink waits (spec 21.10)."""

from typing import Any

import pytest

from fetcher_engine import ErrorCategory, Limits
from fetcher_engine.memory import MemoryResultSink

from .hosts import Host, host_of
from .loops import RealLoop, run
from .plans import CANCELED, FAILED, RUNNING, TWO, planned, run_plan
from .refusals import refuses


def host_with_a_hanging_sink(loop: RealLoop, **options: Any) -> tuple[Host, MemoryResultSink]:
    sink = MemoryResultSink()
    sink.write_gate = loop.hang
    return host_of(TWO, result_sink=sink, **options), sink


def test_cancelled_while_the_sink_holds_a_write_back(loop: RealLoop) -> None:
    host, sink = host_with_a_hanging_sink(loop)
    plan = planned(host)

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    def all_read() -> bool:
        return [f.close_counts for f in host.factories.values()] == [[1], [1]]

    assert run(lambda: loop.run_and_cancel(main, all_read)) == "cancelled"
    assert (sink.stored_count, sink.abort_count, sink.close_count) == (0, 1, 0)
    assert host.executions.statuses == [RUNNING, CANCELED]
    assert host.close_counts() == [1, 1]


def test_deadline_while_the_sink_holds_a_write_back(loop: RealLoop) -> None:
    host, sink = host_with_a_hanging_sink(loop, limits=Limits(timeout=0.05))
    plan = planned(host)
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        run_plan(host, plan)
    assert (sink.stored_count, sink.abort_count, sink.close_count) == (0, 1, 0)
    assert host.executions.statuses == [RUNNING, FAILED]
    assert host.close_counts() == [1, 1]


@pytest.mark.parametrize("stage", ["open", "close"])
def test_cancelled_while_the_sink_opens_or_closes(loop: RealLoop, stage: str) -> None:
    entered: list[str] = []

    class HangingSink(MemoryResultSink):
        async def open_result_stream(self, tenant: object) -> object:  # type: ignore[override]
            stream = await super().open_result_stream(tenant)  # type: ignore[arg-type]
            if stage == "open":
                entered.append(stage)
                await loop.hang()
            close = stream.close

            async def hanging_close() -> object:
                await close()
                entered.append(stage)
                await loop.hang()
                return None

            stream.close = hanging_close  # type: ignore[method-assign,assignment]
            return stream

    sink = HangingSink()
    host = host_of(TWO, result_sink=sink)
    plan = planned(host)

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    assert run(lambda: loop.run_and_cancel(main, lambda: bool(entered))) == "cancelled"
    # a sink whose opening is cancelled has nothing to be told; what it stored meanwhile must go
    assert (sink.stored_count, sink.abort_count) == (0, 0 if stage == "open" else 1)
    assert host.executions.statuses == [RUNNING, CANCELED]
