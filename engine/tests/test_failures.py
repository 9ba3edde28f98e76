"""What the Engine makes of its ports' failures (spec 3.4, 10.7)."""

import traceback

import pytest

from fetcher_engine import EngineError, ErrorCategory, SourceFailure, Stage
from fetcher_engine.concurrency import DeadlineExceeded, SequentialConcurrency
from fetcher_engine.failures import Checkpoint, Phase, from_source, from_store

from .loops import every_loop, run
from .refusals import SENTINEL, leaky, refuses

pytestmark = every_loop


def fail_in(phase: Phase, error: Exception) -> EngineError:
    """What the Engine makes of a connector's failure."""

    async def call() -> None:
        raise error

    async def main() -> None:
        await from_source(
            call,
            phase=phase,
            source="shop",
            checkpoint=Checkpoint(SequentialConcurrency(), None),
            asked={"orders": {"total", "customer.name"}, "notes": {"*"}},
        )

    with pytest.raises(EngineError) as caught:
        run(main())
    assert SENTINEL not in "".join(traceback.format_exception(caught.value))
    return caught.value


CONNECT, UNAVAILABLE = ErrorCategory.CONNECT, ErrorCategory.UNAVAILABLE


@pytest.mark.parametrize(
    ("phase", "stage", "category", "message"),
    [
        *[
            (phase, stage, CONNECT, "failed to connect to datasource")
            for phase in Phase
            for stage in (Stage.DNS, Stage.TCP, Stage.TLS, Stage.AUTH, Stage.SESSION)
        ],
        (Phase.CONNECT, Stage.QUERY, CONNECT, "failed to connect to datasource"),
        (Phase.DISCOVER, Stage.SCHEMA, UNAVAILABLE, "failed to discover datasource schema"),
        (Phase.QUERY, Stage.SCHEMA, UNAVAILABLE, "failed to query datasource"),
        (Phase.QUERY, Stage.QUERY, UNAVAILABLE, "failed to query datasource"),
        (Phase.QUERY, Stage.ROWS, UNAVAILABLE, "failed to query datasource"),
    ],
)
def test_stage_of_a_failure_decides_its_category(
    phase: Phase, stage: Stage, category: ErrorCategory, message: str
) -> None:
    failure = SourceFailure(stage, "reset", table="orders", column="total")
    failure.__cause__ = leaky()
    error = fail_in(phase, failure)
    assert (error.category, error.message) == (category, message)
    assert (error.source, error.stage, error.reason) == ("shop", stage, "reset")
    assert (error.table, error.column) == ("orders", "total")
    assert error.unwrap() is None


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("stage", list(Stage))
def test_time_that_is_over_is_a_timeout_at_every_stage(phase: Phase, stage: Stage) -> None:
    error = fail_in(phase, SourceFailure(stage, "timeout"))
    assert error.category is ErrorCategory.TIMEOUT
    is_connected = stage in (Stage.SCHEMA, Stage.QUERY, Stage.ROWS)
    text = phase.value if is_connected else "failed to connect to datasource"
    assert (error.message, error.stage, error.reason) == (text, stage, "timeout")


@pytest.mark.parametrize(
    "reason", ["driver_missing", "starting_up", "too_many_connections", "too_many_sessions"]
)
@pytest.mark.parametrize("phase", list(Phase))
def test_what_may_work_another_time_is_unavailable(phase: Phase, reason: str) -> None:
    for stage in (Stage.AUTH, Stage.SESSION):
        error = fail_in(phase, SourceFailure(stage, reason))
        assert (error.category, error.message) == (UNAVAILABLE, "failed to connect to datasource")
        assert (error.stage, error.reason) == (stage, reason)


@pytest.mark.parametrize("reason", ["invalid_filter", "invalid_filter_value"])
def test_filter_that_a_connector_cannot_apply_is_the_callers_mistake(reason: str) -> None:
    error = fail_in(Phase.QUERY, SourceFailure(Stage.QUERY, reason, table="orders"))
    assert error.category is ErrorCategory.VALIDATION
    assert error.message == "extraction request has an invalid filter"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("password_expired", "password_expired"),
        ("schema changed", "schema changed"),
        (SENTINEL, "unknown"),
        ("FATAL", "unknown"),
        ("", "unknown"),
        ("could not connect to db7", "unknown"),
        ("a" * 41, "unknown"),
        ("reset\n", "unknown"),
    ],
)
def test_reason_that_is_no_word_does_not_leave(reason: str, told: str) -> None:
    assert fail_in(Phase.QUERY, SourceFailure(Stage.QUERY, reason)).reason == told


@pytest.mark.parametrize(
    ("table", "column", "told"),
    [
        ("orders", "total", ("orders", "total")),
        ("orders", None, ("orders", None)),
        ("orders", "customer", ("orders", "customer")),
        ("orders", "customer.name.first", ("orders", "customer.name.first")),
        ("orders", "tota", ("orders", None)),
        ("orders", SENTINEL, ("orders", None)),
        ("notes", "anything", ("notes", "anything")),
        (SENTINEL, "total", (None, None)),
        (None, "total", (None, None)),
    ],
)
def test_name_that_was_not_asked_for_does_not_leave(
    table: str | None, column: str | None, told: tuple[str | None, str | None]
) -> None:
    error = fail_in(
        Phase.QUERY, SourceFailure(Stage.ROWS, "invalid_text", table=table, column=column)
    )
    assert (error.table, error.column) == told


@pytest.mark.parametrize("phase", list(Phase))
def test_foreign_exception_is_replaced_by_the_fixed_text(phase: Phase) -> None:
    error = fail_in(phase, leaky())
    assert error.message == phase.value
    assert error.category is (CONNECT if phase is Phase.CONNECT else UNAVAILABLE)
    assert error.unwrap() is None


@pytest.mark.parametrize("phase", list(Phase))
def test_connect_of_a_connector_keeps_its_category_cause_and_safe_words(phase: Phase) -> None:
    """Spec 3.4 lets it pass unchanged; its text is as little to be trusted as any driver's."""
    unsafe = leaky(ValueError)
    own = EngineError(
        CONNECT, SENTINEL, unsafe, source=SENTINEL, reason="private_host", table=SENTINEL
    )
    error = fail_in(phase, own)
    assert (error.category, error.message) == (CONNECT, "failed to connect to datasource")
    assert (error.source, error.reason, error.table) == ("shop", "private_host", None)
    assert error.unwrap() is unsafe


def test_other_engine_error_of_a_connector_is_as_foreign_as_any() -> None:
    error = fail_in(Phase.DISCOVER, EngineError(ErrorCategory.FORBIDDEN, SENTINEL))
    assert (error.category, error.message) == (UNAVAILABLE, "failed to discover datasource schema")


def test_group_of_deadlines_is_a_deadline_and_any_other_group_is_opaque() -> None:
    async def call() -> None:
        raise ExceptionGroup(SENTINEL, [DeadlineExceeded(), DeadlineExceeded()])

    checkpoint = Checkpoint(SequentialConcurrency(), None)
    with pytest.raises(DeadlineExceeded):
        run(from_source(call, phase=Phase.QUERY, source="s", checkpoint=checkpoint))
    mixed = ExceptionGroup(SENTINEL, [DeadlineExceeded(), leaky()])
    assert fail_in(Phase.QUERY, mixed).category is UNAVAILABLE


def test_store_exception_becomes_unavailable_with_the_original_to_unwrap() -> None:
    original = leaky(OSError)

    async def call() -> None:
        raise original

    with refuses(UNAVAILABLE, "connection store unavailable") as caught:
        run(from_store(call))
    assert caught.value.unwrap() is original
