"""Waiting for a condition with a deadline, instead of sleeping."""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

import trio

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.2


class DeadlineMissedError(AssertionError):
    """The condition did not become true in time."""


@overload
async def eventually(
    predicate: Callable[[], Awaitable[T]], *, deadline_seconds: float, what: str = ""
) -> T: ...
@overload
async def eventually(
    predicate: Callable[[], T], *, deadline_seconds: float, what: str = ""
) -> T: ...
async def eventually(
    predicate: Callable[[], object], *, deadline_seconds: float, what: str = ""
) -> object:
    """Call ``predicate`` until it gives something true, and return that.

    The predicate may be a coroutine function; one that hangs is cancelled at the deadline.
    An exception from it ends the wait.

    Raises:
        DeadlineMissedError: nothing true within ``deadline_seconds``; names ``what`` (or the
            predicate) and its last value.
    """
    last: object = None
    pause = FIRST_PAUSE_SECONDS
    with trio.move_on_after(deadline_seconds):
        while True:
            answer = predicate()
            value: object = await answer if inspect.isawaitable(answer) else answer
            if value:
                return value
            last = value
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
    raise _missed(predicate, deadline_seconds, what, last)


def eventually_sync(predicate: Callable[[], T], *, deadline_seconds: float, what: str = "") -> T:
    """As :func:`eventually`, for tests without trio. The predicate must return by itself."""
    give_up_at = time.monotonic() + deadline_seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= give_up_at:
            raise _missed(predicate, deadline_seconds, what, value)
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def _missed(
    predicate: Callable[[], object], deadline_seconds: float, what: str, last: object
) -> DeadlineMissedError:
    name = what or getattr(predicate, "__qualname__", repr(predicate))
    return DeadlineMissedError(f"not within {deadline_seconds:g} s: {name} (last value: {last!r})")
