"""The dead letters of a running service, for operators: looked at and dispatched anew."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import trio

from fetcher.commands.dead_letters import Choice, DeadLetters, Examined, Redriven
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.verify_work import VerifyWork
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import DeadLetterQueue, DeadLetterWindow, DispatchOutbox

TURN_SECONDS: Final = 5.0
LIST_SECONDS: Final = 8.0
MOST_LISTED_FROM: Final = 1_000
"""Letters in hand are seen by nobody else meanwhile."""
REDRIVE_SECONDS: Final = 30.0
MOST_REDRIVEN_FROM: Final = 10_000
JOBS_A_SECOND: Final = 200.0


class Stop(StrEnum):
    """What ended a pass before it had found all that was asked for."""

    DEADLINE = "deadline"
    EXAMINED = "examined"
    """So many were looked at as one pass may."""
    DELIVERY_LIMIT = "delivery_limit"
    """The queue drops letters that were looked at too often: none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """``total`` counts all that lie there, ``examined`` those that were looked at."""

    total: int
    examined: int = 0
    stop: Stop | None = None


class OperateDeadLetters:
    """One window at a time: letters in somebody's hand are seen by nobody else.

    Every method raises PortUnavailable where the letters, or the records, are away or another
    window stands open for too long. One that has begun ends in time: what it told until then holds.
    """

    def __init__(
        self,
        *,
        queue: DeadLetterQueue,
        verifier: VerifyWork,
        outbox: DispatchOutbox,
        held_back: HeldBackJobs,
    ) -> None:
        self._queue = queue
        self._verifier = verifier
        self._outbox = outbox
        self._held_back = held_back
        self._turn = trio.Lock()

    async def list(self, choice: Choice, tell: Callable[[Examined], None]) -> Looked:
        """Tell of the chosen ones within 8 s, but of none that would be worn out by that."""
        letters: DeadLetters | None = None
        total = 0
        with trio.move_on_after(LIST_SECONDS):
            async with self._window() as window:
                total = window.total
                letters = DeadLetters(window, self._verifier)
                if total and not await self._queue.survives_looks():
                    return Looked(total=total, stop=Stop.DELIVERY_LIMIT)
                bounded = replace(choice, most_examined=MOST_LISTED_FROM)
                async with aclosing(letters.pages(bounded)) as pages:
                    async for page in pages:
                        for each in page:
                            tell(each)
                return Looked(total=total, examined=letters.examined, stop=_stop_of(letters))
        if letters is None:
            raise PortUnavailable("the dead letters were not reached in time")
        return Looked(total=total, examined=letters.examined, stop=Stop.DEADLINE)

    async def redrive(
        self, choice: Choice, tell: Callable[[Examined, Redriven], None]
    ) -> Stop | None:
        """Dispatch the jobs of genuine letters anew, from their records, for at most 30 s.

        Where the time is over some that were not told of may have been dispatched too: redriving
        again does no harm. Also where letters are worn out by looks: this is what saves them.
        """
        letters: DeadLetters | None = None
        with trio.move_on_after(REDRIVE_SECONDS):
            async with self._window() as window:
                letters = DeadLetters(window, self._verifier)
                await letters.redrive(
                    replace(choice, most_examined=MOST_REDRIVEN_FROM),
                    outbox=self._outbox,
                    held_back=self._held_back,
                    jobs_a_second=JOBS_A_SECOND,
                    tell=tell,
                )
                return _stop_of(letters)
        if letters is None:
            raise PortUnavailable("the dead letters were not reached in time")
        return Stop.DEADLINE

    @asynccontextmanager
    async def _window(self) -> AsyncGenerator[DeadLetterWindow, None]:
        with trio.move_on_after(TURN_SECONDS) as waiting:
            await self._turn.acquire()
        if waiting.cancelled_caught:
            raise PortUnavailable("somebody else looks at the dead letters")
        try:
            async with self._queue.open() as window:
                yield window
        finally:
            self._turn.release()


def _stop_of(letters: DeadLetters) -> Stop | None:
    return Stop.EXAMINED if letters.is_cut_short else None
