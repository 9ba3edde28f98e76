"""Work that only so much of may go on at once in a process, taken in turn by its tenants."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import trio

T = TypeVar("T")


@dataclass(slots=True)
class _Line:
    """A tenant's own. Whoever holds ``head`` stands in the line of all for it."""

    head: trio.StrictFIFOLock = field(default_factory=trio.StrictFIFOLock)
    users: int = 0


class Turns:
    """So many places. Each tenant waits in a line of its own, and only the head of that in the line
    of all: however much one asks for, another's next place is one round away, and one that is alone
    gets every place."""

    def __init__(self, places: int) -> None:
        self._free = trio.Semaphore(places)
        self._threads = trio.CapacityLimiter(places)
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def turn(self, tenant_id: str) -> AsyncIterator[None]:
        """Have a place; ``tenant_id`` is empty where there are no tenants. Cancelled while it waits
        it has taken none."""
        await self._acquire(tenant_id)
        try:
            yield
        finally:
            self._free.release()

    async def in_thread(self, work: Callable[[], T], tenant_id: str) -> T:
        """What ``work`` returns or raises, from a thread of its own; it is waited for."""
        async with self.turn(tenant_id):
            return await trio.to_thread.run_sync(work, limiter=self._threads)

    async def _acquire(self, tenant_id: str) -> None:
        if not tenant_id:
            await self._free.acquire()
            return
        line = self._lines.setdefault(tenant_id, _Line())
        line.users += 1
        try:
            async with line.head:
                await self._free.acquire()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[tenant_id]
