"""Jobs in memory: created, read, listed, asked to stop."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from datetime import datetime

import trio

from fetcher.adapters.memory.job_queries import cursor_of, matches, place_of
from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.adapters.memory.state import after as later
from fetcher.domain import job_transitions
from fetcher.domain.errors import DuplicateActiveJob, DuplicateIdempotencyKey
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    AHEAD_SECONDS,
    MOST_COUNTED,
    MOST_IDEMPOTENCY_KEYS,
    CancelAnswer,
    EndedCursor,
    JobPage,
    JobQuery,
    PendingCounts,
    place_to_read_from,
)
from fetcher.domain.jobs import EventMark, Job, JobStatus, TerminalOutcome
from fetcher.domain.terminal_event import JOB_CANCELLED


class MemoryJobs:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
        await trio.lowlevel.checkpoint()
        if job.idempotency_key is not None and self._with_key(job.idempotency_key):
            raise DuplicateIdempotencyKey("a job with this idempotency key exists")
        if self._active(job.request_hash):
            raise DuplicateActiveJob("an active job with this request hash exists")
        entry = self._state.jobs[job.id] = JobEntry(deepcopy(job))
        if dispatch_lease_seconds:
            entry.dispatch_lease_until = later(self._state.now(), dispatch_lease_seconds)

    async def get(self, job_id: JobId) -> Job | None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        return deepcopy(entry.job) if entry is not None else None

    async def list_page(self, query: JobQuery) -> JobPage:
        await trio.lowlevel.checkpoint()
        found = sorted(
            (entry.job for entry in self._state.jobs.values() if matches(entry.job, query)),
            key=place_of,
            reverse=not query.ascending,
        )
        items = found[: query.limit]
        return JobPage(
            items=tuple(deepcopy(items)),
            next=cursor_of(items[-1]) if len(found) > len(items) else None,
        )

    async def find_by_idempotency_key(self, key: str) -> Job | None:
        await trio.lowlevel.checkpoint()
        entry = self._with_key(key)
        return deepcopy(entry.job) if entry is not None else None

    async def give_idempotency_key(self, job_id: JobId, key: str) -> bool:
        await trio.lowlevel.checkpoint()
        holder = self._with_key(key)
        if holder is not None and holder.job.id != job_id:
            raise DuplicateIdempotencyKey("a job with this idempotency key exists")
        entry = self._state.jobs.get(job_id)
        if entry is None:
            return False
        if holder is entry:
            return True
        if entry.job.idempotency_key is None:
            entry.job = replace(entry.job, idempotency_key=key)
            return True
        if len(entry.more_idempotency_keys) + 1 >= MOST_IDEMPOTENCY_KEYS:
            return False
        entry.more_idempotency_keys.add(key)
        return True

    async def forget_idempotency_key(self, job_id: JobId, key: str) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._with_key(key)
        if entry is None or entry.job.id != job_id:
            return
        if entry.job.idempotency_key == key:
            entry.job = replace(entry.job, idempotency_key=None)
        entry.more_idempotency_keys.discard(key)

    async def is_in_use(self, config_name: str) -> bool:
        await trio.lowlevel.checkpoint()
        return any(
            config_name in entry.job.mapped_fields
            for entry in self._state.jobs.values()
            if entry.job.status.is_active and not entry.job.is_parked
        )

    async def pending_counts(self, *, product_name: str) -> PendingCounts:
        await trio.lowlevel.checkpoint()
        product = product_name.strip().lower()
        waiting = [entry.job.product_name for entry in self._state.with_status(JobStatus.PENDING)]
        return PendingCounts(
            total=min(len(waiting), MOST_COUNTED),
            of_product=min(waiting.count(product), MOST_COUNTED),
        )

    async def mark_result_deleted(self, job_id: JobId, *, at: datetime) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if (
            entry is None
            or entry.job.status is not JobStatus.COMPLETED
            or entry.job.result_deleted_at is not None
        ):
            return False
        entry.job = replace(entry.job, result_deleted_at=at)
        return True

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        await trio.lowlevel.checkpoint()
        since = later(self._state.now(), -within_seconds)
        return _newest(
            entry.job
            for entry in self._state.jobs.values()
            if entry.job.request_hash == request_hash and entry.job.created_at >= since
        )

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        await trio.lowlevel.checkpoint()
        return _newest(self._active(request_hash))

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        start = place_to_read_from(after, now)
        place = (start.completed_at, start.job_id) if start is not None else None
        latest = later(now, AHEAD_SECONDS)
        product = product_name.strip().lower() if product_name is not None else None
        found = [
            (cursor, entry.job)
            for entry in self._state.jobs.values()
            if (cursor := _place(entry.job)) is not None
            and cursor[0] <= latest
            and (place is None or cursor > place)
            and (product is None or entry.job.product_name == product)
        ]
        return [deepcopy(job) for _, job in sorted(found, key=lambda pair: pair[0])[:limit]]

    async def latest_ended(self) -> EndedCursor | None:
        await trio.lowlevel.checkpoint()
        places = (_place(entry.job) for entry in self._state.jobs.values())
        most = later(self._state.now(), AHEAD_SECONDS)
        told = (place for place in places if place is not None and place[0] <= most)
        latest = max(told, default=None)
        return EndedCursor(completed_at=latest[0], job_id=latest[1]) if latest else None

    async def latest_failed(self, *, limit: int) -> list[Job]:
        await trio.lowlevel.checkpoint()
        found = (
            (place, entry.job)
            for entry in self._state.with_status(JobStatus.FAILED)
            if (place := _place(entry.job)) is not None
        )
        latest = sorted(found, key=lambda pair: pair[0], reverse=True)[:limit]
        return [deepcopy(job) for _, job in latest]

    async def request_cancel(self, job_id: JobId, mark: EventMark) -> CancelAnswer:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is None:
            return CancelAnswer.UNKNOWN
        job = entry.job
        if job.status is JobStatus.PROCESSING:
            asked_at = job.cancel_requested or self._state.now()
            entry.job = replace(job, cancel_requested=asked_at)
            return CancelAnswer.REQUESTED
        if job.status is JobStatus.PENDING:
            outcome = TerminalOutcome(status=JobStatus.CANCELLED, event=mark, failure=JOB_CANCELLED)
            completed_at = self._state.next_end()
            ended = job_transitions.ended(job, outcome, completed_at=completed_at)
            self._state.end(entry, replace(ended, cancel_requested=completed_at), outcome)
            return CancelAnswer.CANCELLED
        return CancelAnswer.CANCELLED if job.status is JobStatus.CANCELLED else CancelAnswer.ENDED

    def _with_key(self, key: str) -> JobEntry | None:
        found = (
            entry
            for entry in self._state.jobs.values()
            if entry.job.idempotency_key == key or key in entry.more_idempotency_keys
        )
        return next(found, None)

    def _active(self, request_hash: str) -> list[Job]:
        return [
            entry.job
            for entry in self._state.jobs.values()
            if entry.job.request_hash == request_hash and entry.job.status.is_active
        ]


def _newest(jobs: Iterable[Job]) -> Job | None:
    return deepcopy(max(jobs, key=lambda job: (job.created_at, job.id), default=None))


def _place(job: Job) -> tuple[datetime, JobId] | None:
    """The place in the order of ended jobs."""
    return (job.completed_at, job.id) if job.completed_at is not None else None
