"""The three ways to run the suite: on a trampoline, on asyncio, on trio.

A module whose tests drive the Engine says ``pytestmark = every_loop``, or ``real_loops`` where they
wait, race or are cancelled; a mark on a test wins over its module's. :func:`run` then runs on the
loop of the round, and a host (tests/hosts.py) has its concurrency.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

import pytest
import trio
from trio.testing import MockClock

from fetcher_engine import Concurrency, DeadlineExceeded, Handoff, HandoffClosed
from fetcher_engine.memory import run_trampoline

from .readme import asyncio_concurrency

T = TypeVar("T")
AsyncFn = Callable[[], Coroutine[Any, Any, T]]


class Loop(Protocol):
    """What a test needs of a loop."""

    concurrency: Concurrency | None

    def run(self, main: AsyncFn[T]) -> T: ...

    async def pause(self) -> None:
        """Let all other tasks run once."""

    async def hang(self) -> None:
        """Wait until cancelled."""

    async def run_and_cancel(self, main: AsyncFn[None], when: Callable[[], bool]) -> str:
        """Run ``main`` and cancel it once ``when`` holds: how it ended."""
        ...


class TrampolineLoop:
    """No loop: everything that would suspend is an error."""

    concurrency = None

    def run(self, main: AsyncFn[T]) -> T:
        return run_trampoline(main())

    async def pause(self) -> None:
        pass


class AsyncioLoop:
    def __init__(self) -> None:
        self.concurrency: Concurrency = asyncio_concurrency()

    def run(self, main: AsyncFn[T]) -> T:
        """Where a task is left over, that is the failure: ``asyncio.run`` would hide it."""

        async def alone() -> T:
            try:
                return await main()
            finally:
                assert asyncio.all_tasks() == {asyncio.current_task()}

        return asyncio.run(alone())

    async def pause(self) -> None:
        await asyncio.sleep(0)

    async def hang(self) -> None:
        await asyncio.Event().wait()

    async def run_and_cancel(self, main: AsyncFn[None], when: Callable[[], bool]) -> str:
        task = asyncio.create_task(main())
        while not when() and not task.done():  # noqa: ASYNC110 - the condition is any the test has
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "returned"


class TrioLoop:
    """On a clock that jumps to the next deadline when all wait."""

    def __init__(self) -> None:
        self.concurrency: Concurrency = TrioConcurrency()

    def run(self, main: AsyncFn[T]) -> T:
        return trio.run(main, clock=MockClock(autojump_threshold=0))

    async def pause(self) -> None:
        await trio.lowlevel.checkpoint()

    async def hang(self) -> None:
        await trio.sleep_forever()

    async def run_and_cancel(self, main: AsyncFn[None], when: Callable[[], bool]) -> str:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:

                async def cancel_when() -> None:
                    while not when():
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                nursery.start_soon(cancel_when)
                await main()
            nursery.cancel_scope.cancel()
        return "cancelled" if scope.cancelled_caught else "returned"


RealLoop = AsyncioLoop | TrioLoop
AnyLoop = TrampolineLoop | RealLoop

every_loop = pytest.mark.loops(TrampolineLoop, AsyncioLoop, TrioLoop)
real_loops = pytest.mark.loops(AsyncioLoop, TrioLoop)
trio_alone = pytest.mark.loops.with_args(TrioLoop)
"""For what would take real seconds: its clock jumps."""

_round: list[AnyLoop] = []


@contextmanager
def running_on(loop: AnyLoop) -> Iterator[None]:
    """The loop of the round, which conftest.py enters."""
    _round.append(loop)
    try:
        yield
    finally:
        _round.pop()


def concurrency_of_the_round() -> Concurrency | None:
    """None on the trampoline, and where a test runs in no round."""
    return _round[-1].concurrency if _round else None


def current_loop() -> AnyLoop:
    """The loop of the round."""
    if not _round:
        raise LookupError("the test names no loop: mark it every_loop or real_loops")
    return _round[-1]


def current_real_loop() -> RealLoop:
    """The loop of a round that has one, for what hangs and is cancelled."""
    loop = current_loop()
    assert not isinstance(loop, TrampolineLoop)
    return loop


def run(work: Coroutine[Any, Any, T] | AsyncFn[T]) -> T:
    """What the coroutine returns, run on the loop of the round."""

    async def main() -> T:
        return await (work() if callable(work) else work)

    return current_loop().run(main)


class TrioHandoff(Generic[T]):
    def __init__(self, max_cost: int) -> None:
        self._max_cost = max_cost
        self._cost = 0
        self._items: deque[tuple[T, int]] = deque()
        self._closed = False
        self._changed = trio.Event()

    async def send(self, item: T, cost: int) -> None:
        while self._items and self._cost + cost > self._max_cost:
            await self._changed.wait()
        self._items.append((item, cost))
        self._cost += cost
        self._change()

    async def receive(self) -> T:
        while not self._items:
            if self._closed:
                raise HandoffClosed
            await self._changed.wait()
        item, cost = self._items.popleft()
        self._cost -= cost
        self._change()
        return item

    def close(self) -> None:
        self._closed = True
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class TrioConcurrency:
    async def run_ordered(self, jobs: Sequence[Callable[[], Awaitable[None]]], limit: int) -> None:
        waiting = iter(jobs)
        failures: list[Exception] = []

        async with trio.open_nursery() as nursery:

            async def work() -> None:
                for job in waiting:
                    try:
                        await outcome(job)
                    except Exception as error:  # noqa: BLE001 - kept, to be raised below
                        failures.append(error)
                        nursery.cancel_scope.cancel()
                    if failures:
                        return

            for _ in jobs[: max(1, limit)]:
                nursery.start_soon(work)
        if failures:
            raise failures[0]

    async def run_with_deadline(self, seconds: float | None, job: Callable[[], Awaitable[T]]) -> T:
        with trio.move_on_after(float("inf") if seconds is None else seconds):
            return await outcome(job)
        raise DeadlineExceeded

    async def run_shielded(self, seconds: float, job: Callable[[], Awaitable[None]]) -> None:
        with trio.move_on_after(seconds, shield=True):
            with suppress(Exception):
                await outcome(job)

    def handoff(self, max_cost: int) -> Handoff[T] | None:
        return TrioHandoff(max_cost)

    async def checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()


async def outcome(job: Callable[[], Awaitable[T]]) -> T:
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
