"""What a measurement costs its process, and how late its loop is at worst (design section 12)."""

import json
import resource
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import trio

from fetcher.bootstrap.garbage import spare_what_is_there
from fetcher.datasources.registry import load_connectors

HEARTBEAT_SECONDS: Final = 0.005

Measure: TypeAlias = Callable[[], Awaitable[int]]


async def with_heartbeat(measure: Measure) -> tuple[int, float]:
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


def report_opened(opening: Callable[[], AbstractAsyncContextManager[Measure]]) -> None:
    """Run it, and print one JSON object: rows, seconds, CPU seconds, lateness, memory.

    Connectors are loaded before, as in a worker that meets its first job; what a worker opens when
    it starts is opened before, and closed after.
    """
    print(json.dumps(trio.run(_measured, opening)))


async def _measured(
    opening: Callable[[], AbstractAsyncContextManager[Measure]],
) -> dict[str, int | float]:
    load_connectors()
    async with opening() as measure:
        spare_what_is_there()
        before = _peak_mib()
        cpu = time.process_time()
        started = time.perf_counter()
        rows, latest = await with_heartbeat(measure)
        return {
            "rows": rows,
            "seconds": round(time.perf_counter() - started, 3),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "loop_late_ms": round(latest, 1),
            "peak_mib": _peak_mib(),
            "peak_before_mib": before,
        }


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
