"""What the Engine needs from an event loop, as a port, and what it does without one (spec 19.3).

The Engine's coroutines await only port methods and each other: no task, timer or lock is made here.
A host implements :class:`Concurrency` on its own loop; the README shows one for asyncio.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Job: TypeAlias = Callable[[], Awaitable[None]]


class DeadlineExceeded(Exception):
    """A deadline given to :meth:`Concurrency.run_with_deadline` has passed."""


class HandoffClosed(Exception):
    """The producer has closed the hand-off and every item was received."""


class Handoff(Protocol[T]):
    """A queue between one producer and one consumer, bounded by what its items cost (bytes)."""

    async def send(self, item: T, cost: int) -> None:
        """Append an item, waiting while the costs queued and this one exceed the bound together.

        An item that alone costs more than the bound is taken once the queue is empty, so that no
        item can block for ever. A wait ends only by room or by cancellation; cancelled, the item
        was not appended. Where there is room it need not suspend. Not to be called after close.
        """
        ...

    async def receive(self) -> T:
        """Take the oldest item, waiting for one; its cost is free from this moment.

        Raise :class:`HandoffClosed` once the queue is closed and empty, at every further call
        too. Cancelled while it waits, no item is lost. Where an item is there it need not suspend.
        """
        ...

    def close(self) -> None:
        """Say that no more items come: queued ones can still be received. Idempotent."""
        ...


class Concurrency(Protocol):
    """Five primitives of structured concurrency. One instance serves any number of calls at once.

    "Cancellation" below is the loop's own (trio ``Cancelled``, asyncio ``CancelledError``): a
    BaseException that no method swallows or converts.
    """

    async def run_ordered(self, jobs: Sequence[Job], limit: int) -> None:
        """Run all jobs, started strictly in index order, at most ``limit`` at once (at least 1).

        A job starts no later than when a running one has ended. On the first Exception of a job
        the running ones are cancelled and those not started are never called; once all have ended
        that very exception object is raised: not a group, and without a cause or context of the
        host's making. Exceptions that others raise while being cancelled are dropped. Cancelled
        from outside, all running jobs are cancelled and awaited, then the cancellation goes on.
        No job outlives the call.
        """
        ...

    async def run_with_deadline(self, seconds: float | None, job: Callable[[], Awaitable[T]]) -> T:
        """The job's result. After ``seconds`` the job is cancelled and DeadlineExceeded raised.

        ``None`` means no deadline. A deadline or cancellation from outside keeps its own meaning:
        only this call's own expiry becomes :class:`DeadlineExceeded`, raised without a cause or
        context. An exception of the job passes unchanged, also when the time was up meanwhile; a
        result that came in spite of the cancellation is returned.
        """
        ...

    async def run_shielded(self, seconds: float, job: Job) -> None:
        """Run clean-up that outer cancellation does not reach, for at most ``seconds``.

        The job's Exceptions and its own expiry are swallowed: clean-up never hides what happened
        before it. An outer cancellation that arrived meanwhile is not lost: it is raised at the end
        of this call or at the next checkpoint.
        """
        ...

    def handoff(self, max_cost: int) -> Handoff[T] | None:
        """A new hand-off bounded by ``max_cost``.

        None where jobs of :meth:`run_ordered` run one after the other, so that a producer and a
        consumer could never meet; then nothing is read ahead, and steps run one by one.
        """
        ...

    async def checkpoint(self) -> None:
        """Let others run, and raise a pending cancellation here."""
        ...


class SequentialConcurrency:
    """What an Engine without a port runs on: one thing after the other, on any loop or none.

    It cannot interrupt a blocked connector: a deadline is noticed at the next checkpoint (before
    each step, between connecting and querying, after each batch), and clean-up is not bounded in
    time. An instance belongs to one call, since it keeps that call's deadlines.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._deadlines: list[float] = []

    def anew(self) -> "SequentialConcurrency":
        """Another one on the same clock, for another call."""
        return SequentialConcurrency(monotonic=self._monotonic)

    async def run_ordered(self, jobs: Sequence[Job], limit: int) -> None:  # noqa: ARG002 - one at a time is within any limit
        """Run the jobs one by one; the first exception ends the round."""
        for job in jobs:
            await job()

    async def run_with_deadline(self, seconds: float | None, job: Callable[[], Awaitable[T]]) -> T:
        """Run the job; checkpoints within raise DeadlineExceeded once the time is up."""
        if seconds is None:
            return await job()
        self._deadlines.append(self._monotonic() + seconds)
        try:
            return await job()
        finally:
            self._deadlines.pop()

    async def run_shielded(self, seconds: float, job: Job) -> None:  # noqa: ARG002 - nothing here could interrupt it
        """Run the clean-up, under no deadline, and swallow its Exceptions."""
        deadlines, self._deadlines = self._deadlines, []
        try:
            await job()
        except Exception:  # noqa: BLE001, S110 - clean-up never hides what happened before it
            pass
        finally:
            self._deadlines = deadlines

    def handoff(self, max_cost: int) -> Handoff[T] | None:  # noqa: ARG002 - see the return value
        """None: a producer and a consumer would wait for each other."""
        return None

    async def checkpoint(self) -> None:
        """Raise DeadlineExceeded when a deadline of this call has passed."""
        if self._deadlines and self._monotonic() >= min(self._deadlines):
            raise DeadlineExceeded
