"""Everything that an error, a result or a state shows of itself, and that no secret is in it."""

import copy
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

from fetcher_engine import EngineError

from .refusals import SENTINEL

SECRET = SENTINEL.partition("-")[0]
"""Part of every secret of these tests, however it was cut or quoted."""

ADDRESS = "db7.internal"
"""The caller's own, and shown in a descriptor; but an error must not repeat it."""


def tainted(error: BaseException) -> BaseException:
    """The exception with secrets in all that it carries beside itself."""
    error.__cause__ = OSError(SENTINEL)
    error.__context__ = KeyError(SENTINEL)
    error.add_note(SENTINEL)
    return error


def shows_no_secret(value: object) -> None:
    """The text forms of a value that left the Engine as a success."""
    projection: dict[str, Any] = getattr(value, "to_public_dict", dict)()
    # the document is what was asked for, and conditions are the caller's own
    projection.get("direct", {}).pop("data", None)
    for step in projection.get("steps", []):
        del step["filters"]
    shown = [str(value), repr(value), f"{value}", str(projection)]
    assert SECRET not in "".join(shown)


def gives_nothing_away(error: BaseException) -> None:
    """An exception that left the Engine carries nothing of the one that made it fail."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not hasattr(error, "__notes__")
    shown = "".join(_shown(error))
    assert SECRET not in shown
    assert ADDRESS not in shown


def _shown(error: BaseException) -> Iterator[str]:
    yield from (str(error), repr(error), f"{error!s:>9}", repr(error.args))
    yield from traceback.format_exception(error)
    if isinstance(error, EngineError):
        yield str({name: value for name, value in vars(error).items() if name != "_cause"})
        yield str(error.to_public_dict())
        yield repr([failure.to_public_dict() for failure in error.failures])
        pickled = pickle.dumps(error)
        yield pickled.decode("latin-1")
        for duplicate in (pickle.loads(pickled), copy.copy(error)):  # noqa: S301 - our own bytes
            assert duplicate.__cause__ is None
            assert duplicate.__context__ is None
            yield from (str(duplicate), repr(duplicate), repr(duplicate.args))
