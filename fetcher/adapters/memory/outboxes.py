"""What waits to be done for a job, in memory: its message, its event, its left objects."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime

import trio

from fetcher.adapters.memory.state import JobEntry, MemoryState, PendingEvent, after, is_due
from fetcher.domain import job_transitions as transitions
from fetcher.domain.errors import Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    ActiveJobs,
    DispatchBacklog,
    DispatchClaim,
    EventBacklog,
    EventClaim,
    RedriveAnswer,
)
from fetcher.domain.jobs import JobStatus
from fetcher.domain.result_keys import LATE_WRITE_SECONDS


class MemoryDispatch:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[DispatchClaim]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        found = sorted(
            (
                entry
                for entry in self._state.chosen(job_ids)
                if entry.job.status is JobStatus.PENDING
                and entry.job.dispatched_at is None
                and is_due(entry.job.due_at, now)
                and is_due(entry.dispatch_lease_until, now)
            ),
            key=lambda entry: (entry.job.created_at, entry.job.id),
        )[:limit]
        for entry in found:
            entry.dispatch_lease_until = after(now, lease_seconds)
        return [
            DispatchClaim(job=deepcopy(entry.job), dispatch_seq=entry.job.dispatch_seq)
            for entry in found
        ]

    async def mark_dispatched(self, dispatched: Mapping[JobId, int]) -> int:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        marked = [
            entry
            for job_id, dispatch_seq in dispatched.items()
            if (entry := self._state.jobs.get(job_id)) is not None
            and entry.job.status is JobStatus.PENDING
            and entry.job.dispatch_seq == dispatch_seq
        ]
        for entry in marked:
            entry.job = replace(entry.job, dispatched_at=now)
            entry.dispatch_lease_until = None
        return len(marked)

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog:
        await trio.lowlevel.checkpoint()
        return DispatchBacklog(
            dispatched=len(self._dispatched()), stale=len(self._stale(older_than_seconds))
        )

    async def active_jobs(self) -> ActiveJobs:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        pending = [entry.job for entry in self._state.with_status(JobStatus.PENDING)]
        waiting = [job for job in pending if job.dispatched_at is None]
        due_since = [job.due_at or job.created_at for job in waiting if is_due(job.due_at, now)]
        sent_at = [job.dispatched_at for job in pending if job.dispatched_at is not None]
        return ActiveJobs(
            undispatched=len(due_since),
            dispatched=len(sent_at),
            parked=len(waiting) - len(due_since),
            processing=sum(1 for _ in self._state.with_status(JobStatus.PROCESSING)),
            oldest_undispatched_seconds=_age(min(due_since, default=now), now),
            oldest_dispatched_seconds=_age(min(sent_at, default=now), now),
        )

    async def dispatch_again(self, *, older_than_seconds: float, limit: int) -> int:
        await trio.lowlevel.checkpoint()
        again = self._stale(older_than_seconds)[:limit]
        for entry in again:
            entry.job = replace(
                entry.job, dispatched_at=None, dispatch_seq=entry.job.dispatch_seq + 1
            )
            entry.dispatch_lease_until = None
        return len(again)

    async def wake_parked(self, config_name: str, *, told: int) -> list[JobId]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        parked = [
            entry
            for entry in self._state.with_status(JobStatus.PENDING)
            if entry.job.is_parked
            and config_name in entry.job.mapped_fields
            and not is_due(entry.job.due_at, now)
        ]
        for entry in parked:
            entry.job = replace(entry.job, due_at=None)
        return [entry.job.id for entry in parked[:told]]

    async def redrive(self, job_ids: Sequence[JobId]) -> Mapping[JobId, RedriveAnswer]:
        await trio.lowlevel.checkpoint()
        return {job_id: self._redriven(job_id) for job_id in job_ids}

    def _redriven(self, job_id: JobId) -> RedriveAnswer:
        entry = self._state.jobs.get(job_id)
        if entry is None:
            return RedriveAnswer.UNKNOWN
        redriven = transitions.redriven(entry.job, self._state.now())
        if isinstance(redriven, RedriveAnswer):
            return redriven
        entry.job = redriven
        entry.dispatch_lease_until = None
        return RedriveAnswer.DISPATCHED

    def _dispatched(self) -> list[tuple[datetime, JobEntry]]:
        return [
            (entry.job.dispatched_at, entry)
            for entry in self._state.with_status(JobStatus.PENDING)
            if entry.job.dispatched_at is not None
        ]

    def _stale(self, older_than_seconds: float) -> list[JobEntry]:
        until = after(self._state.now(), -older_than_seconds)
        old = [(at, entry) for at, entry in self._dispatched() if at <= until]
        return [entry for _, entry in sorted(old, key=lambda pair: (pair[0], pair[1].job.id))]


class MemoryEvents:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[EventClaim]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        found = sorted(
            (
                (event.due_at, entry.job.id, event, entry.job.trace)
                for entry in self._state.chosen(job_ids)
                if (event := entry.event) is not None
                and event.due_at <= now
                and is_due(event.lease_until, now)
            ),
            key=lambda item: item[:2],
        )[:limit]
        for _, _, event, _ in found:
            event.lease_until = after(now, lease_seconds)
        return [
            EventClaim(job_id=job_id, mark=event.mark, attempts=event.attempts, trace=trace)
            for _, job_id, event, trace in found
        ]

    async def mark_published(self, job_id: JobId) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is not None:
            entry.event = None
            entry.job = replace(entry.job, event_pending=False)

    async def postpone(self, job_id: JobId, *, retry_in_seconds: float, error_code: str) -> None:
        await trio.lowlevel.checkpoint()
        event = self._pending(job_id)
        if event is not None:
            event.due_at = after(self._state.now(), retry_in_seconds)
            event.attempts += 1
            event.lease_until = None
            event.last_error = error_code

    async def backlog(self) -> EventBacklog:
        await trio.lowlevel.checkpoint()
        waiting = [
            (entry.job.completed_at, entry.event.last_error)
            for entry in self._state.jobs.values()
            if entry.event is not None and entry.job.completed_at is not None
        ]
        now = self._state.now()
        return EventBacklog(
            pending=len(waiting),
            oldest_seconds=_age(min((ended for ended, _ in waiting), default=now), now),
            unroutable=sum(error == Unroutable.code for _, error in waiting),
        )

    def _pending(self, job_id: JobId) -> PendingEvent | None:
        entry = self._state.jobs.get(job_id)
        return entry.event if entry is not None else None


class MemoryCleanup:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def note(
        self, job_id: JobId, keys: Sequence[str], *, late_seconds: float = LATE_WRITE_SECONDS
    ) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is not None and keys:
            now = self._state.now()
            until = after(now, late_seconds)
            entry.left_keys = tuple(dict.fromkeys((*entry.left_keys, *keys)))
            entry.cleanup_due = min(entry.cleanup_due or now, now)
            entry.cleanup_until = max(entry.cleanup_until or until, until)

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        found = sorted(
            (entry.cleanup_due, entry.job.id, entry.left_keys)
            for entry in self._state.jobs.values()
            if entry.cleanup_due is not None and entry.cleanup_due <= now
        )
        return [(job_id, keys) for _, job_id, keys in found[:limit]]

    async def push_back(self, job_id: JobId, *, seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is not None and entry.cleanup_due is not None:
            entry.cleanup_due = after(self._state.now(), seconds)

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is None:
            return
        left = tuple(key for key in entry.left_keys if key not in keys)
        if entry.cleanup_until is None or is_due(entry.cleanup_until, self._state.now()):
            entry.left_keys = left
            if not left:
                entry.cleanup_due = entry.cleanup_until = None
        elif not left:
            entry.cleanup_due = entry.cleanup_until


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())
