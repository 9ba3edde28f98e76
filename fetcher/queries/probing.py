"""One look at one dependency (spec configuration 6.3)."""

import time
from dataclasses import replace
from typing import Final

import trio

from fetcher.ports import Probe, ProbeResult, ProbeStatus

MEASURED: Final = (ProbeStatus.UP, ProbeStatus.DEGRADED)
"""Of these the wall time is told where the probe tells none."""
TIMED_OUT: Final = ProbeResult(status=ProbeStatus.DOWN, error="timeout")


async def timed_probe(probe: Probe) -> ProbeResult:
    """What the probe says within its deadline, TIMED_OUT where it says nothing; whatever its check
    raises goes on. It ends in time if the check does when it is cancelled."""
    started = time.perf_counter()
    with trio.move_on_after(probe.timeout_seconds):
        result = await probe.check()
        if result.latency_ms == 0 and result.status in MEASURED:
            elapsed_ms = int((time.perf_counter() - started) * 1000)
            return replace(result, latency_ms=elapsed_ms)
        return result
    return TIMED_OUT
