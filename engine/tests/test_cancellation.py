"""Deadlines, cancellation and what runs at once (spec 21.9, 10.3, 10.7, 19.3)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fetcher_engine import (
    ErrorCategory,
    ExecutionState,
    ExecutionStatus,
    ExtractionPlan,
    Limits,
    TenantContext,
)
from fetcher_engine.memory import MemorySource, RecordingExecutionStore, run_trampoline

from .hosts import TENANT, Host, direct_of, host_of
from .loops import AsyncioLoop, TrioLoop
from .refusals import leaky, refuses

RealLoop = AsyncioLoop | TrioLoop
RUNNING, FAILED, CANCELED = (
    ExecutionStatus.RUNNING,
    ExecutionStatus.FAILED,
    ExecutionStatus.CANCELED,
)
ROWS = {"t": [{"x": 1}, {"x": 2}]}


class Signal:
    """A host's cooperative cancellation."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.cancelled = cancelled

    def is_cancelled(self) -> bool:
        return self.cancelled


def planned(host: Host) -> ExtractionPlan:
    """A plan made before anything hangs; its connectors forgotten."""
    plan = run_trampoline(host_of({n: s.rows for n, s in host.sources.items()}).plan_all())
    return replace(plan, request_id="j1", limits=host.engine.limits)


HOOKS = ["before_test", "before_query", "before_batch"]


@pytest.mark.parametrize("hook", HOOKS)
def test_deadline_ends_a_source_that_hangs(loop: RealLoop, hook: str) -> None:
    host = host_of({"a": ROWS}, loop.concurrency, limits=Limits(timeout=0.05))
    plan = planned(host)
    setattr(host.sources["a"], hook, loop.hang)
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        loop.run(lambda: host.engine.execute_extraction(plan))
    assert host.close_counts() == [1]
    assert host.executions.statuses == [RUNNING, FAILED]


