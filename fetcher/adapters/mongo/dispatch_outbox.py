"""The job record as the outbox of work messages (design section 4, step 2)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from pymongo import ASCENDING, UpdateOne

from fetcher.adapters.mongo.active_jobs import look_at_active
from fetcher.adapters.mongo.claiming import claim_together, claimed_with
from fetcher.adapters.mongo.document_fields import Document, DocumentFields, id_forms, time_has_come
from fetcher.adapters.mongo.job_changes import (
    CHANGES_TOO_OFTEN,
    TRIES,
    change,
    count_filter,
    due_at_once,
    unchanged,
)
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.job_lists import parked_filter
from fetcher.adapters.mongo.job_reading import find_jobs, sorted_out
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain import job_transitions
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import ActiveJobs, DispatchBacklog, DispatchClaim, RedriveAnswer
from fetcher.domain.job_transitions import UNREADABLE_SECONDS
from fetcher.domain.jobs import Job, JobStatus

_PENDING: Document = {"status": JobStatus.PENDING.value}
# A record of the reference lacks the field: it was dispatched when it was created. The equality
# is what an index serves, the type tells a null from nothing.
_UNDISPATCHED: Document = {"dispatched_at": {"$eq": None, "$type": "null"}}
_OLDEST_FIRST = (("created_at", ASCENDING), ("_id", ASCENDING))
_AGAIN: Document = {
    "$set": {"dispatched_at": None, "dispatch_lease_until": None},
    "$inc": {"dispatch_seq": 1},
}


class MongoDispatchOutbox:
    """Implements :class:`fetcher.ports.DispatchOutbox`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[DispatchClaim]:
        lease: Document = {}

        async def claim(turn: Turn) -> list[DispatchClaim]:
            now = turn.now
            lease["dispatch_lease_until"] = now + timedelta(seconds=lease_seconds)
            claimed: list[Job] = []
            # What cannot be read is put aside and must not take another's place.
            while len(claimed) < limit:
                leased = await claim_together(
                    turn.jobs,
                    _due(now),
                    lease,
                    order=_OLDEST_FIRST,
                    job_ids=job_ids,
                    limit=limit - len(claimed),
                )
                jobs, unreadable = sorted_out(leased)
                claimed += jobs
                if not unreadable:
                    break
                aside = {"dispatch_lease_until": now + timedelta(seconds=UNREADABLE_SECONDS)}
                await turn.jobs.update_many(
                    {"_id": {"$in": unreadable}, **_PENDING}, {"$set": aside}
                )
            return _claims(claimed)

        async def settle(turn: Turn) -> list[DispatchClaim] | None:
            """Else they would wait for the end of a lease that nobody knows of."""
            if not lease:
                return None
            ours = {**_PENDING, **_UNDISPATCHED, **lease}
            leased = await claimed_with(turn.majority_jobs, ours, order=_OLDEST_FIRST, limit=limit)
            jobs, _ = sorted_out(leased)
            return _claims(jobs) or None

        return await self._server.run(claim, settle=settle)

    async def mark_dispatched(self, dispatched: Mapping[JobId, int]) -> int:
        alike: dict[int, list[JobId]] = {}
        for job_id, dispatch_seq in dispatched.items():
            alike.setdefault(dispatch_seq, []).append(job_id)

        async def mark(turn: Turn) -> int:
            done = {"$set": {"dispatched_at": turn.now, "dispatch_lease_until": None}}
            marked = 0
            for dispatch_seq, job_ids in alike.items():
                claimed = {
                    "_id": {"$in": id_forms(job_ids)},
                    **_PENDING,
                    "dispatch_seq": count_filter(dispatch_seq),
                }
                marked += (await turn.jobs.update_many(claimed, done)).matched_count
            return marked

        return await self._server.run(mark, settle=mark)

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog:
        async def count(turn: Turn) -> DispatchBacklog:
            until = turn.now - timedelta(seconds=older_than_seconds)
            return DispatchBacklog(
                dispatched=await turn.jobs.count_documents(_dispatched_until(turn.now)),
                stale=await turn.jobs.count_documents(_dispatched_until(until)),
            )

        return await self._server.run(count)

    async def active_jobs(self) -> ActiveJobs:
        return await self._server.run(look_at_active)

    async def dispatch_again(self, *, older_than_seconds: float, limit: int) -> int:
        async def dispatch_again(turn: Turn) -> int:
            stale = _dispatched_until(turn.now - timedelta(seconds=older_than_seconds))
            order = [("dispatched_at", ASCENDING), ("created_at", ASCENDING)]
            found = turn.jobs.find(stale, projection=["_id"]).sort(order).limit(limit)
            ids = [document["_id"] async for document in found]
            again = await turn.jobs.update_many({"_id": {"$in": ids}, **stale}, _AGAIN)
            return again.modified_count

        return await self._server.run(dispatch_again)

    async def wake_parked(self, config_name: str, *, told: int) -> list[JobId]:
        async def wake(turn: Turn) -> list[JobId]:
            parked = {**parked_filter(config_name), "due_at": {"$gt": turn.now}}
            found = await turn.jobs.find(parked, projection=["_id"]).limit(told).to_list()
            if found:
                await turn.jobs.update_many(parked, {"$set": {"due_at": None}})
            ids = [readable(document, _id_of) for document in found]
            return [each for each in ids if each is not None]

        return await self._server.run(wake)

    async def redrive(self, job_ids: Sequence[JobId]) -> Mapping[JobId, RedriveAnswer]:
        return await self._server.run(lambda turn: _redrive(turn, job_ids))


