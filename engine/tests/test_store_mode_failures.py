"""Store mode that fails: nothing stays in the sink (spec 10.5, 21.10)."""

from typing import Any

import pytest

from fetcher_engine import (
    EncodedBatch,
    ErrorCategory,
    ExecutionMode,
    Limits,
    OrphanedResult,
    ResultProtection,
    SourceFailure,
    Stage,
)
from fetcher_engine.memory import MemoryResultSink

from .hosts import Host, host_of
from .loops import every_loop, run
from .plans import (
    FAILED,
    RUNNING,
    TWO,
    Signal,
    batches_of,
    execute,
    one_step,
    run_plan,
)
from .refusals import leaky, refuses

pytestmark = every_loop

UNAVAILABLE = ErrorCategory.UNAVAILABLE
NOT_PERSISTED = "failed to persist extraction result"
STEP_CRASHED = "extraction step failed unexpectedly"


def storing_host(rows: Any = TWO, **options: Any) -> tuple[Host, MemoryResultSink]:
    sink = MemoryResultSink()
    return host_of(rows, result_sink=sink, **options), sink


def discarded_once(host: Host, sink: MemoryResultSink) -> None:
    """Nothing finalized, aborted exactly once, every connector closed, state failed."""
    assert (sink.stored_count, sink.abort_count) == (0, 1)
    assert set(host.close_counts()) <= {1}
    assert host.executions.statuses == [RUNNING, FAILED]


def test_store_mode_without_a_sink_builds_nothing_and_writes_no_state() -> None:
    host = host_of(TWO)
    with refuses(ErrorCategory.VALIDATION, "store mode requires a configured result sink"):
        execute(host, mode=ExecutionMode.STORE)
    assert host.close_counts() == []
    assert host.executions.statuses == []


@pytest.mark.parametrize("limit", [1, 82, 41 * 5 - 1])
def test_result_above_the_limit_is_discarded(limit: int) -> None:
    host, sink = storing_host(limits=Limits(max_result_bytes=limit))
    with refuses(
        ErrorCategory.LIMIT_EXCEEDED, "extraction result exceeds the configured size limit"
    ):
        execute(host)
    discarded_once(host, sink)
    assert sum(sink.write_sizes) <= limit
    assert sink.close_count == 0


def test_limit_stops_before_the_batch_that_breaks_it_is_written() -> None:
    rows = [{"id": n} for n in range(10, 90)] * 100
    host, sink = storing_host({"a": {"t": rows}}, limits=Limits(max_result_bytes=100_000))
    with refuses(ErrorCategory.LIMIT_EXCEEDED):
        execute(host)
    discarded_once(host, sink)
    assert sum(sink.write_sizes) <= 100_000
    assert len(host.factories["a"].last_built.streams) == 1


def test_sink_that_cannot_open_builds_no_connector() -> None:
    host, sink = storing_host()
    sink.open_error = leaky(OSError)
    with refuses(UNAVAILABLE, NOT_PERSISTED) as caught:
        execute(host)
    assert caught.value.unwrap() is sink.open_error
    assert host.close_counts() == []
    assert sink.abort_count == 0
    assert host.executions.statuses == [RUNNING, FAILED]


def test_sink_that_opens_nothing_is_a_failure() -> None:
    class Hollow:
        async def open_result_stream(self, tenant: object) -> None:
            return None

    host = host_of(TWO, result_sink=Hollow())
    with refuses(UNAVAILABLE, NOT_PERSISTED):
        execute(host)
    assert host.close_counts() == []


def test_write_that_fails() -> None:
    host, sink = storing_host()
    sink.write_error = leaky(OSError)
    with refuses(UNAVAILABLE, NOT_PERSISTED) as caught:
        execute(host)
    assert caught.value.unwrap() is sink.write_error
    discarded_once(host, sink)


@pytest.mark.parametrize("takes", [0, 40])
def test_short_write_is_a_failure(takes: int) -> None:
    host, sink = storing_host()
    sink.takes_at_most = takes
    with refuses(UNAVAILABLE, NOT_PERSISTED):
        execute(host)
    discarded_once(host, sink)


def test_close_that_fails_is_aborted() -> None:
    host, sink = storing_host()
    sink.close_error = leaky(OSError)
    with refuses(UNAVAILABLE, NOT_PERSISTED) as caught:
        execute(host)
    assert caught.value.unwrap() is sink.close_error
    discarded_once(host, sink)