@pytest.mark.parametrize("hook", HOOKS)
def test_cancellation_of_the_task_goes_through_and_everything_is_closed(
    loop: RealLoop, hook: str
) -> None:
    host = host_of({"a": ROWS, "b": ROWS}, loop.concurrency)
    plan = planned(host)
    setattr(host.sources["b"], hook, loop.hang)
    source_calls = {"before_test": 1, "before_query": 2, "before_batch": 2}[hook]

    def hangs() -> bool:
        built = host.factories["b"].built
        return bool(built) and len(built[0].calls) == source_calls

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    assert loop.run(lambda: loop.run_and_cancel(main, hangs)) == "cancelled"
    assert set(host.close_counts()) == {1}
    assert host.executions.statuses == [RUNNING, CANCELED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert state.failure_message == "execution canceled"


def test_cancellation_while_the_host_writes(loop: RealLoop) -> None:
    host = host_of({"a": ROWS, "b": ROWS}, loop.concurrency)
    plan = planned(host)
    writing = False

    async def write(piece: bytes | memoryview) -> None:
        nonlocal writing
        writing = True
        await loop.hang()

    async def main() -> None:
        await host.engine.stream_extraction(plan, write)

    assert loop.run(lambda: loop.run_and_cancel(main, lambda: writing)) == "cancelled"
    assert set(host.close_counts()) == {1}
    assert host.executions.statuses == [RUNNING, CANCELED]


@pytest.mark.parametrize("operation", ["test", "discover"])
def test_cancellation_of_other_operations_closes_too(loop: RealLoop, operation: str) -> None:
    host = host_of({"a": ROWS}, loop.concurrency)
    host.sources["a"].before_test = host.sources["a"].before_discovery = loop.hang

    async def main() -> None:
        if operation == "test":
            await host.engine.test_connection(TENANT, "a")
        else:
            await host.engine.discover_schema(TENANT, "a")

    def hangs() -> bool:
        return bool(host.factories["a"].built)

    assert loop.run(lambda: loop.run_and_cancel(main, hangs)) == "cancelled"
    assert host.close_counts() == [1]


def test_signal_before_the_start_builds_nothing(loop: RealLoop) -> None:
    host = host_of({"a": ROWS}, loop.concurrency)
    plan = planned(host)
    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        loop.run(lambda: host.engine.execute_extraction(plan, cancel=Signal(cancelled=True)))
    assert host.close_counts() == []
    assert host.executions.statuses == [RUNNING, CANCELED]


def test_signal_right_after_the_rows_arrived_yields_no_result(loop: RealLoop) -> None:
    host = host_of({"a": ROWS}, loop.concurrency)
    plan = planned(host)
    signal = Signal()
    reads = 0

    async def cancel_at_the_end() -> None:
        nonlocal reads
        reads += 1
        signal.cancelled = reads == 2

    host.sources["a"].before_batch = cancel_at_the_end
    with refuses(ErrorCategory.CANCELED):
        loop.run(lambda: host.engine.execute_extraction(plan, cancel=signal))
    assert reads == 2
    assert host.close_counts() == [1]


def test_signal_in_the_first_of_two_steps_in_turn_never_builds_the_second(loop: RealLoop) -> None:
    host = host_of({"a": ROWS, "b": ROWS}, loop.concurrency, limits=Limits(max_concurrency=1))
    plan = planned(host)
    signal = Signal()

    async def cancel() -> None:
        signal.cancelled = True

    host.sources["a"].before_query = cancel
    with refuses(ErrorCategory.CANCELED):
        loop.run(lambda: host.engine.execute_extraction(plan, cancel=signal))
    assert [len(f.built) for f in host.factories.values()] == [1, 0]


def test_failure_while_already_cancelled_is_canceled(loop: RealLoop) -> None:
    host = host_of({"a": ROWS}, loop.concurrency)
    plan = planned(host)
    signal = Signal()

    async def cancel() -> None:
        signal.cancelled = True

    host.sources["a"].before_query = cancel
    host.sources["a"].query_error = leaky()
    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        loop.run(lambda: host.engine.execute_extraction(plan, cancel=signal))


def test_failure_that_the_deadline_provoked_is_a_timeout(loop: RealLoop) -> None:
    """A driver whose wait is cancelled often raises its own error instead."""
    host = host_of({"a": ROWS}, loop.concurrency, limits=Limits(timeout=0.05))
    plan = planned(host)

    async def turn_cancellation_into_an_error() -> None:
        try:
            await loop.hang()
        except BaseException as error:
            raise leaky() from error

    host.sources["a"].before_query = turn_cancellation_into_an_error
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        loop.run(lambda: host.engine.execute_extraction(plan))
    assert host.close_counts() == [1]


def test_close_that_hangs_is_left_behind_after_its_time() -> None:
    loop = TrioLoop()  # whose clock jumps: asyncio would really take the five seconds
    host = host_of({"a": ROWS}, loop.concurrency)
    plan = planned(host)
    host.sources["a"].before_close = loop.hang
    result = loop.run(lambda: host.engine.execute_extraction(plan))
    assert direct_of(result).row_count == 2


def test_terminal_state_is_written_although_the_time_is_up(loop: RealLoop) -> None:
    class Suspending(RecordingExecutionStore):
        async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
            await loop.pause()
            await super().save_execution(tenant, state)

    store = Suspending()
    host = Host(
        {"a": MemorySource.of_rows(ROWS)},
        loop.concurrency,
        {"limits": Limits(timeout=0.05)},
        executions=store,
    )
    plan = planned(host)
    host.sources["a"].before_batch = loop.hang
    with refuses(ErrorCategory.TIMEOUT):
        loop.run(lambda: host.engine.execute_extraction(plan))
    assert store.statuses == [RUNNING, FAILED]


def test_four_sources_are_in_flight_together(loop: RealLoop) -> None:
    arrived = 0

    async def rendezvous() -> None:
        nonlocal arrived
        arrived += 1
        while arrived < 4:
            await loop.pause()

    host = host_of(dict.fromkeys("abcd", ROWS), loop.concurrency)
    plan = planned(host)
    for source in host.sources.values():
        source.before_query = rendezvous
    assert loop.run(lambda: host.engine.execute_extraction(plan)).direct.row_count == 8


@pytest.mark.parametrize("limit", [1, 3])
def test_never_more_than_the_limit_are_in_flight(loop: RealLoop, limit: int) -> None:
    started: list[str] = []
    busy = peak = 0

    def enter(name: str) -> Callable[[], Awaitable[None]]:
        async def hook() -> None:
            nonlocal busy, peak
            started.append(name)
            busy += 1
            peak = max(peak, busy)
            await loop.pause()

        return hook

    async def leave() -> None:
        nonlocal busy
        await loop.pause()
        busy -= 1

    host = host_of(
        dict.fromkeys("abcdefg", ROWS), loop.concurrency, limits=Limits(max_concurrency=limit)
    )
    plan = planned(host)
    for name, source in host.sources.items():
        source.before_test = enter(name)
        source.before_close = leave
    loop.run(lambda: host.engine.execute_extraction(plan))
    assert peak == limit
    assert set(started[:limit]) == set("abcdefg"[:limit])
    assert sorted(started) == list("abcdefg")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_large_sources_do_not_block_each_other(loop: RealLoop, concurrency: int) -> None:
    """Each is larger than what may be read ahead of its turn."""
    big = {"t": [{"x": "y" * 60_000}] * 120}
    host = host_of(
        dict.fromkeys("abc", big), loop.concurrency, limits=Limits(max_concurrency=concurrency)
    )
    for source in host.sources.values():
        source.rows_per_batch = 7
    plan = planned(host)
    summary = []

    async def write(piece: bytes | memoryview) -> None:
        await loop.pause()

    async def main() -> None:
        summary.append(await host.engine.stream_extraction(plan, write))

    loop.run(main)
    assert summary[0].row_count == 360
    assert host.close_counts() == [1, 1, 1]


def test_source_ahead_of_its_turn_reads_four_mebibytes_and_waits(loop: RealLoop) -> None:
    row = {"x": "y" * (256 * 1024)}
    ahead = {"t": [row] * 40}
    reads = {"a": 0, "b": 0}
    released = False

    async def first_waits() -> None:
        reads["a"] += 1
        for _ in range(500):
            if reads["a"] == 1:
                await loop.pause()
        nonlocal released
        released = True

    async def second_reads() -> None:
        if not released:
            reads["b"] += 1

    host = host_of({"a": ROWS, "b": ahead}, loop.concurrency)
    plan = planned(host)
    host.sources["b"].rows_per_batch = 1
    host.sources["a"].before_batch = first_waits
    host.sources["b"].before_batch = second_reads
    loop.run(lambda: host.engine.execute_extraction(plan))
    # 15 fit below 4 MiB with their names and commas, one is in the step's hands
    assert reads["b"] in (16, 17)


def test_source_that_hangs_while_another_fails_is_stopped(loop: RealLoop) -> None:
    sources = {
        "a": MemorySource.of_rows(ROWS),
        "b": MemorySource.of_rows(ROWS),
    }
    host = Host(sources, loop.concurrency)
    plan = planned(host)
    sources["a"].before_batch = loop.hang
    sources["b"].stream_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE) as caught:
        loop.run(lambda: host.engine.execute_extraction(plan))
    assert caught.value.source == "b"
    assert host.close_counts() == [1, 1]
    assert host.executions.statuses == [RUNNING, FAILED]
