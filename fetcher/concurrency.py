"""The Engine's concurrency port on trio (spec engine 19.3).

Its contract is :class:`fetcher_engine.Concurrency`; what is said here is how trio keeps it.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import trio

from fetcher_engine import DeadlineExceeded, Handoff, HandoffClosed

T = TypeVar("T")
Job: TypeAlias = Callable[[], Awaitable[None]]


class TrioHandoff(Generic[T]):
    """A queue bounded by the costs of what it holds; one producer, one consumer."""

    def __init__(self, max_cost: int) -> None:
        self._max_cost = max_cost
        self._items: deque[tuple[T, int]] = deque()
        self._queued_cost = 0
        self._closed = False
        self._changed = trio.Event()

    async def send(self, item: T, cost: int) -> None:
        while self._items and self._queued_cost + cost > self._max_cost:
            await self._change()
        self._items.append((item, cost))
        self._queued_cost += cost
        self._tell()

    async def receive(self) -> T:
        while not self._items:
            if self._closed:
                raise HandoffClosed
            await self._change()
        item, cost = self._items.popleft()
        self._queued_cost -= cost
        self._tell()
        return item

    def close(self) -> None:
        self._closed = True
        self._tell()

    async def _change(self) -> None:
        await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class TrioConcurrency:
    """Stateless: one instance serves the whole process."""

    async def run_ordered(self, jobs: Sequence[Job], limit: int) -> None:
        waiting = deque(jobs)
        failures: list[Exception] = []
        async with trio.open_nursery() as nursery:

            async def take_turns() -> None:
                # Whichever worker runs first takes the first job: the order is the queue's.
                while waiting:
                    try:
                        await _outcome(waiting.popleft())
                    except Exception as failure:  # noqa: BLE001 - raised below, outside of the nursery's group
                        failures.append(failure)
                        waiting.clear()
                        nursery.cancel_scope.cancel()

            for _ in jobs[: max(1, limit)]:
                nursery.start_soon(take_turns)
        if failures:
            raise failures[0]

    async def run_with_deadline(self, seconds: float | None, job: Callable[[], Awaitable[T]]) -> T:
        with trio.move_on_after(math.inf if seconds is None else seconds):
            return await _outcome(job)
        raise DeadlineExceeded

    async def run_shielded(self, seconds: float, job: Job) -> None:
        try:
            with trio.move_on_after(seconds, shield=True):
                await _outcome(job)
        except Exception:  # noqa: BLE001, S110 - clean-up never hides what happened before it
            pass

    def handoff(self, max_cost: int) -> Handoff[T] | None:
        return TrioHandoff[T](max_cost)

    async def checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()


async def _outcome(job: Callable[[], Awaitable[T]]) -> T:
    """What the job returns or raises; of a cancelled nursery's group, the cancellation alone.

    Such a group holds what tasks raised while being cancelled too, which the scope that takes the
    cancellation out would let go on as a group.
    """
    try:
        return await job()
    except BaseExceptionGroup as group:
        cancelled, others = group.split(trio.Cancelled)
        if cancelled is None or not isinstance(others, ExceptionGroup | None):
            raise
    raise cancelled
