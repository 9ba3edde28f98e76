"""Leases in MongoDB: those of workers, and those that ran out."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from pymongo import ASCENDING

from fetcher.adapters.mongo.document_fields import (
    Document,
    id_filter,
    id_forms,
    time_has_come,
)
from fetcher.adapters.mongo.job_changes import (
    CHANGES_TOO_OFTEN,
    TRIES,
    due_at_once,
    event_fields,
    owned,
    unchanged,
    write_change,
)
from fetcher.adapters.mongo.job_documents import progress_document, token_value
from fetcher.adapters.mongo.job_reading import find_job, sorted_out
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain import job_transitions
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Claimed, ClaimRefusal, FinishAnswer, Lease, LeaseState
from fetcher.domain.job_transitions import FIRST_SIGHT_SECONDS, UNREADABLE_SECONDS
from fetcher.domain.jobs import Job, JobStatus, Progress, TerminalOutcome

_PROCESSING: Final[Document] = {"status": JobStatus.PROCESSING.value}
_NO_DISPATCH_LEASE: Final[Document] = {"dispatch_lease_until": None}


class MongoJobLeases:
    """Implements :class:`fetcher.ports.JobLeases`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def claim(
        self, job_id: JobId, *, owner: str, lease_seconds: float, token: bytes | None = None
    ) -> Claimed | ClaimRefusal:
        lease_token = token or secrets.token_bytes(16)

        async def claim(turn: Turn) -> Claimed | ClaimRefusal:
            for _ in range(TRIES):
                job = await find_job(turn.jobs, job_id)
                if job is None:
                    return ClaimRefusal.UNKNOWN
                now = turn.now
                claimed = job_transitions.claimed(
                    job,
                    owner=owner,
                    token=lease_token,
                    now=now,
                    lease_until=now + timedelta(seconds=lease_seconds),
                )
                if isinstance(claimed, ClaimRefusal):
                    return claimed
                if await write_change(turn, job, claimed, condition=unchanged(job)):
                    return _claimed(claimed, lease_token)
            raise PortUnavailable(CHANGES_TOO_OFTEN)

        async def settle(turn: Turn) -> Claimed | None:
            job = await find_job(turn.majority_jobs, job_id)
            ours = job is not None and job_transitions.holds(job, lease_token)
            return _claimed(job, lease_token) if job is not None and ours else None

        return await self._server.run(claim, settle=settle)

    async def renew(self, lease: Lease, *, lease_seconds: float) -> bool:
        async def renew(turn: Turn) -> bool:
            lease_until = turn.now + timedelta(seconds=lease_seconds)
            renewed = await turn.jobs.update_one(
                _held(lease), {"$set": {"lease_until": lease_until}}
            )
            return renewed.matched_count == 1

        return await self._server.run(renew)

    async def check(self, leases: Sequence[Lease]) -> Mapping[JobId, LeaseState]:
        ids = id_forms([lease.job_id for lease in leases])
        shown = ["status", "lease_token", "cancel_requested"]

        async def check(turn: Turn) -> Mapping[JobId, LeaseState]:
            found = turn.jobs.find({"_id": {"$in": ids}, **_PROCESSING}, projection=shown)
            by_id = {bytes(document["_id"]): document async for document in found}
            return {
                lease.job_id: _state_of(lease, by_id.get(lease.job_id.bytes)) for lease in leases
            }

        return await self._server.run(check)

    async def finish(self, lease: Lease, outcome: TerminalOutcome) -> FinishAnswer:
        async def write(turn: Turn, job: Job) -> bool:
            now = turn.now
            ended = job_transitions.ended(job, outcome, completed_at=now)
            event = event_fields(outcome.event, now=now)
            return await write_change(turn, job, ended, condition=owned(job), also=event)

        async def finish(turn: Turn) -> FinishAnswer:
            # What the owner's write depends on does not change under its lease, but for a wish to
            # cancel, which is in the condition: mostly the record need not be read again.
            if lease.claimed is not None and await write(turn, lease.claimed):
                return FinishAnswer.WRITTEN
            for _ in range(TRIES):
                # Read by majority: after a refused write, only that says what became of the job.
                job = await find_job(turn.majority_jobs, lease.job_id)
                answer = job_transitions.judge_finish(job, lease, outcome)
                if job is None or answer is not None:
                    return answer or FinishAnswer.SUPERSEDED
                if await write(turn, job):
                    return FinishAnswer.WRITTEN
            raise PortUnavailable(CHANGES_TOO_OFTEN)

        async def settle(turn: Turn) -> FinishAnswer | None:
            job = await find_job(turn.majority_jobs, lease.job_id)
            return job_transitions.judge_finish(job, lease, outcome)

        return await self._server.run(finish, settle=settle)

    async def release(self, lease: Lease) -> bool:
        return await self._let_go(
            lease, lambda job, now: due_at_once(job_transitions.released(job, now))
        )

    async def park(self, lease: Lease, *, until: datetime, reason: str) -> bool:
        parked = partial(job_transitions.parked, until=until, reason=reason)
        return await self._let_go(lease, parked)

    async def _let_go(self, lease: Lease, rule: Callable[[Job, datetime], Job]) -> bool:
        async def let_go(turn: Turn) -> bool:
            for _ in range(TRIES):
                job = await find_job(turn.jobs, lease.job_id)
                if job is None or not job_transitions.holds(job, lease.token):
                    return False
                after = rule(job, turn.now)
                if await write_change(
                    turn, job, after, condition=owned(job), also=_NO_DISPATCH_LEASE
                ):
                    return True
            raise PortUnavailable(CHANGES_TOO_OFTEN)

        async def settle(turn: Turn) -> bool | None:
            job = await find_job(turn.majority_jobs, lease.job_id)
            if job is None or job_transitions.holds(job, lease.token):
                return None
            return job.status is JobStatus.PENDING and job.attempt == lease.attempt

        return await self._server.run(let_go, settle=settle)

    async def note_progress(self, lease: Lease, progress: Progress) -> bool:
        async def note(turn: Turn) -> bool:
            noted = {"$set": {"progress": progress_document(progress)}}
            return (await turn.jobs.update_one(_held(lease), noted)).matched_count == 1

        return await self._server.run(note)


