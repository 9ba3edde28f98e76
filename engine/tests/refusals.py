"""How tests expect an EngineError, and that it gives nothing away."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fetcher_engine import EngineError, ErrorCategory

SENTINEL = "hunter2-postgres://u:p@db7"
"""Stands in the errors that sources, stores and hosts raise in these tests."""


def leaky(kind: type[Exception] = RuntimeError) -> Exception:
    """An exception whose text, cause and context all hold the sentinel."""
    error = kind(SENTINEL)
    error.__cause__ = ValueError(SENTINEL)
    error.__context__ = KeyError(SENTINEL)
    return error


@contextmanager
def refuses(
    category: ErrorCategory, message: str | None = None
) -> Iterator[pytest.ExceptionInfo[EngineError]]:
    """The block raises an EngineError of this category, and nothing shows the sentinel."""
    with pytest.raises(EngineError) as caught:
        yield caught
    error = caught.value
    assert error.category is category, error
    if message is not None:
        assert error.message == message
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [str(error), repr(error), str(vars(error) | {"_cause": None})]
    shown += traceback.format_exception(error)
    assert SENTINEL not in "".join(shown)
