"""Bodies of the operators' routes: bounded lists, no secrets, nothing of a row."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field

from fetcher.api.models.connections import Answer, Id, Timestamp
from fetcher.api.models.job_parts import FailureAnswer, shown_time
from fetcher.domain.breakers import Breaker
from fetcher.domain.job_store import MOST_COUNTED, ActiveJobs, EventBacklog
from fetcher.domain.jobs import Job, JobStatus
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import ActorState, KnownDependency, ProbedMinute, ProcessFacts, QueueDepth
from fetcher.queries.activity import ActivityMinute

Count = Annotated[int, Field(ge=0)]


class ProcessAnswer(Answer):
    """Which process tells of itself: another one behind the same address has other facts."""

    host: str
    pid: int
    role: str
    version: str
    started_at: Timestamp

    @classmethod
    def of(cls, facts: ProcessFacts) -> Self:
        return cls(
            host=facts.host,
            pid=facts.pid,
            role=facts.role,
            version=facts.version,
            started_at=rfc3339(facts.started_at),
        )


class ProbedMinuteAnswer(Answer):
    minute: Timestamp
    probes: Count
    failures: Count
    slowest_ms: Count
    error: str | None = None

    @classmethod
    def of(cls, minute: ProbedMinute) -> Self:
        return cls(
            minute=rfc3339(minute.minute),
            probes=minute.probes,
            failures=minute.failures,
            slowest_ms=minute.slowest_ms,
            error=minute.error,
        )


class DependencyAnswer(Answer):
    """``history``: the minutes of the last hour in which it was probed, the oldest first."""

    name: str
    status: str
    optional: bool
    probed_at: Timestamp
    latency_ms: Count
    tls: bool | None = None
    error: str | None = None
    reason: str | None = None
    breaker_state: str | None = None
    history: list[ProbedMinuteAnswer]

    @classmethod
    def of(cls, known: KnownDependency, *, optional: bool) -> Self:
        last = known.last
        return cls(
            name=known.name,
            status=str(last.status),
            optional=optional,
            probed_at=rfc3339(known.probed_at),
            latency_ms=last.latency_ms,
            tls=last.tls,
            error=last.error or None,
            reason=last.reason or None,
            breaker_state=last.breaker_state or None,
            history=[ProbedMinuteAnswer.of(minute) for minute in known.minutes],
        )


class DependenciesAnswer(Answer):
    process: ProcessAnswer
    draining: bool
    dependencies: list[DependencyAnswer]


class QueueAnswer(Answer):
    """Without ``ready`` the queue is not there."""

    name: str
    purpose: str
    ready: Count | None = None
    consumers: Count | None = None

    @classmethod
    def of(cls, depth: QueueDepth) -> Self:
        return cls(
            name=depth.name, purpose=depth.purpose, ready=depth.ready, consumers=depth.consumers
        )


class QueuesAnswer(Answer):
    queues: list[QueueAnswer]


class OutboxAnswer(Answer):
    """What waits to be published: events, and work messages of pending jobs."""

    pending_events: Count
    oldest_event_seconds: float
    undispatched_jobs: Count
    oldest_undispatched_seconds: float
    dispatched_jobs: Count
    """Their message lies in the queue."""
    oldest_dispatched_seconds: float

    @classmethod
    def of(cls, events: EventBacklog, active: ActiveJobs) -> Self:
        return cls(
            pending_events=events.pending,
            oldest_event_seconds=events.oldest_seconds,
            undispatched_jobs=active.undispatched,
            oldest_undispatched_seconds=active.oldest_undispatched_seconds,
            dispatched_jobs=active.dispatched,
            oldest_dispatched_seconds=active.oldest_dispatched_seconds,
        )


class JobCountsAnswer(Answer):
    """Each stops at ``counted_up_to``. Of the pending ones, ``parked`` wait for a connection."""

    pending: Count
    processing: Count
    completed: Count
    failed: Count
    cancelled: Count
    parked: Count
    counted_up_to: int

    @classmethod
    def of(cls, by_status: Mapping[JobStatus, int], *, parked: int) -> Self:
        counts = {status.value: by_status[status] for status in JobStatus}
        return cls(**counts, parked=parked, counted_up_to=MOST_COUNTED)


class OperatedJobAnswer(Answer):
    """A job as an operator looks at it: who works on it, or what it waits for."""

    id: Id
    status: str
    source: str | None = None
    connections: list[str]
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    dispatched_at: Timestamp | None = None
    due_at: Timestamp | None = None
    waiting_reason: str | None = None
    cancel_requested_at: Timestamp | None = None
    owner: str | None = None
    lease_until: Timestamp | None = None
    attempt: Count
    takeovers: Count
    rows: Count
    bytes: Count
    error: FailureAnswer | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        read = [progress for tables in job.progress.values() for progress in tables.values()]
        is_waiting = job.status is JobStatus.PENDING
        return cls(
            id=str(job.id),
            status=str(job.status),
            source=job.product_name or None,
            connections=sorted(job.mapped_fields),
            created_at=rfc3339(job.created_at),
            started_at=shown_time(job.started_at),
            completed_at=shown_time(None if job.status.is_active else job.completed_at),
            dispatched_at=shown_time(job.dispatched_at),
            due_at=shown_time(job.due_at if is_waiting else None),
            waiting_reason=job.waiting_reason if is_waiting else None,
            cancel_requested_at=shown_time(job.cancel_requested),
            owner=job.lease_owner,
            lease_until=shown_time(job.lease_until),
            attempt=job.attempt,
            takeovers=job.takeovers,
            rows=sum(each.rows for each in read),
            bytes=sum(each.bytes for each in read),
            error=FailureAnswer.of(job.failure) if job.failure is not None else None,
        )


class JobsAnswer(Answer):
    """The oldest jobs that run and wait; of the failed ones those that ended last, latest first."""

    counts: JobCountsAnswer
    running: list[OperatedJobAnswer]
    waiting: list[OperatedJobAnswer]
    failed: list[OperatedJobAnswer]


class AdapterBreakerAnswer(Answer):
    name: str
    state: str


class ConnectionBreakerAnswer(Answer):
    connection_id: Id
    config_name: str
    stage: str
    reason: str
    failures: Count
    openings: Count
    changed_at: Timestamp
    retry_at: Timestamp | None = None

    @classmethod
    def of(cls, breaker: Breaker) -> Self:
        return cls(
            connection_id=str(breaker.connection_id),
            config_name=breaker.config_name,
            stage=breaker.down.stage,
            reason=breaker.down.reason,
            failures=breaker.failures,
            openings=breaker.openings,
            changed_at=rfc3339(breaker.changed_at),
            retry_at=shown_time(breaker.retry_at),
        )


class BreakersAnswer(Answer):
    """``adapters`` are those of this process; ``connections`` are everybody's, and open."""

    process: ProcessAnswer
    adapters: list[AdapterBreakerAnswer]
    connections: list[ConnectionBreakerAnswer]
    open_connections: Count