def test_abort_that_fails_does_not_hide_what_happened() -> None:
    host, sink = storing_host()
    sink.write_error = sink.abort_error = leaky(OSError)
    with refuses(UNAVAILABLE, NOT_PERSISTED):
        execute(host)
    discarded_once(host, sink)


def test_unknown_owner_of_the_protection_discards_what_was_stored() -> None:
    host, sink = storing_host()
    sink.protection = ResultProtection(applied_by="cloud")  # type: ignore[arg-type]  # a host's mistake
    with refuses(ErrorCategory.VALIDATION, "result protection appliedBy is invalid") as caught:
        execute(host)
    assert sink.close_count == 1
    discarded_once(host, sink)
    orphan = caught.value.unwrap()
    assert isinstance(orphan, OrphanedResult)
    assert orphan.path.startswith("memory://acme/")


def test_digest_that_is_not_the_written_bytes_discards_what_was_stored() -> None:
    host, sink = storing_host()
    sink.digest = "0" * 64
    with refuses(ErrorCategory.INTERNAL, "extraction result integrity mismatch") as caught:
        execute(host)
    discarded_once(host, sink)
    assert isinstance(caught.value.unwrap(), OrphanedResult)


def test_source_that_cannot_be_queried() -> None:
    host, sink = storing_host()
    host.sources["b"].query_error = leaky()
    with refuses(UNAVAILABLE, "failed to query datasource"):
        execute(host)
    discarded_once(host, sink)


def test_source_that_fails_in_the_middle_of_its_rows() -> None:
    host, sink = storing_host({"a": {"t": [{"x": n} for n in range(9)]}})
    source = host.sources["a"]
    source.rows_per_batch, source.stream_fail_after = 3, 1
    source.stream_error = SourceFailure(Stage.ROWS, "reset", table="t")
    with refuses(UNAVAILABLE, "failed to query datasource") as caught:
        execute(host)
    assert (caught.value.reason, caught.value.table) == ("reset", "t")
    discarded_once(host, sink)


@pytest.mark.parametrize(
    ("data", "count"),
    [(b'{"a":1},{"a":2}', 3), (b'{"a":[{"b":1},{"b":2}]}', 3), (b'{"a":"},{"},{', 4)],
)
def test_batch_that_does_not_hold_its_rows_is_a_contained_crash(data: bytes, count: int) -> None:
    sink = MemoryResultSink()
    host = Host({"a": batches_of(EncodedBatch("t", data, count))}, options={"result_sink": sink})
    with refuses(ErrorCategory.INTERNAL, STEP_CRASHED) as caught:
        run_plan(host, one_step({"t": ("a",)}))
    assert (caught.value.reason, caught.value.table) == ("malformed_batch", "t")
    discarded_once(host, sink)


def test_table_that_was_not_asked_for_is_a_contained_crash() -> None:
    sink = MemoryResultSink()
    host = Host({"a": batches_of(EncodedBatch("x", b"{}", 1))}, options={"result_sink": sink})
    with refuses(ErrorCategory.INTERNAL, STEP_CRASHED) as caught:
        run_plan(host, one_step({"t": ("a",)}))
    assert (caught.value.reason, caught.value.table) == ("table_out_of_order", None)
    discarded_once(host, sink)


def test_name_that_is_no_unicode_fails() -> None:
    sink = MemoryResultSink()
    host = Host({"a": batches_of()}, options={"result_sink": sink})
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result"):
        run_plan(host, one_step({"\ud800": ("a",)}))
    assert (sink.stored_count, sink.abort_count) == (0, 1)


def test_cancelled_before_the_start_opens_nothing() -> None:
    host, sink = storing_host()

    async def main() -> None:
        plan = await host.plan_all()
        host.factories["a"].built.clear()
        host.factories["b"].built.clear()
        await host.engine.execute_extraction(plan, cancel=Signal(cancelled=True))

    with refuses(ErrorCategory.CANCELED, "execution canceled"):
        run(main())
    assert sink.open_count == 0
    assert host.close_counts() == []


def test_progress_is_told_in_store_mode_too() -> None:
    host, _ = storing_host()
    told: list[tuple[str, str, int, int]] = []

    async def main() -> None:
        plan = await host.plan_all()
        await host.engine.execute_extraction(plan, progress=lambda *facts: told.append(facts))

    run(main())
    rows = {"a": 3, "b": 2}
    assert {(name, table, count) for name, table, count, _ in told} == {
        (name, "t", count) for name, count in rows.items()
    }
