"""How late a process's loop is at worst while something is measured (design section 12)."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

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
