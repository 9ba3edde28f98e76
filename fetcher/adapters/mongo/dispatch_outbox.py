"""The job record as the outbox of work messages (design section 4, step 2)."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from pymongo import ASCENDING

from fetcher.adapters.mongo.claiming import claim_each
from fetcher.adapters.mongo.document_fields import Document, DocumentFields, id_filter
from fetcher.adapters.mongo.job_changes import (
    CHANGES_TOO_OFTEN,
    TRIES,
    count_filter,
    due_at_once,
    unchanged,
    write_change,
)
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.job_lists import parked_filter
from fetcher.adapters.mongo.job_reading import find_job, readable_job
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain import job_transitions
from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import DispatchBacklog, DispatchClaim, JobStatus, RedriveAnswer

_PENDING: Document = {"status": JobStatus.PENDING.value}
# A record of the reference lacks the field: it was dispatched when it was created. The equality
# is what an index serves, the type tells a null from nothing.
_UNDISPATCHED: Document = {"dispatched_at": {"$eq": None, "$type": "null"}}
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
        async def claim(turn: Turn) -> list[DispatchClaim]:
            now = turn.now
            leased = claim_each(
                turn.jobs,
                _due(now),
                {"dispatch_lease_until": now + timedelta(seconds=lease_seconds)},
                order=[("created_at", ASCENDING), ("_id", ASCENDING)],
                job_ids=job_ids,
            )
            claims: list[DispatchClaim] = []
            async with aclosing(leased) as documents:
                async for document in documents:
                    job = readable_job(document)
                    if job is not None:
                        claims.append(DispatchClaim(job=job, dispatch_seq=job.dispatch_seq))
                    if len(claims) == limit:
                        break
            return claims

        return await self._server.run(claim)

    async def mark_dispatched(self, job_id: JobId, dispatch_seq: int) -> bool:
        async def mark(turn: Turn) -> bool:
            claimed = {**id_filter(job_id), **_PENDING, "dispatch_seq": count_filter(dispatch_seq)}
            done = {"dispatched_at": turn.now, "dispatch_lease_until": None}
            marked = await turn.jobs.update_one(claimed, {"$set": done})
            return marked.matched_count == 1

        return await self._server.run(mark)

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog:
        async def count(turn: Turn) -> DispatchBacklog:
            until = turn.now - timedelta(seconds=older_than_seconds)
            return DispatchBacklog(
                dispatched=await turn.jobs.count_documents(_dispatched_until(turn.now)),
                stale=await turn.jobs.count_documents(_dispatched_until(until)),
            )

        return await self._server.run(count)

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
            found = turn.jobs.find(parked, projection=["_id"]).limit(told)
            ids = [DocumentFields(RECORD, document).record_id() async for document in found]
            if ids:
                await turn.jobs.update_many(parked, {"$set": {"due_at": None}})
            return [JobId(each) for each in ids]

        return await self._server.run(wake)

    async def redrive(self, job_ids: Sequence[JobId]) -> Mapping[JobId, RedriveAnswer]:
        async def redrive(turn: Turn) -> Mapping[JobId, RedriveAnswer]:
            return {job_id: await _redriven(turn, job_id) for job_id in job_ids}

        return await self._server.run(redrive)


async def _redriven(turn: Turn, job_id: JobId) -> RedriveAnswer:
    for _ in range(TRIES):
        try:
            job = await find_job(turn.jobs, job_id)
        except RecordCorrupt:
            return RedriveAnswer.UNREADABLE
        if job is None:
            return RedriveAnswer.UNKNOWN
        redriven = job_transitions.redriven(job, turn.now)
        if isinstance(redriven, RedriveAnswer):
            return redriven
        again = due_at_once(redriven)
        # Said although it may not differ: a record of the reference lacks the field.
        also: Document = {"dispatched_at": None, "dispatch_lease_until": None}
        if await write_change(turn, job, again, condition=unchanged(job), also=also):
            return RedriveAnswer.DISPATCHED
    raise PortUnavailable(CHANGES_TOO_OFTEN)


def _due(now: datetime) -> Document:
    return {
        **_PENDING,
        **_UNDISPATCHED,
        "$and": [
            {"$or": [{"due_at": None}, {"due_at": {"$lte": now}}]},
            {"$or": [{"dispatch_lease_until": None}, {"dispatch_lease_until": {"$lte": now}}]},
        ],
    }


def _dispatched_until(until: datetime) -> Document:
    by_the_reference = {"dispatched_at": {"$exists": False}, "created_at": {"$lte": until}}
    return {**_PENDING, "$or": [{"dispatched_at": {"$lte": until}}, by_the_reference]}
