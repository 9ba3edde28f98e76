"""Cancellation by the host's signal, which works on any loop and on none (spec 19.3)."""

from fetcher_engine import ErrorCategory, Limits

from .hosts import host_of
from .loops import every_loop, run
from .plans import CANCELED, ROWS, RUNNING, Signal, planned
from .refusals import leaky, refuses

pytestmark = every_loop


def test_signal_before_the_start_builds_nothing() -> None:
    host = host_of({"a": ROWS})
    plan = planned(host)
    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        run(host.engine.execute_extraction(plan, cancel=Signal(cancelled=True)))
    assert host.close_counts() == []
    assert host.executions.statuses == [RUNNING, CANCELED]


def test_signal_right_after_the_rows_arrived_yields_no_result() -> None:
    host = host_of({"a": ROWS})
    plan = planned(host)
    signal = Signal()
    reads = 0

    async def cancel_at_the_end() -> None:
        nonlocal reads
        reads += 1
        signal.cancelled = reads == 2

    host.sources["a"].before_batch = cancel_at_the_end
    with refuses(ErrorCategory.CANCELED):
        run(host.engine.execute_extraction(plan, cancel=signal))
    assert reads == 2
    assert host.close_counts() == [1]


def test_signal_in_the_first_of_two_steps_in_turn_never_builds_the_second() -> None:
    host = host_of({"a": ROWS, "b": ROWS}, limits=Limits(max_concurrency=1))
    plan = planned(host)
    signal = Signal()

    async def cancel() -> None:
        signal.cancelled = True

    host.sources["a"].before_query = cancel
    with refuses(ErrorCategory.CANCELED):
        run(host.engine.execute_extraction(plan, cancel=signal))
    assert [len(f.built) for f in host.factories.values()] == [1, 0]


def test_failure_while_already_cancelled_is_canceled() -> None:
    host = host_of({"a": ROWS})
    plan = planned(host)
    signal = Signal()

    async def cancel() -> None:
        signal.cancelled = True

    host.sources["a"].before_query = cancel
    host.sources["a"].query_error = leaky()
    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        run(host.engine.execute_extraction(plan, cancel=signal))
