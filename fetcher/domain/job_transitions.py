"""How a job's record may change: the pure rules of design section 4, for stores that read, judge
and write in one transaction.

``now`` is the store's clock. A lease has run out when ``lease_until <= now``.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from fetcher.domain.job_store import ClaimRefusal, FinishAnswer, Lease, RedriveAnswer
from fetcher.domain.jobs import AttemptRecord, Job, JobStatus, TerminalOutcome

FIRST_SIGHT_SECONDS: Final = 600.0
"""How long a ``processing`` record without a lease may go on after we first saw it."""

UNREADABLE_SECONDS: Final = 60.0
"""For how long a record that cannot be read makes way for others in what searches for due ones."""

MAX_TAKEOVERS: Final = 3
MAX_ATTEMPTS_KEPT: Final = 20

DUE_GRACE: Final = timedelta(seconds=1)
"""Who dispatched a job saw it due: one whose clock is a little behind must not refuse it."""

CODE_RELEASED: Final = "released"
CODE_PARKED: Final = "parked"
CODE_LEASE_RAN_OUT: Final = "lease_ran_out"
"""Codes in the history of attempts, beside those of failures."""


def lease_ran_out(job: Job, now: datetime) -> bool:
    """Whether the job is for the reaper, or for another worker to take over."""
    return (
        job.status is JobStatus.PROCESSING
        and job.lease_until is not None
        and job.lease_until <= now
    )


def holds(job: Job, token: bytes | None) -> bool:
    """Whether the token is the one under which the job is being worked on."""
    return job.status is JobStatus.PROCESSING and job.lease_token == token


def claimed(
    job: Job, *, owner: str, token: bytes, now: datetime, lease_until: datetime
) -> Job | ClaimRefusal:
    """``pending`` and due, or ``processing`` with a lease that ran out: the next attempt.

    Under our own token it is the attempt that an earlier try took without hearing of it.
    """
    if not job.status.is_active:
        return ClaimRefusal.ENDED
    if holds(job, token) and not lease_ran_out(job, now):
        return replace(job, lease_until=lease_until)
    taken_over = lease_ran_out(job, now)
    if job.status is JobStatus.PROCESSING and not taken_over:
        return ClaimRefusal.LEASED
    used_up = taken_over and job.takeovers >= MAX_TAKEOVERS
    # Once dispatched it has been due: a clock that was turned back since must not have its message
    # acknowledged, since nothing would send another one soon.
    is_early = job.due_at is not None and job.due_at > now + DUE_GRACE
    waits = is_early and job.dispatched_at is None
    if job.cancel_requested is not None or used_up or waits:
        return ClaimRefusal.NOT_DUE
    if taken_over:
        job = _attempt_ended(job, now, CODE_LEASE_RAN_OUT)
    attempt = AttemptRecord(attempt=job.attempt + 1, owner=owner, started_at=now)
    return replace(
        job,
        status=JobStatus.PROCESSING,
        attempt=attempt.attempt,
        takeovers=job.takeovers + taken_over,
        lease_owner=owner,
        lease_token=token,
        lease_until=lease_until,
        started_at=job.started_at or now,
        due_at=None,
        waiting_reason=None,
        attempts=(*job.attempts, attempt)[-MAX_ATTEMPTS_KEPT:],
        progress={},
    )


def took_over(job: Job) -> bool:
    """Whether the claim that made this attempt ended one whose lease had run out."""
    if len(job.attempts) < 2:
        return False
    before, current = job.attempts[-2:]
    return before.code == CODE_LEASE_RAN_OUT and before.ended_at == current.started_at


def released(job: Job, now: datetime) -> Job:
    """The owner lets go: back to pending, due now, to be dispatched anew.

    A job that was asked to stop never becomes pending again, since nothing ends a pending job
    later on: its lease runs out at once instead, and the reaper ends it as cancelled.
    """
    if job.cancel_requested is not None:
        return replace(job, lease_until=now)
    return _pending_again(_attempt_ended(job, now, CODE_RELEASED), now)


def parked(job: Job, now: datetime, *, until: datetime, reason: str) -> Job:
    """The owner lets go for a while: back to pending, to be dispatched anew at ``until``."""
    if job.cancel_requested is not None:
        return released(job, now)
    job = _pending_again(_attempt_ended(job, now, CODE_PARKED), now)
    return replace(job, due_at=until, waiting_reason=reason)


def requeued(job: Job, now: datetime) -> Job:
    """The reaper takes the job back from an owner that is gone."""
    job = _attempt_ended(job, now, CODE_LEASE_RAN_OUT)
    return replace(_pending_again(job, now), takeovers=job.takeovers + 1)


def redriven(job: Job, now: datetime) -> Job | RedriveAnswer:
    """An operator has mended what the job failed at: to be dispatched anew, by its record."""
    if not job.status.is_active:
        return RedriveAnswer.ENDED
    if job.status is JobStatus.PROCESSING:
        if not lease_ran_out(job, now):
            return RedriveAnswer.IN_HAND
        job = _attempt_ended(job, now, CODE_LEASE_RAN_OUT)
    if job.cancel_requested is not None or (job.due_at is not None and job.due_at > now):
        return RedriveAnswer.WAITS
    return replace(_pending_again(job, now), takeovers=0)


def judge_finish(job: Job | None, lease: Lease, outcome: TerminalOutcome) -> FinishAnswer | None:
    """What a terminal write by this lease finds; None: it is to be written now."""
    if job is None or job.lease_token != lease.token:
        return FinishAnswer.SUPERSEDED
    if not job.status.is_active:
        return FinishAnswer.WRITTEN
    if job.cancel_requested is not None and outcome.status is not JobStatus.CANCELLED:
        return FinishAnswer.CANCEL_REQUESTED
    return None


def ended(job: Job, outcome: TerminalOutcome, *, completed_at: datetime) -> Job:
    """The terminal state. The token stays, so that a repeated write finds itself."""
    code = outcome.failure.code if outcome.failure else None
    if job.status is JobStatus.PROCESSING:
        job = _attempt_ended(job, completed_at, code)
    return replace(
        job,
        status=outcome.status,
        completed_at=completed_at,
        result=outcome.result,
        failure=outcome.failure,
        progress=outcome.progress or job.progress,
        lease_until=None,
        event_pending=True,
    )


def ended_without_owner(job: Job, outcome: TerminalOutcome, *, completed_at: datetime) -> Job:
    """The terminal state by the reaper: without the token, so that a late owner is superseded."""
    return replace(ended(job, outcome, completed_at=completed_at), lease_token=None)


def may_end_expired(job: Job, seen: Job, outcome: TerminalOutcome, now: datetime) -> bool:
    """Whether the reaper may write what it decided upon ``seen``."""
    asked_since = job.cancel_requested is not None and outcome.status is not JobStatus.CANCELLED
    return holds(job, seen.lease_token) and lease_ran_out(job, now) and not asked_since


def may_requeue(job: Job, seen: Job, now: datetime) -> bool:
    """Whether the reaper may take the job back that it saw."""
    asked = job.cancel_requested is not None
    return holds(job, seen.lease_token) and lease_ran_out(job, now) and not asked


def _pending_again(job: Job, now: datetime) -> Job:
    return replace(
        job,
        status=JobStatus.PENDING,
        lease_owner=None,
        lease_token=None,
        lease_until=None,
        due_at=now,
        dispatched_at=None,
        dispatch_seq=job.dispatch_seq + 1,
    )


def _attempt_ended(job: Job, now: datetime, code: str | None) -> Job:
    """Close the running attempt's line; the history of a foreign worker has none."""
    if not job.attempts or job.attempts[-1].ended_at is not None:
        return job
    return replace(
        job, attempts=(*job.attempts[:-1], replace(job.attempts[-1], ended_at=now, code=code))
    )