class ActorAnswer(Answer):
    name: str
    state: str
    restarts: Count
    last_crash: str | None = None
    last_crash_at: Timestamp | None = None

    @classmethod
    def of(cls, actor: ActorState) -> Self:
        return cls(
            name=actor.name,
            state=actor.state,
            restarts=actor.restarts,
            last_crash=actor.last_crash,
            last_crash_at=shown_time(actor.last_crash_at),
        )


class ActorsAnswer(Answer):
    process: ProcessAnswer
    actors: list[ActorAnswer]


class ActivityMinuteAnswer(Answer):
    """Durations are from the first claim to the end, of all jobs that a worker had begun."""

    minute: Timestamp
    completed: Count
    failed: Count
    cancelled: Count
    average_seconds: float | None = None
    longest_seconds: float | None = None

    @classmethod
    def of(cls, minute: ActivityMinute) -> Self:
        return cls(
            minute=rfc3339(minute.minute),
            completed=minute.jobs[JobStatus.COMPLETED],
            failed=minute.jobs[JobStatus.FAILED],
            cancelled=minute.jobs[JobStatus.CANCELLED],
            average_seconds=minute.average_seconds,
            longest_seconds=minute.longest_seconds,
        )


class ActivityAnswer(Answer):
    """Jobs that ended, of everybody, minute by minute; the last minute is still going on."""

    minutes: list[ActivityMinuteAnswer]
