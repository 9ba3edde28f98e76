"""Sources that fail while a plan is executed (spec 21.9, 10.7)."""

from dataclasses import replace

import pytest

from fetcher_engine import ErrorCategory, SourceFailure, Stage

from .hosts import TENANT, direct_of, host_of
from .loops import every_loop, run
from .plans import FAILED, RUNNING, TWO, TWO_DOCUMENT, execute, one_step, run_plan
from .refusals import leaky, refuses

pytestmark = every_loop


@pytest.mark.parametrize(
    ("fault", "category", "message", "closed"),
    [
        (
            "test_error",
            ErrorCategory.CONNECT,
            "failed to connect to datasource",
            ["test_connection"],
        ),
        (
            "query_error",
            ErrorCategory.UNAVAILABLE,
            "failed to query datasource",
            ["test_connection", "open_stream"],
        ),
        (
            "stream_error",
            ErrorCategory.UNAVAILABLE,
            "failed to query datasource",
            ["test_connection", "open_stream"],
        ),
    ],
)
def test_source_that_fails(
    fault: str, category: ErrorCategory, message: str, closed: list[str]
) -> None:
    host = host_of({"a": TWO["a"]})

    async def main() -> None:
        plan = replace(await host.plan_all(), request_id="j1")
        setattr(host.sources["a"], fault, leaky())
        await host.engine.execute_extraction(plan)

    with refuses(category, message) as caught:
        run(main)
    connector = host.factories["a"].last_built
    assert connector.calls == [*closed, "close"]
    assert all(stream.close_count == 1 for stream in connector.streams)
    assert caught.value.source == "a"
    assert host.executions.statuses == [RUNNING, FAILED]
    state = host.executions.find(TENANT, "j1")
    assert state is not None
    assert (state.failure_message, state.started_at) == (message, host.clock.now())


def test_failure_in_the_middle_of_the_rows_names_table_and_column() -> None:
    host = host_of({"a": {"t": [{"x": 1}] * 4}})
    source = host.sources["a"]
    source.rows_per_batch = 1
    source.stream_error = SourceFailure(Stage.ROWS, "invalid_text", table="t", column="x")
    source.stream_fail_after = 3
    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource") as caught:
        execute(host)
    error = caught.value
    assert (error.stage, error.reason, error.table, error.column) == (
        Stage.ROWS,
        "invalid_text",
        "t",
        "x",
    )


@pytest.mark.parametrize(
    ("stage", "reason", "category", "text"),
    [
        (Stage.QUERY, "invalid_filter", "validation", "extraction request has an invalid filter"),
        (
            Stage.QUERY,
            "invalid_filter_value",
            "validation",
            "extraction request has an invalid filter",
        ),
        (Stage.QUERY, "timeout", "timeout", "failed to query datasource"),
        (Stage.ROWS, "timeout", "timeout", "failed to query datasource"),
        (Stage.QUERY, "lock_timeout", "unavailable", "failed to query datasource"),
        (Stage.TCP, "timeout", "timeout", "failed to connect to datasource"),
        (Stage.TCP, "refused", "connect", "failed to connect to datasource"),
        (Stage.AUTH, "starting_up", "unavailable", "failed to connect to datasource"),
    ],
)
def test_the_connectors_word_decides_the_category(
    stage: Stage, reason: str, category: str, text: str
) -> None:
    host = host_of({"a": {"t": [{"x": 1}]}})
    host.sources["a"].query_error = SourceFailure(stage, reason, table="t", column="x")
    with refuses(ErrorCategory(category), text) as caught:
        execute(host)
    assert (caught.value.stage, caught.value.reason) == (stage, reason)


def test_failed_clean_up_does_not_spoil_a_success() -> None:
    host = host_of(TWO)
    for source in host.sources.values():
        source.close_error = leaky()
    assert direct_of(execute(host)).data == TWO_DOCUMENT


def test_second_source_that_fails_leaves_nothing_open() -> None:
    host = host_of(TWO)
    host.sources["b"].query_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE) as caught:
        execute(host)
    assert caught.value.source == "b"
    assert set(host.close_counts()) == {1}


def test_build_that_fails_or_builds_nothing() -> None:
    host = host_of({"a": TWO["a"]})
    plan = one_step({"t": ("x",)})
    host.factories["a"].builds_nothing = True
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run_plan(host, plan)
    host.factories["a"].build_error = leaky()
    with refuses(ErrorCategory.UNAVAILABLE, "failed to build connector for connection"):
        run_plan(host, plan)
    assert host.close_counts() == []


def test_connection_deleted_after_planning_is_unknown() -> None:
    host = host_of(TWO)
    plan = run(host.plan_all())
    run(host.engine.connections.delete(TENANT, "b"))
    with refuses(ErrorCategory.NOT_FOUND, "extraction references an unknown datasource connection"):
        run_plan(host, plan)
