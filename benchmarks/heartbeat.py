"""What a measurement costs its process, and how late its loop is at worst (design section 12)."""

import json
import resource
import time
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from fetcher.datasources.registry import load_connectors

HEARTBEAT_SECONDS: Final = 0.005


async def with_heartbeat(measure: Callable[[], Awaitable[int]]) -> tuple[int, float]:
    """The rows, and how late the process's loop was at worst, in milliseconds."""
    latest = 0.0

    async def beat() -> None:
        nonlocal latest
        while True:
            due = trio.current_time() + HEARTBEAT_SECONDS
            await trio.sleep_until(due)
            latest = max(latest, trio.current_time() - due)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        rows = await measure()
        nursery.cancel_scope.cancel()
    return rows, latest * 1000


def report(measure: Callable[[], Awaitable[int]]) -> None:
    """Run it, and print one JSON object: rows, seconds, CPU seconds, lateness, memory.

    Connectors are loaded before, as in a worker that meets its first job.
    """
    load_connectors()
    before = _peak_mib()
    cpu = time.process_time()
    started = time.perf_counter()
    rows, latest = trio.run(with_heartbeat, measure)
    seconds = time.perf_counter() - started
    found = {
        "rows": rows,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "loop_late_ms": round(latest, 1),
        "peak_mib": _peak_mib(),
        "peak_before_mib": before,
    }
    print(json.dumps(found))


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
