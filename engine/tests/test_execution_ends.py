"""How executions end when the end itself is disturbed (spec 10.5, 10.6, 19.3)."""

from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from fetcher_engine import (
    Batch,
    EncodedBatch,
    ErrorCategory,
    ExecutionStatus,
    Limits,
    StreamRequest,
    TenantContext,
)
from fetcher_engine.memory import (
    ManualClock,
    MemoryResultSink,
    MemorySource,
    MemorySpool,
    RecordingExecutionStore,
)

from .hosts import Host, host_of
from .loops import RealLoop, every_loop, run
from .plans import CANCELED, COMPLETED, FAILED, RUNNING, TWO, Signal, planned, run_plan
from .refusals import leaky, refuses


class SlowToSave(RecordingExecutionStore):
    """Says that it saves ``completed``, and takes its time."""

    def __init__(self, loop: RealLoop) -> None:
        super().__init__()
        self.saves_completed = False
        self._loop = loop

    async def save_execution(self, tenant: TenantContext, state: Any) -> None:
        await super().save_execution(tenant, state)
        if state.status is ExecutionStatus.COMPLETED:
            self.saves_completed = True
            for _ in range(20):
                await self._loop.pause()


@pytest.mark.parametrize("stores", [True, False], ids=["store", "stream"])
def test_cancellation_while_the_success_is_saved_is_what_remains(
    loop: RealLoop, stores: bool
) -> None:
    sink, executions = MemoryResultSink(), SlowToSave(loop)
    host = Host(
        host_of(TWO).sources,
        options={"result_sink": sink if stores else None},
        executions=executions,
    )
    plan = planned(host)

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    ended = run(lambda: loop.run_and_cancel(main, lambda: executions.saves_completed))
    statuses = [RUNNING, COMPLETED]
    if ended == "cancelled":
        statuses.append(CANCELED)
        assert (sink.stored_count, sink.abort_count) == (0, int(stores))
    assert executions.statuses == statuses


@every_loop
def test_clock_that_fails_at_the_end_leaves_nothing_in_the_sink() -> None:
    sink = MemoryResultSink()
    host = host_of(TWO, result_sink=sink)
    plan = planned(host)

    class StoppingClock(ManualClock):
        """Tells the time once."""

        asked = 0

        def now(self) -> datetime:
            self.asked += 1
            if self.asked > 1:
                raise leaky()
            return super().now()

    host = Host(host.sources, options={"result_sink": sink}, clock=StoppingClock())
    with refuses(ErrorCategory.INTERNAL, "unexpected engine failure"):
        run_plan(host, plan)
    assert (sink.stored_count, sink.close_count, sink.abort_count) == (0, 1, 1)
    assert host.executions.statuses == [RUNNING, FAILED]


def test_signal_ends_a_run_that_has_only_to_write_what_it_holds(loop: RealLoop) -> None:
    row = b'{"x":"' + b"y" * 250_000 + b'"}'
    signal, spool = Signal(), MemorySpool()
    delivered = 0

    def rows(request: StreamRequest) -> Iterator[Batch]:
        nonlocal delivered
        for _ in range(40):
            delivered += 1
            yield EncodedBatch("t", row, 1)

    async def until_b_is_read() -> None:
        while delivered < 40:
            await loop.pause()
        for _ in range(50):
            await loop.pause()

    sources = {n: MemorySource.of_rows({"t": [{"x": ""}]}) for n in "ab"}
    sources["a"].before_batch = until_b_is_read
    sources["b"].batches = rows
    host = Host(sources, options={"spool": spool})
    written = 0

    async def write(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        signal.cancelled = written > 1_000_000

    async def main() -> None:
        await host.engine.stream_extraction(await host.plan_all(), write, cancel=signal)

    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        run(main())
    assert written < 1_000_000 + 2 * len(row)
    assert [file.close_count >= 1 for file in spool.files] == [True]


@pytest.mark.parametrize("operation", ["stream", "store", "discover"])
def test_coroutine_that_is_thrown_away_raises_nothing(operation: str) -> None:
    """Closed while it waits: nothing may be awaited any more, and nothing is."""

    class Never:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def hang() -> None:
        await Never()

    sink = MemoryResultSink()
    host = host_of(TWO, concurrency=None, result_sink=sink)
    plan = replace(_plan(host), request_id="j1")
    for source in host.sources.values():
        source.before_batch = source.before_discovery = hang

    async def write(piece: bytes) -> None: ...

    operations: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "stream": lambda: host.engine.stream_extraction(plan, write),
        "store": lambda: host.engine.execute_extraction(plan),
        "discover": lambda: host.engine.discover_schema(TenantContext("acme"), "a"),
    }
    coroutine = operations[operation]()
    coroutine.send(None)
    coroutine.close()
    assert FAILED not in host.executions.statuses


def _plan(host: Host) -> Any:
    coroutine = host.plan_all()
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    return done.value.value


def test_every_spool_file_is_closed_though_the_run_is_cancelled_in_closing(loop: RealLoop) -> None:
    row = b'{"x":"' + b"y" * 250_000 + b'"}'

    class SlowSpool(MemorySpool):
        async def open(self, tenant: TenantContext, max_bytes: int) -> Any:
            file = await super().open(tenant, max_bytes)
            aclose = file.aclose

            async def slow_aclose() -> None:
                for _ in range(30):
                    await loop.pause()
                await aclose()

            file.aclose = slow_aclose  # type: ignore[method-assign]
            return file

    def many(request: StreamRequest) -> Iterator[Batch]:
        return iter([EncodedBatch("t", row, 1)] * 24)

    spool = SlowSpool()
    sources = {n: MemorySource.of_rows({"t": [{"x": ""}]}) for n in "abcd"}
    for name in "bcd":
        sources[name].batches = many
    sources["a"].before_batch = loop.hang
    host = Host(sources, options={"spool": spool, "limits": Limits(timeout=5)})
    plan = planned(host)

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    def all_spooled() -> bool:
        return len(spool.files) == 3

    assert run(lambda: loop.run_and_cancel(main, all_spooled)) == "cancelled"
    assert [file.close_count for file in spool.files] == [1, 1, 1]
