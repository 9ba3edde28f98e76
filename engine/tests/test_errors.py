"""Categories, texts, and what an error must not show (spec 3)."""

import pickle
import traceback

import pytest

from fetcher_engine import EngineError, ErrorCategory, Stage, is_valid_category

from .refusals import SENTINEL, leaky

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
