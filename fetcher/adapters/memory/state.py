"""What the memory store holds, and its clock."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from fetcher.domain.audit import AuditEntry
from fetcher.domain.breakers import Breaker
from fetcher.domain.connections import Connection
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.job_store import AHEAD_SECONDS
from fetcher.domain.jobs import EventMark, Job, JobStatus, TerminalOutcome
from fetcher.domain.times import cut_to_milliseconds

MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True)
class PendingEvent:
    """A terminal event that nobody has published yet."""

    mark: EventMark
    due_at: datetime
    attempts: int = 0
    lease_until: datetime | None = None
    last_error: str | None = None


@dataclass(slots=True)
class JobEntry:
    """A job with the bookkeeping that a :class:`Job` does not show."""

    job: Job
    dispatch_lease_until: datetime | None = None
    event: PendingEvent | None = None
    left_keys: tuple[str, ...] = ()
    more_idempotency_keys: set[str] = field(default_factory=set)
    cleanup_due: datetime | None = None
    cleanup_until: datetime | None = None


@dataclass(slots=True)
class MemoryState:
    """All records. Methods are plain functions: nothing comes between a look and a write."""

    clock: Callable[[], datetime]
    connections: dict[ConnectionId, Connection] = field(default_factory=dict)
    breakers: dict[ConnectionId, Breaker] = field(default_factory=dict)
    jobs: dict[JobId, JobEntry] = field(default_factory=dict)
    audit: dict[UUID, AuditEntry] = field(default_factory=dict)
    _last_end: datetime | None = None

    def now(self) -> datetime:
        return cut_to_milliseconds(self.clock())

    def chosen(self, job_ids: Sequence[JobId] | None) -> Iterator[JobEntry]:
        """The named jobs that exist, or all."""
        if job_ids is None:
            yield from self.jobs.values()
            return
        for job_id in set(job_ids):
            if job_id in self.jobs:
                yield self.jobs[job_id]

    def with_status(self, status: JobStatus) -> Iterator[JobEntry]:
        return (entry for entry in self.jobs.values() if entry.job.status is status)

    def next_end(self) -> datetime:
        """The ``completed_at`` of a terminal write: later than every one before it, but for those
        of a clock that was far ahead."""
        now = self.now()
        if self._last_end is not None and self._last_end <= after(now, AHEAD_SECONDS):
            now = max(now, self._last_end + MILLISECOND)
        self._last_end = now
        return now

    def end(self, entry: JobEntry, ended: Job, outcome: TerminalOutcome) -> None:
        """Put the terminal state and its event, which is due at once."""
        entry.job = ended
        entry.event = PendingEvent(mark=outcome.event, due_at=self.now())


def after(start: datetime, seconds: float) -> datetime:
    return cut_to_milliseconds(start + timedelta(seconds=seconds))


def is_due(time: datetime | None, now: datetime) -> bool:
    """A time that is not set has no say."""
    return time is None or time <= now
