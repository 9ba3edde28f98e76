"""Signals: the first one drains."""

import os
import signal

import pytest
import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.signals import drain_on_signals, open_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_begins_the_drain(number: signal.Signals) -> None:
    lifecycle = Lifecycle()
    with open_signals() as signals:
        async with trio.open_nursery() as nursery:
            os.kill(os.getpid(), number)  # before anybody looks
            nursery.start_soon(drain_on_signals, signals, lifecycle)
            with trio.fail_after(5):
                await lifecycle.draining.wait()
            nursery.cancel_scope.cancel()
