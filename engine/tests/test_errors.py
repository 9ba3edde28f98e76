"""Categories, texts, and what an error must not show (spec 3)."""

import pickle
import traceback

import pytest

from fetcher_engine import EngineError, ErrorCategory, SourceFailure, Stage, is_valid_category
from fetcher_engine.concurrency import DeadlineExceeded, SequentialConcurrency
from fetcher_engine.failures import Checkpoint, Phase, from_source, from_store
from fetcher_engine.memory import run_trampoline

from .refusals import SENTINEL, leaky, refuses

ELEVEN = [
    "validation",
    "not_found",
    "unauthorized",
    "forbidden",
    "limit_exceeded",
    "conflict",
    "unavailable",
    "connect",
    "timeout",
    "canceled",
    "internal",
]


def test_there_are_exactly_eleven_categories() -> None:
    assert [str(category) for category in ErrorCategory] == ELEVEN
    assert all(map(is_valid_category, ELEVEN))


@pytest.mark.parametrize("category", ["", "nope", "VALIDATION"])
def test_other_text_is_no_category(category: str) -> None:
    assert not is_valid_category(category)


def test_text_form() -> None:
    error = EngineError(ErrorCategory.CONNECT, "failed to connect to datasource")
    assert str(error) == "engine: [connect] failed to connect to datasource"


def test_empty_category_shows_as_internal() -> None:
    assert str(EngineError("", "x")) == "engine: [internal] x"  # type: ignore[arg-type]  # a host's mistake


def test_plain_error_has_no_cause_to_unwrap() -> None:
    assert EngineError(ErrorCategory.INTERNAL, "x").unwrap() is None


def test_wrapped_cause_is_reachable_and_never_shown() -> None:
    cause = leaky(ConnectionError)
    error = EngineError(ErrorCategory.CONNECT, "failed", cause)
    assert error.unwrap() is cause
    shown = [str(error), repr(error), f"{error!s:>80}", *traceback.format_exception(error)]
    assert SENTINEL not in "".join(shown)


def test_pickle_keeps_safe_attributes_and_drops_the_cause() -> None:
    error = EngineError(
        ErrorCategory.UNAVAILABLE, "failed", leaky(), source="shop", stage=Stage.ROWS, table="t"
    )
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copy.category, copy.message, copy.source, copy.stage, copy.table) == (
        ErrorCategory.UNAVAILABLE,
        "failed",
        "shop",
        Stage.ROWS,
        "t",
    )
    assert copy.unwrap() is None
    assert SENTINEL.encode() not in pickle.dumps(error)


def test_projection_for_transports() -> None:
    error = EngineError(ErrorCategory.CONFLICT, "connection already exists", leaky())
    assert error.to_public_dict() == {
        "category": "conflict",
        "message": "connection already exists",
    }


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
        )

    with pytest.raises(EngineError) as caught:
        run_trampoline(main())
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
def test_foreign_exception_is_replaced_by_the_fixed_text(phase: Phase) -> None:
    error = fail_in(phase, leaky())
    assert error.message == phase.value
    assert error.category is (CONNECT if phase is Phase.CONNECT else UNAVAILABLE)
    assert error.unwrap() is None


def test_engine_error_of_a_connector_passes_only_as_connect() -> None:
    own = EngineError(CONNECT, "failed to connect to datasource", reason="private_host")
    assert fail_in(Phase.DISCOVER, own) is own
    other = EngineError(ErrorCategory.FORBIDDEN, SENTINEL)
    assert fail_in(Phase.DISCOVER, other).category is UNAVAILABLE


def test_group_of_deadlines_is_a_deadline_and_any_other_group_is_opaque() -> None:
    async def call() -> None:
        raise ExceptionGroup(SENTINEL, [DeadlineExceeded(), DeadlineExceeded()])

    checkpoint = Checkpoint(SequentialConcurrency(), None)
    with pytest.raises(DeadlineExceeded):
        run_trampoline(from_source(call, phase=Phase.QUERY, source="s", checkpoint=checkpoint))
    mixed = ExceptionGroup(SENTINEL, [DeadlineExceeded(), leaky()])
    assert fail_in(Phase.QUERY, mixed).category is UNAVAILABLE


def test_store_exception_becomes_unavailable_with_the_original_to_unwrap() -> None:
    original = leaky(OSError)

    async def call() -> None:
        raise original

    with refuses(UNAVAILABLE, "connection store unavailable") as caught:
        run_trampoline(from_store(call))
    assert caught.value.unwrap() is original
