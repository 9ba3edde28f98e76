"""Records: connections and jobs, and what of a job is claimed, dispatched and told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fetcher.domain.breakers import Breaker, BreakerChange, BreakerRule
from fetcher.domain.connections import (
    Connection,
    ConnectionName,
    ConnectionPage,
    ConnectionQuery,
    UpdateAnswer,
)
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.job_store import (
    ActiveJobs,
    CancelAnswer,
    Claimed,
    ClaimRefusal,
    DispatchBacklog,
    DispatchClaim,
    EndedCursor,
    EventBacklog,
    EventClaim,
    FinishAnswer,
    JobPage,
    JobQuery,
    Lease,
    LeaseState,
    PendingCounts,
    RedriveAnswer,
)
from fetcher.domain.jobs import EventMark, Job, Progress, TerminalOutcome
from fetcher.domain.reference_events import ReferenceRecord
from fetcher.domain.result_keys import LATE_WRITE_SECONDS
from fetcher.ports.audit import AuditTrail
from fetcher.ports.operations import JobStatistics
from fetcher.ports.retention import JobRetention


class ConnectionRecords(Protocol):
    """Connections. A deleted one is invisible to every method."""

    async def insert(self, connection: Connection) -> None:
        """Raise DuplicateConfigName when a live connection has the name (decided by the store)."""

    async def get(self, connection_id: ConnectionId) -> Connection | None: ...

    async def find_by_config_names(self, names: Sequence[str]) -> list[Connection]:
        """Those that exist, sorted by config name; one query however many names."""
        ...

    async def list_page(self, query: ConnectionQuery) -> ConnectionPage:
        """Sorted by ``created_at``, then id; ``total`` counts all pages."""
        ...

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        """Write all but id, product, ``created_at`` and ``deleted_at``.

        Only where the record is live and as it was read (:meth:`Connection.is_as_read`); the new
        ``updated_at`` must be later than that of ``before``, or two changes within one millisecond
        could not be told apart. Raise DuplicateConfigName when another live connection has the new
        name.
        """
        ...

    async def assign(
        self, connection_id: ConnectionId, *, product_name: str, at: datetime
    ) -> Connection | None:
        """Give a live connection without a product its product, in one conditional write.

        None: it has one already, or is not there. ``at`` becomes ``updated_at``.
        """
        ...

    async def delete(self, connection_id: ConnectionId, *, at: datetime) -> bool:
        """Soft delete: ``deleted_at`` and ``updated_at``. False: not there, or deleted before."""
        ...


class SealedCredentials(Protocol):
    """Passwords and TLS keys of live connections, for who seals them anew."""

    async def list_names(self) -> Sequence[ConnectionName]:
        """Of every live record, also one that cannot be read; by id."""
        ...

    async def reseal(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        """Write password, key version and TLS key, and nothing else; ``updated_at`` stays, since to
        everybody else nothing has changed. Guarded as :meth:`ConnectionRecords.update`."""
        ...


class ConnectionBreakers(Protocol):
    """One record for each connection that failed lately, whatever process met it (decision 032).

    A record to which nothing was written for a day is none.
    """

    async def find(self, connection_ids: Sequence[ConnectionId]) -> Mapping[ConnectionId, Breaker]:
        """Those that have a record; one query however many ids."""
        ...

    async def change(self, connection_id: ConnectionId, rule: BreakerRule) -> BreakerChange:
        """Let the rule judge the record and write what it says, in one atomic step."""
        ...

    async def count_open(self) -> int: ...

    async def list_open(self, *, limit: int) -> Sequence[Breaker]:
        """Connections that are left alone now, those whose trouble began last first."""
        ...


class InternalSources(Protocol):
    """The data sources of :data:`fetcher.domain.internal_sources.INTERNAL_SOURCES` that the
    operator has configured, or the tenant has elsewhere on the platform."""

    async def find(self, config_name: str) -> Connection:
        """An internal connection. Raise InternalSourceMissing for a name without one."""
        ...


class JobRecords(Protocol):
    """Jobs as records: created, read, listed, asked to stop."""

    async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
        """Store a pending job. So long nobody else is given it by ``DispatchOutbox.claim_due``.

        Raise DuplicateActiveJob when an active one has its hash, DuplicateIdempotencyKey when any
        job has its key.
        """

    async def get(self, job_id: JobId) -> Job | None: ...

    async def list_page(self, query: JobQuery) -> JobPage:
        """Sorted by ``created_at``, then id; pages neither repeat nor lose a job."""
        ...

    async def find_by_idempotency_key(self, key: str) -> Job | None: ...

    async def give_idempotency_key(self, job_id: JobId, key: str) -> bool:
        """The job holds this key from now on, beside those that it has; also true where it does
        already.

        False: it holds :data:`fetcher.domain.job_store.MOST_IDEMPOTENCY_KEYS`, or is not there.
        Raise DuplicateIdempotencyKey when another job has the key.
        """
        ...

    async def forget_idempotency_key(self, job_id: JobId, key: str) -> None:
        """Take an expired key from the job that holds it; no error where it does not."""

    async def is_in_use(self, config_name: str) -> bool:
        """Whether an active job reads from this connection. Parked ones (pending with a
        ``waiting_reason``) do not count (design section 4)."""
        ...

    async def pending_counts(self, *, product_name: str) -> PendingCounts:
        """Counted up to 100 000 at most."""
        ...

    async def mark_result_deleted(self, job_id: JobId, *, at: datetime) -> bool:
        """Note that a completed job's object is gone; False: no such job, or noted before."""
        ...

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        """The most recent job with this hash that was created within the window."""
        ...

    async def find_active_by_hash(self, request_hash: str) -> Job | None: ...

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        """Terminal jobs by (``completed_at``, id), strictly after the cursor.

        Without those that ended further ahead of the store's clock than AHEAD_SECONDS; and from a
        minute ago on after a cursor that lies ahead of it: the clock was set back.
        """
        ...

    async def latest_ended(self) -> EndedCursor | None:
        """The last place in the order of :meth:`list_ended`, None where no job has ended."""
        ...

    async def latest_failed(self, *, limit: int) -> list[Job]:
        """Failed jobs, the one that ended last first. One that cannot be read takes no place."""
        ...

    async def request_cancel(self, job_id: JobId, mark: EventMark) -> CancelAnswer:
        """Pending: cancelled at once, with the event mark. Processing: noted for its owner."""
        ...


