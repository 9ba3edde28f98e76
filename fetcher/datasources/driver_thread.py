"""Blocking drivers under trio: one call at a time in a thread, ended from outside when need be."""

from collections.abc import Callable
from typing import TypeVar

import trio

from fetcher.datasources.threads import ThreadLimiter, in_thread

T = TypeVar("T")


class DriverThread:
    """Runs the blocking calls of one session.

    ``interrupt`` must make a running call return soon, from whatever thread: shut its socket down,
    say. It is called when the caller is cancelled, and the call is then waited for, so that nobody
    frees what a thread still uses.
    """

    def __init__(self, limiter: ThreadLimiter, interrupt: Callable[[], None]) -> None:
        """``limiter`` bounds the threads of one kind of driver over all sessions of a process,
        or of one of its tenants."""
        self._limiter = limiter
        self._interrupt = interrupt

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises. Cancelled, it is interrupted, then waited for."""
        outcomes: list[T] = []
        failures: list[Exception] = []
        has_ended = False

        def contained() -> None:
            try:
                outcomes.append(work())
            except Exception as error:  # noqa: BLE001 - handed to the caller outside of the nursery
                failures.append(error)

        async def interrupt_when_cancelled() -> None:
            try:
                await trio.sleep_forever()
            finally:
                if not has_ended:
                    self._interrupt()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(interrupt_when_cancelled)
            await in_thread(self._limiter, contained)
            has_ended = True
            nursery.cancel_scope.cancel()
        await trio.lowlevel.checkpoint_if_cancelled()
        if failures:
            raise failures[0]
        return outcomes[0]