async def _redrive(turn: Turn, job_ids: Sequence[JobId]) -> dict[JobId, RedriveAnswer]:
    """One look at all of them and one write for those that are to be dispatched, however many."""
    answers: dict[JobId, RedriveAnswer] = {}
    written: dict[JobId, Job] = {}
    for _ in range(TRIES):
        left = [job_id for job_id in job_ids if job_id not in answers]
        found = await find_jobs(turn.jobs, left)
        changes: dict[JobId, tuple[Job, Job]] = {}
        for job_id in left:
            job = found.get(job_id)
            if job is not None and job == written.get(job_id):
                answers[job_id] = RedriveAnswer.DISPATCHED
                continue
            unread = RedriveAnswer.UNREADABLE if job_id in found else RedriveAnswer.UNKNOWN
            redriven = unread if job is None else job_transitions.redriven(job, turn.now)
            if isinstance(redriven, RedriveAnswer):
                answers[job_id] = redriven
            elif job is not None:
                changes[job_id] = (job, due_at_once(redriven))
        if await _all_written(turn, changes.values()):
            return answers | dict.fromkeys(changes, RedriveAnswer.DISPATCHED)
        # The server does not say which were changed in between: they are told by another look.
        written = {job_id: again for job_id, (_, again) in changes.items()}
    raise PortUnavailable(CHANGES_TOO_OFTEN)


async def _all_written(turn: Turn, changes: Collection[tuple[Job, Job]]) -> bool:
    """Whether each job was still as it was read; those that were have been changed."""
    if not changes:
        return True
    # Said although it may not differ: a record of the reference lacks the field.
    also: Document = {"dispatched_at": None, "dispatch_lease_until": None}
    updates = [UpdateOne(unchanged(job), change(job, again, also=also)) for job, again in changes]
    done = await turn.jobs.bulk_write(updates, ordered=False)
    return done.matched_count == len(updates)


def _claims(jobs: Sequence[Job]) -> list[DispatchClaim]:
    return [DispatchClaim(job=job, dispatch_seq=job.dispatch_seq) for job in jobs]


def _id_of(document: Document) -> JobId:
    return JobId(DocumentFields(RECORD, document).record_id())


def _due(now: datetime) -> Document:
    return {**_PENDING, **_UNDISPATCHED, **time_has_come("due_at", "dispatch_lease_until", now=now)}


def _dispatched_until(until: datetime) -> Document:
    by_the_reference = {"dispatched_at": {"$exists": False}, "created_at": {"$lte": until}}
    return {**_PENDING, "$or": [{"dispatched_at": {"$lte": until}}, by_the_reference]}
