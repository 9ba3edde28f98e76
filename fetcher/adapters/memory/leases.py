"""Leases in memory: those of workers, and those that ran out."""

import secrets
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime

import trio

from fetcher.adapters.memory.state import JobEntry, MemoryState, after
from fetcher.domain import job_transitions as transitions
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Claimed, ClaimRefusal, FinishAnswer, Lease, LeaseState
from fetcher.domain.job_transitions import FIRST_SIGHT_SECONDS
from fetcher.domain.jobs import Job, JobStatus, Progress, TerminalOutcome


class MemoryLeases:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def claim(
        self, job_id: JobId, *, owner: str, lease_seconds: float, token: bytes | None = None
    ) -> Claimed | ClaimRefusal:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job_id)
        if entry is None:
            return ClaimRefusal.UNKNOWN
        now = self._state.now()
        lease_token = token or secrets.token_bytes(16)
        job = transitions.claimed(
            entry.job,
            owner=owner,
            token=lease_token,
            now=now,
            lease_until=after(now, lease_seconds),
        )
        if isinstance(job, ClaimRefusal):
            return job
        entry.job = job
        return Claimed(
            job=deepcopy(job), lease=Lease(job_id=job_id, token=lease_token, attempt=job.attempt)
        )

    async def renew(self, lease: Lease, *, lease_seconds: float) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._held(lease)
        if entry is None:
            return False
        entry.job = replace(entry.job, lease_until=after(self._state.now(), lease_seconds))
        return True

    async def check(self, leases: Sequence[Lease]) -> Mapping[JobId, LeaseState]:
        await trio.lowlevel.checkpoint()
        return {lease.job_id: self._state_of(lease) for lease in leases}

    async def finish(self, lease: Lease, outcome: TerminalOutcome) -> FinishAnswer:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(lease.job_id)
        answer = transitions.judge_finish(entry.job if entry else None, lease, outcome)
        if entry is None or answer is not None:
            return answer or FinishAnswer.SUPERSEDED
        completed_at = self._state.next_end()
        ended = transitions.ended(entry.job, outcome, completed_at=completed_at)
        self._state.end(entry, ended, outcome)
        return FinishAnswer.WRITTEN

    async def release(self, lease: Lease) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._held(lease)
        if entry is None:
            return False
        entry.job = transitions.released(entry.job, self._state.now())
        entry.dispatch_lease_until = None
        return True

    async def park(self, lease: Lease, *, until: datetime, reason: str) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._held(lease)
        if entry is None:
            return False
        now = self._state.now()
        entry.job = transitions.parked(entry.job, now, until=until, reason=reason)
        entry.dispatch_lease_until = None
        return True

    async def note_progress(self, lease: Lease, progress: Progress) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._held(lease)
        if entry is None:
            return False
        noted = {config_name: dict(tables) for config_name, tables in progress.items()}
        entry.job = replace(entry.job, progress=noted)
        return True

    def _held(self, lease: Lease) -> JobEntry | None:
        entry = self._state.jobs.get(lease.job_id)
        return entry if entry is not None and transitions.holds(entry.job, lease.token) else None

    def _state_of(self, lease: Lease) -> LeaseState:
        entry = self._held(lease)
        if entry is None:
            return LeaseState.LOST
        asked = entry.job.cancel_requested is not None
        return LeaseState.CANCEL_REQUESTED if asked else LeaseState.HELD


class MemoryExpiredLeases:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def find_expired(self, *, limit: int) -> list[Job]:
        await trio.lowlevel.checkpoint()
        now = self._state.now()
        for entry in self._state.with_status(JobStatus.PROCESSING):
            if entry.job.lease_until is None:
                lease_until = after(now, FIRST_SIGHT_SECONDS)
                entry.job = replace(entry.job, lease_until=lease_until)
        found = [
            (entry.job.lease_until, entry.job.id, entry.job)
            for entry in self._state.with_status(JobStatus.PROCESSING)
            if entry.job.lease_until is not None and entry.job.lease_until <= now
        ]
        return [deepcopy(job) for _, _, job in sorted(found, key=lambda item: item[:2])[:limit]]

    async def requeue(self, job: Job) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job.id)
        now = self._state.now()
        if entry is None or not transitions.may_requeue(entry.job, job, now):
            return False
        entry.job = transitions.requeued(entry.job, now)
        entry.dispatch_lease_until = None
        return True

    async def push_back(self, job: Job, *, seconds: float) -> None:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job.id)
        if entry is not None and entry.job.lease_until == job.lease_until:
            entry.job = replace(entry.job, lease_until=after(self._state.now(), seconds))

    async def finish(self, job: Job, outcome: TerminalOutcome) -> bool:
        await trio.lowlevel.checkpoint()
        entry = self._state.jobs.get(job.id)
        now = self._state.now()
        if entry is None or not transitions.may_end_expired(entry.job, job, outcome, now):
            return False
        completed_at = self._state.next_end()
        ended = transitions.ended_without_owner(entry.job, outcome, completed_at=completed_at)
        self._state.end(entry, ended, outcome)
        return True
