"""Drives a coroutine without an event loop."""

from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def run_trampoline(coroutine: Coroutine[object, None, T]) -> T:
    """The coroutine's result.

    Raise RuntimeError when it suspends: with the ports of this package an Engine never does.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits for an event loop, and there is none")
