"""What operators do with dead letters: look, dispatch anew from the record, throw away."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import trio

from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.signer import TIMESTAMP_HEADER
from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import RedriveAnswer
from fetcher.domain.saved_letters import Fingerprint, fingerprint, saved_form
from fetcher.domain.work_message import WorkMessage, WorkMessageError, parse_work_message
from fetcher.ports import DeadLetterWindow, DispatchOutbox

PAGE = 100
BATCH = 25
MAX_STAMP_DIGITS = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A letter, its place among those that lie there (from 1), and what its signature is worth."""

    letter: DeadLetter
    position: int
    job_id: JobId | None
    """As it says itself: of a letter that is not genuine anybody may have written it."""
    is_genuine: bool
    sent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which letters: of one reason, and so many; looked for among the first ``most_examined``."""

    reason: str | None = None
    limit: int | None = None
    most_examined: int | None = None
    listed: Sequence[Fingerprint] | None = None
    """These alone, each as often as it stands there."""

    def next_page(self, *, found: int, examined: int) -> int:
        """How many to take at once: no more than may be looked at, since each look costs."""
        bounds = [PAGE]
        if self.most_examined is not None:
            bounds.append(self.most_examined - examined)
        if self.limit is not None and self.reason is None and self.listed is None:
            bounds.append(self.limit - found)
        return min(bounds)

    def filter(self) -> Callable[["Examined"], bool]:
        """For one pass: it counts what it has let through."""
        left = Counter(self.listed)

        def is_chosen(each: Examined) -> bool:
            if self.reason not in (None, each.letter.reason):
                return False
            if self.listed is None:
                return True
            known_by = fingerprint(saved_form(each.letter))
            if left[known_by] == 0:
                return False
            left[known_by] -= 1
            return True

        return is_chosen


class Redriven(StrEnum):
    """What became of one letter. Only those of dispatched jobs are removed."""

    DISPATCHED = RedriveAnswer.DISPATCHED.value
    UNKNOWN = RedriveAnswer.UNKNOWN.value
    ENDED = RedriveAnswer.ENDED.value
    IN_HAND = RedriveAnswer.IN_HAND.value
    WAITS = RedriveAnswer.WAITS.value
    HELD_BACK = "held_back"
    """The breaker of one of its connections is open."""
    UNVERIFIED = "unverified"
    """Not ours, or not readable: it can be shown and purged."""
    UNREADABLE = RedriveAnswer.UNREADABLE.value


class DeadLetters:
    """One pass over the letters in hand, page by page: memory does not grow with their number."""

    def __init__(self, window: DeadLetterWindow, verifier: VerifyWork) -> None:
        self._window = window
        self._verifier = verifier
        self.examined = 0
        """So many were looked at."""
        self.is_cut_short = False
        """There are more, which the choice leaves alone although it has not found enough."""

    async def pages(self, choice: Choice) -> AsyncGenerator[list[Examined], None]:
        """The chosen ones. Raises PortUnavailable."""
        found, is_chosen = 0, choice.filter()
        while choice.limit is None or found < choice.limit:
            size = choice.next_page(found=found, examined=self.examined)
            if size <= 0:
                self.is_cut_short = self.examined < self._window.total
                return
            page = await self._window.next_page(limit=size)
            if not page:
                return
            examined = [
                self.examine(letter, position=self.examined + at)
                for at, letter in enumerate(page, 1)
            ]
            self.examined += len(page)
            chosen = [each for each in examined if is_chosen(each)]
            if choice.limit is not None:
                chosen = chosen[: choice.limit - found]
            found += len(chosen)
            yield chosen

    async def find(self, wanted: int | JobId) -> Examined | None:
        """The letter at a place, or the first one of a job."""
        choice = Choice(most_examined=wanted if isinstance(wanted, int) else None)
        async with aclosing(self.pages(choice)) as pages:
            async for page in pages:
                for each in page:
                    if wanted in (each.position, each.job_id):
                        return each
        return None

    async def purge(self, choice: Choice) -> int:
        """Throw the chosen ones away; how many. They are gone once the window was left, which
        counts them."""
        purged = 0
        async with aclosing(self.pages(choice)) as pages:
            async for page in pages:
                await self._window.remove([each.letter for each in page])
                purged += len(page)
        return purged

    async def redrive(
        self,
        choice: Choice,
        *,
        outbox: DispatchOutbox,
        held_back: HeldBackJobs,
        jobs_a_second: float,
        tell: Callable[[Examined, Redriven], None],
    ) -> None:
        """Dispatch the jobs of genuine letters anew, from their records.

        Raises PortError where the records or the letters are away; what was told of before that
        holds. A letter whose job was dispatched and that could not be removed does no harm.
        """
        round_ = _Round(outbox, held_back)
        next_at = trio.current_time()
        async with aclosing(self.pages(choice)) as pages, aclosing(batches(pages)) as parts:
            async for batch in parts:
                await trio.sleep_until(next_at)
                genuine = sum(each.is_genuine for each in batch)
                next_at = trio.current_time() + genuine / jobs_a_second
                results = list(zip(batch, await round_.results(batch), strict=True))
                await self._window.remove(
                    [each.letter for each, result in results if result is Redriven.DISPATCHED]
                )
                for each, result in results:
                    tell(each, result)

    def examine(self, letter: DeadLetter, *, position: int) -> Examined:
        verdict = self._verifier.verify(letter)
        return Examined(
            letter=letter,
            position=position,
            job_id=verdict.job_id if isinstance(verdict, WorkMessage) else _said_id(letter),
            is_genuine=isinstance(verdict, WorkMessage),
            sent_at=_sent_at(letter.headers.get(TIMESTAMP_HEADER)),
        )


async def batches(
    pages: AsyncGenerator[list[Examined], None],
) -> AsyncGenerator[list[Examined], None]:
    """What one write of the record store takes; the caller closes ``pages``."""
    async for page in pages:
        for start in range(0, len(page), BATCH):
            yield page[start : start + BATCH]


class _Round:
    """Some letters at once: one write of the record store."""

    def __init__(self, outbox: DispatchOutbox, held_back: HeldBackJobs) -> None:
        self._outbox = outbox
        self._held_back = held_back

    async def results(self, batch: Sequence[Examined]) -> list[Redriven]:
        genuine = [each.job_id for each in batch if each.is_genuine and each.job_id is not None]
        if not genuine:
            return [Redriven.UNVERIFIED] * len(batch)
        held_back = await self._held_back.among(genuine)
        free = [job_id for job_id in dict.fromkeys(genuine) if job_id not in held_back]
        answers = await self._outbox.redrive(free) if free else {}
        return [self._result(each, held_back, answers) for each in batch]

    @staticmethod
    def _result(
        each: Examined, held_back: frozenset[JobId], answers: Mapping[JobId, RedriveAnswer]
    ) -> Redriven:
        if not each.is_genuine or each.job_id is None:
            return Redriven.UNVERIFIED
        if each.job_id in held_back:
            return Redriven.HELD_BACK
        return Redriven(answers[each.job_id].value)


def _said_id(letter: DeadLetter) -> JobId | None:
    try:
        return parse_work_message(letter.body, letter.headers).job_id
    except WorkMessageError:
        return None


def _sent_at(stamp: object) -> datetime | None:
    if not isinstance(stamp, str) or not stamp.isascii() or not stamp.isdigit():
        return None
    if len(stamp) > MAX_STAMP_DIGITS:
        return None
    return datetime.fromtimestamp(int(stamp), UTC)
