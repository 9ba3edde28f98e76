"""What ends the process from outside."""

import os
import signal
from collections.abc import AsyncIterable
from contextlib import AbstractContextManager
from typing import Final

import structlog
import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.log_stream import flush_logs

LAST_RECORDS_SECONDS: Final = 0.1

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
            # Nothing can be tidied up in order here: that is what a second signal asks. A sink that
            # works has the last records within this time, and one that hangs holds nothing up.
            flush_logs(LAST_RECORDS_SECONDS)
            os._exit(128 + number)
        log.info("signal_received", signal=signal.Signals(number).name)
        lifecycle.drain()