class DispatchOutbox(Protocol):
    """The job record as the outbox of work messages (design section 4, step 2)."""

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[DispatchClaim]:
        """Pending jobs, due, not dispatched, under no dispatch lease; oldest first.

        Fewer than ``limit`` means that there are no more: those that cannot be read are put aside
        by the store and take nobody's place.
        """
        ...

    async def mark_dispatched(self, dispatched: Mapping[JobId, int]) -> int:
        """Each guarded by ``{status: pending, dispatch_seq}``, the values of ``dispatched``.

        How many were marked: the records of the others have moved on.
        """
        ...

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog: ...

    async def active_jobs(self) -> ActiveJobs:
        """What an operator watches, by the store's clock."""
        ...

    async def dispatch_again(self, *, older_than_seconds: float, limit: int) -> int:
        """Stale dispatched jobs become undispatched (``dispatch_seq + 1``); how many."""
        ...

    async def wake_parked(self, config_name: str, *, told: int) -> list[JobId]:
        """All parked jobs that read from the connection are due now; ``told`` of them at most.

        They keep their ``waiting_reason`` until they are claimed: so long nothing reads from it.
        """
        ...

    async def redrive(self, job_ids: Sequence[JobId]) -> Mapping[JobId, RedriveAnswer]:
        """Jobs that are pending and due, or whose lease ran out, become undispatched, whatever they
        were: pending, due now, ``dispatch_seq + 1``, takeovers forgotten, attempts kept."""
        ...


