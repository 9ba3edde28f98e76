"""Jobs in the order in which they ended, as they end (design section 8, the event stream)."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from fetcher.domain.ids import JobId
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import Job
from fetcher.ports import JobRecords

PAGE = 200
OVERLAP = timedelta(seconds=2)
"""How much is read again each time: a terminal write that was still under way when a later one
became visible lies before the place that was reached, and must not be passed over."""

REMEMBERED = 10_000


class EndedJobs:
    """One reader of the order (``completed_at``, id). It gives each job once."""

    def __init__(
        self, jobs: JobRecords, *, product_name: str | None, floor: EndedCursor | None
    ) -> None:
        self._jobs = jobs
        self._product_name = product_name
        self._floor = floor
        self._reached = floor
        self._given: OrderedDict[JobId, None] = OrderedDict()

    @classmethod
    def after(cls, jobs: JobRecords, place: EndedCursor, *, product_name: str | None) -> Self:
        """Strictly after a place that an earlier reader had reached; where the store's clock was
        set back meanwhile, what ended in its last minute may be given again."""
        reader = cls(jobs, product_name=product_name, floor=place)
        reader._given[place.job_id] = None
        return reader

    @classmethod
    async def from_now(cls, jobs: JobRecords, *, product_name: str | None) -> Self:
        """What becomes visible from now on."""
        latest = await jobs.latest_ended()
        floor = _earlier(latest) if latest is not None else None
        reader = cls(jobs, product_name=product_name, floor=floor)
        if latest is not None:
            reader._reached = latest
            while await reader.next():
                pass
        return reader

    async def next(self) -> Sequence[Job]:
        """Those that ended since the last call, at most one page; empty when there are none."""
        after = self._begin()
        while True:
            page = await self._jobs.list_ended(
                after=after, limit=PAGE, product_name=self._product_name
            )
            if after is not None and page and _place(cursor_of(page[0])) <= _place(after):
                # The store's clock was set back, and the store reads from its time on.
                self._floor, self._reached = cursor_of(page[0]), cursor_of(page[-1])
            fresh = [job for job in page if job.id not in self._given]
            for job in fresh:
                self._remember(job)
            if fresh or len(page) < PAGE:
                return fresh
            before, after = after, cursor_of(page[-1])
            if before is not None and _place(after) <= _place(before):
                return fresh

    def _begin(self) -> EndedCursor | None:
        """A little before the place reached, but never before the reader's own beginning."""
        if self._reached is None:
            return None
        earlier = _earlier(self._reached)
        if self._floor is not None and _place(earlier) < _place(self._floor):
            return self._floor
        return earlier

    def _remember(self, job: Job) -> None:
        place = cursor_of(job)
        if self._reached is None or _place(place) > _place(self._reached):
            self._reached = place
        self._given[job.id] = None
        if len(self._given) > REMEMBERED:
            self._given.popitem(last=False)


def cursor_of(job: Job) -> EndedCursor:
    """The place of an ended job. Raise ValueError for one that has not ended."""
    if job.completed_at is None:
        raise ValueError("the job has not ended")
    return EndedCursor(completed_at=job.completed_at, job_id=job.id)


def _earlier(place: EndedCursor) -> EndedCursor:
    return EndedCursor(completed_at=place.completed_at - OVERLAP, job_id=JobId(UUID(int=0)))


def _place(cursor: EndedCursor) -> tuple[datetime, int]:
    return (cursor.completed_at, cursor.job_id.int)
