"""Deadlines and the loop's own cancellation (spec 21.9, 10.7, 19.3)."""

import pytest

from fetcher_engine import ErrorCategory, ExecutionState, Limits, TenantContext
from fetcher_engine.memory import MemorySource, RecordingExecutionStore

from .hosts import TENANT, Host, direct_of, host_of
from .loops import RealLoop, real_loops, run, trio_alone
from .plans import CANCELED, FAILED, ROWS, RUNNING, planned
from .refusals import leaky, refuses

pytestmark = real_loops

HOOKS = ["before_test", "before_query", "before_batch"]


@pytest.mark.parametrize("hook", HOOKS)
def test_deadline_ends_a_source_that_hangs(loop: RealLoop, hook: str) -> None:
    host = host_of({"a": ROWS}, limits=Limits(timeout=0.05))
    plan = planned(host)
    setattr(host.sources["a"], hook, loop.hang)
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        run(host.engine.execute_extraction(plan))
    assert host.close_counts() == [1]
    assert host.executions.statuses == [RUNNING, FAILED]


@pytest.mark.parametrize("hook", HOOKS)
def test_cancellation_of_the_task_goes_through_and_everything_is_closed(
    loop: RealLoop, hook: str
) -> None:
    host = host_of({"a": ROWS, "b": ROWS})
    plan = planned(host)
    setattr(host.sources["b"], hook, loop.hang)
    source_calls = {"before_test": 1, "before_query": 2, "before_batch": 2}[hook]

    def hangs() -> bool:
        built = host.factories["b"].built
        return bool(built) and len(built[0].calls) == source_calls

    async def main() -> None:
        await host.engine.execute_extraction(plan)

    assert run(lambda: loop.run_and_cancel(main, hangs)) == "cancelled"
    assert set(host.close_counts()) == {1}
    assert host.executions.statuses == [RUNNING, CANCELED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert state.failure_message == "execution canceled"


def test_cancellation_while_the_host_writes(loop: RealLoop) -> None:
    host = host_of({"a": ROWS, "b": ROWS})
    plan = planned(host)
    writing = False

    async def write(piece: bytes | memoryview) -> None:
        nonlocal writing
        writing = True
        await loop.hang()

    async def main() -> None:
        await host.engine.stream_extraction(plan, write)

    assert run(lambda: loop.run_and_cancel(main, lambda: writing)) == "cancelled"
    assert set(host.close_counts()) == {1}
    assert host.executions.statuses == [RUNNING, CANCELED]


@pytest.mark.parametrize("operation", ["test", "discover"])
def test_cancellation_of_other_operations_closes_too(loop: RealLoop, operation: str) -> None:
    host = host_of({"a": ROWS})
    host.sources["a"].before_test = host.sources["a"].before_discovery = loop.hang

    async def main() -> None:
        if operation == "test":
            await host.engine.test_connection(TENANT, "a")
        else:
            await host.engine.discover_schema(TENANT, "a")

    def hangs() -> bool:
        return bool(host.factories["a"].built)

    assert run(lambda: loop.run_and_cancel(main, hangs)) == "cancelled"
    assert host.close_counts() == [1]


def test_failure_that_the_deadline_provoked_is_a_timeout(loop: RealLoop) -> None:
    """A driver whose wait is cancelled often raises its own error instead."""
    host = host_of({"a": ROWS}, limits=Limits(timeout=0.05))
    plan = planned(host)

    async def turn_cancellation_into_an_error() -> None:
        try:
            await loop.hang()
        except BaseException as error:
            raise leaky() from error

    host.sources["a"].before_query = turn_cancellation_into_an_error
    with refuses(ErrorCategory.TIMEOUT, "execution exceeded its deadline"):
        run(host.engine.execute_extraction(plan))
    assert host.close_counts() == [1]


def test_terminal_state_is_written_although_the_time_is_up(loop: RealLoop) -> None:
    class Suspending(RecordingExecutionStore):
        async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
            await loop.pause()
            await super().save_execution(tenant, state)

    store = Suspending()
    host = Host(
        {"a": MemorySource.of_rows(ROWS)},
        options={"limits": Limits(timeout=0.05)},
        executions=store,
    )
    plan = planned(host)
    host.sources["a"].before_batch = loop.hang
    with refuses(ErrorCategory.TIMEOUT):
        run(host.engine.execute_extraction(plan))
    assert store.statuses == [RUNNING, FAILED]


@trio_alone
def test_close_that_hangs_is_left_behind_after_its_time(loop: RealLoop) -> None:
    host = host_of({"a": ROWS})
    plan = planned(host)
    host.sources["a"].before_close = loop.hang
    result = run(host.engine.execute_extraction(plan))
    assert direct_of(result).row_count == 2