class JobLeases(Protocol):
    """Who works on a job. Every write is a compare-and-set on the token (design section 4)."""

    async def claim(
        self, job_id: JobId, *, owner: str, lease_seconds: float, token: bytes | None = None
    ) -> Claimed | ClaimRefusal:
        """``pending`` and due, or ``processing`` with a lease that ran out, becomes ours.

        ``token`` is the caller's (16 random bytes; without one the store makes one), the same for
        all tries of one claim: what an earlier try took without an answer is found and renewed.

        A job that was asked to stop, or has used up its takeovers (3), is left to the reaper
        (``NOT_DUE``). Claiming an expired lease counts as a takeover.
        """
        ...

    async def renew(self, lease: Lease, *, lease_seconds: float) -> bool:
        """False: the lease is lost (another token, or terminal)."""
        ...

    async def check(self, leases: Sequence[Lease]) -> Mapping[JobId, LeaseState]:
        """The state of each lease, in one query."""
        ...

    async def finish(self, lease: Lease, outcome: TerminalOutcome) -> FinishAnswer:
        """The terminal state, the result's facts and the pending event in one write.

        Idempotent: a second call with the same token answers WRITTEN. ``completed`` and ``failed``
        are refused with CANCEL_REQUESTED when the job was asked to stop.
        """
        ...

    async def release(self, lease: Lease) -> bool:
        """Back to pending in one write: no token, due now, to be dispatched anew."""
        ...

    async def park(self, lease: Lease, *, until: datetime, reason: str) -> bool:
        """As :meth:`release`, but due at ``until``, with ``reason`` as ``waiting_reason``.

        A job that was asked to stop is not parked: it is left to the reaper, as by release.
        """
        ...

    async def note_progress(self, lease: Lease, progress: Progress) -> bool:
        """What has been read so far replaces what was noted; False: the lease is lost."""
        ...


class ExpiredLeases(Protocol):
    """What the reaper does with jobs whose owner is gone."""

    async def find_expired(self, *, limit: int) -> list[Job]:
        """``processing`` with a lease that ran out, oldest first.

        A ``processing`` record without a lease (a worker of the reference) gets one that runs out
        10 minutes from our first sight of it.
        """
        ...

    async def requeue(self, job: Job) -> bool:
        """Back to pending with ``takeovers + 1``; False when the lease was renewed or has moved."""
        ...

    async def finish(self, job: Job, outcome: TerminalOutcome) -> bool:
        """End the job if its lease is still the expired one."""
        ...

    async def push_back(self, job: Job, *, seconds: float) -> None:
        """Keep a job that cannot be dealt with out of :meth:`find_expired` for so long, unless its
        lease has moved. Those that cannot even be read are pushed back by the store itself."""


class EventOutbox(Protocol):
    """The job record as the outbox of terminal events (design section 4, steps 6 and 7)."""

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[EventClaim]:
        """Pending events that are due and under no event lease; oldest first."""
        ...

    async def mark_published(self, job_id: JobId) -> None:
        """Clear the mark; idempotent."""

    async def postpone(self, job_id: JobId, *, retry_in_seconds: float, error_code: str) -> None:
        """Note a failed try: due again later, ``event_attempts + 1``, lease dropped."""

    async def backlog(self) -> EventBacklog: ...


class ReferenceOutbox(Protocol):
    """Events that the reference left in its outbox collection. Nothing is ever added to it.

    Each record is taken by one process; a claim that was not ended is void after ten minutes.
    """

    async def claim_due(self, *, limit: int) -> list[ReferenceRecord]:
        """Claimed ten minutes ago or more, failed five minutes ago or more, pending, or given up
        after too many attempts; in this order, the oldest first."""
        ...

    async def mark_published(self, record: ReferenceRecord) -> None:
        """No effect where another process has taken the record since; so for the others."""

    async def postpone(self, record: ReferenceRecord, *, problem: str) -> None:
        """Due again in five minutes. ``problem`` is fixed text."""

    async def refuse(self, record: ReferenceRecord, *, problem: str) -> None:
        """Never due again: it can never be sent."""


class ObjectCleanup(Protocol):
    """Objects of lost attempts that are to be deleted (decisions 034 and 038)."""

    async def note(
        self, job_id: JobId, keys: Sequence[str], *, late_seconds: float = LATE_WRITE_SECONDS
    ) -> None:
        """Due at once, and once more after ``late_seconds``: what is written without an answer may
        come to be after the first deletion. Never the key of an attempt that may still win."""

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]: ...

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        """These were deleted: the note ends, or is due again at its second time.

        What was noted since they were found stays due.
        """

    async def push_back(self, job_id: JobId, *, seconds: float) -> None:
        """What could not be deleted is due again after so long: others come first until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStore:
    """The ports of one record store, opened together."""

    connections: ConnectionRecords
    credentials: SealedCredentials
    breakers: ConnectionBreakers
    jobs: JobRecords
    dispatch: DispatchOutbox
    leases: JobLeases
    expired: ExpiredLeases
    events: EventOutbox
    cleanup: ObjectCleanup
    retention: JobRetention
    audit: AuditTrail
    statistics: JobStatistics
    reference_events: ReferenceOutbox | None = None
    """None where the store is none that the reference could have written to."""