class MongoExpiredLeases:
    """Implements :class:`fetcher.ports.ExpiredLeases`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def find_expired(self, *, limit: int) -> list[Job]:
        async def find(turn: Turn) -> list[Job]:
            now = turn.now
            wanted = {**_PROCESSING, **time_has_come("lease_until", now=now)}
            order = [("lease_until", ASCENDING), ("_id", ASCENDING)]
            while True:
                found = await turn.jobs.find(wanted).sort(order).limit(limit).to_list()
                if found and found[0].get("lease_until") is None:
                    until = now + timedelta(seconds=FIRST_SIGHT_SECONDS)
                    await turn.jobs.update_many(
                        {**_PROCESSING, "lease_until": None}, {"$set": {"lease_until": until}}
                    )
                    continue
                jobs, unreadable = sorted_out(found)
                if not unreadable:
                    return jobs
                # Left at the head of every search, a batch of them would keep all others waiting.
                later = now + timedelta(seconds=UNREADABLE_SECONDS)
                await turn.jobs.update_many(
                    {**wanted, "_id": {"$in": unreadable}}, {"$set": {"lease_until": later}}
                )

        return await self._server.run(find)

    async def push_back(self, job: Job, *, seconds: float) -> None:
        async def push_back(turn: Turn) -> None:
            seen = {**id_filter(job.id), **_PROCESSING, "lease_until": job.lease_until}
            later = turn.now + timedelta(seconds=seconds)
            await turn.jobs.update_one(seen, {"$set": {"lease_until": later}})

        await self._server.run(push_back)

    async def requeue(self, job: Job) -> bool:
        async def requeue(turn: Turn) -> bool:
            now = turn.now
            stored = await find_job(turn.jobs, job.id)
            if stored is None or not job_transitions.may_requeue(stored, job, now):
                return False
            again = due_at_once(job_transitions.requeued(stored, now))
            return await write_change(
                turn, stored, again, condition=unchanged(stored), also=_NO_DISPATCH_LEASE
            )

        return await self._server.run(requeue)

    async def finish(self, job: Job, outcome: TerminalOutcome) -> bool:
        async def finish(turn: Turn) -> bool:
            now = turn.now
            stored = await find_job(turn.jobs, job.id)
            if stored is None or not job_transitions.may_end_expired(stored, job, outcome, now):
                return False
            ended = job_transitions.ended_without_owner(stored, outcome, completed_at=now)
            event = event_fields(outcome.event, now=now)
            return await write_change(turn, stored, ended, condition=unchanged(stored), also=event)

        return await self._server.run(finish)


def _held(lease: Lease) -> Document:
    return {**id_filter(lease.job_id), **_PROCESSING, "lease_token": token_value(lease.token)}


def _claimed(job: Job, token: bytes) -> Claimed:
    lease = Lease(job_id=job.id, token=token, attempt=job.attempt, claimed=job)
    return Claimed(job=job, lease=lease)


def _state_of(lease: Lease, document: Document | None) -> LeaseState:
    if document is None or document.get("lease_token") != lease.token:
        return LeaseState.LOST
    asked = document.get("cancel_requested") is not None
    return LeaseState.CANCEL_REQUESTED if asked else LeaseState.HELD
