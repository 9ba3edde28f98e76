"""What ends the process from outside."""

import os
import signal
from collections.abc import AsyncIterable
from contextlib import AbstractContextManager

import structlog
import trio

from fetcher.actors.lifecycle import Lifecycle

log = structlog.get_logger(__name__)


def open_signals() -> AbstractContextManager[AsyncIterable[int]]:
    """While it is open SIGTERM and SIGINT end nothing by themselves."""
    return trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT)


async def drain_on_signals(signals: AsyncIterable[int], lifecycle: Lifecycle) -> None:
    """The first signal starts the drain, a second one ends the process at once with the shell's
    code for that signal.

    It runs for as long as the process does, beside the actors: one that crashed and waits for its
    restart would leave a signal to the system, which ends the process without a drain.
    """
    async for number in signals:
        if lifecycle.draining.is_set():
            # Nothing can be tidied up in order here: that is what a second signal asks.
            os._exit(128 + number)
        log.info("signal_received", signal=signal.Signals(number).name)
        lifecycle.drain()
