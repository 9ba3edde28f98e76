"""What record stores are asked of jobs, and what they answer: leases, outboxes, lists, counts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from fetcher.domain.ids import JobId
from fetcher.domain.jobs import EventMark, Job, JobStatus
from fetcher.domain.trace_context import TraceContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The fencing token of one attempt: whoever cannot show it writes nothing."""

    job_id: JobId
    token: bytes = field(repr=False)
    attempt: int
    claimed: Job | None = field(default=None, repr=False, compare=False)
    """The record as the claim left it, where the store spares itself to read it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    job: Job
    lease: Lease


class ClaimRefusal(StrEnum):
    """Why a job could not be claimed."""

    UNKNOWN = "unknown"
    ENDED = "ended"
    LEASED = "leased"
    NOT_DUE = "not_due"
    """It waits (parked, or due for the reaper): the record will be dispatched again."""


class LeaseState(StrEnum):
    HELD = "held"
    CANCEL_REQUESTED = "cancel_requested"
    LOST = "lost"


class FinishAnswer(StrEnum):
    """What a terminal write found (design section 4, step 6)."""

    WRITTEN = "written"
    """Ours: now, or by an earlier try whose answer was lost."""
    CANCEL_REQUESTED = "cancel_requested"
    """Refused: the job was asked to stop first. Finish it as cancelled."""
    SUPERSEDED = "superseded"
    """Another attempt owns or ended the job: delete our object, write nothing."""


class CancelAnswer(StrEnum):
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    """Ended at once (it was pending), or it was cancelled already."""
    REQUESTED = "requested"
    ENDED = "ended"
    """Completed or failed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchClaim:
    """The right to publish one job's work message for some seconds."""

    job: Job
    dispatch_seq: int


class RedriveAnswer(StrEnum):
    """What became of the wish to dispatch a job anew."""

    DISPATCHED = "dispatched"
    """It is pending and due: the dispatcher's next sweep takes it."""
    UNKNOWN = "unknown"
    UNREADABLE = "unreadable"
    """Its record cannot be read."""
    ENDED = "ended"
    IN_HAND = "in_hand"
    """Somebody works on it under a lease that holds."""
    WAITS = "waits"
    """It is not due yet, or was asked to stop and is the reaper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchBacklog:
    """Pending jobs that were dispatched: all, and those older than the asked age."""

    dispatched: int
    stale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveJobs:
    """Jobs that have not ended, by where they are; each count stops at :data:`MOST_COUNTED`.

    ``oldest_undispatched_seconds``: since the job was created, or due again; 0 where there is none.
    ``oldest_dispatched_seconds``: since its message was sent and nobody has claimed it.
    """

    undispatched: int
    dispatched: int
    parked: int
    """Pending and not due yet: they wait for their connection's breaker."""
    processing: int
    oldest_undispatched_seconds: float
    oldest_dispatched_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventClaim:
    """The right to publish one job's terminal event for some seconds."""

    job_id: JobId
    mark: EventMark
    attempts: int
    trace: TraceContext | None = None
    """The job's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBacklog:
    pending: int
    oldest_seconds: float
    """Age of the oldest pending event, 0 where there is none."""
    unroutable: int = 0
    """Those whose last try found no queue. Both counts stop at :data:`MOST_COUNTED`."""


AHEAD_SECONDS: Final = 3.0
"""How far ahead of the store's clock an end may lie. What lies further was written while that clock
was wrong, and has no place in the order of ended jobs before its time comes."""
_CURSOR_AHEAD: Final = timedelta(seconds=1)
_LOOK_BACK: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCursor:
    """Place in the order of ended jobs: ``completed_at``, then id."""

    completed_at: datetime
    job_id: JobId


def place_to_read_from(after: EndedCursor | None, now: datetime) -> EndedCursor | None:
    """The cursor, or a minute before ``now`` for one that lies ahead of it: the store's clock was
    set back since, and what ends from then on stands before that cursor."""
    if after is None or after.completed_at <= now + _CURSOR_AHEAD:
        return after
    return EndedCursor(completed_at=now - _LOOK_BACK, job_id=after.job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCursor:
    """Place in the list of jobs: ``created_at``, then id."""

    created_at: datetime
    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """One page of jobs: newest first unless ``ascending``, strictly after the cursor."""

    statuses: frozenset[JobStatus] = frozenset()
    """Empty: all."""
    product_name: str | None = None
    config_name: str | None = None
    """Jobs that read from this connection."""
    created_from: datetime | None = None
    created_until: datetime | None = None
    """Half-open: records of exactly this instant are left out."""
    ascending: bool = False
    after: JobCursor | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    items: tuple[Job, ...]
    next: JobCursor | None
    """Where the next page begins, None after the last one."""


MOST_IDEMPOTENCY_KEYS: Final = 20
"""How many one job may hold: each caller who asks for the same in one window brings its own."""

MOST_COUNTED: Final = 100_000
"""Where counts of jobs and of their events stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCounts:
    """Jobs that wait for a worker: all, and those of the asked product."""

    total: int
    of_product: int
