"""The job record as the outbox of terminal events (design section 4, steps 6 and 7)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from pymongo import ASCENDING

from fetcher.adapters.mongo.claiming import claim_together, claimed_with
from fetcher.adapters.mongo.document_fields import (
    FIRST_TIME,
    Document,
    DocumentFields,
    id_filter,
    time_has_come,
)
from fetcher.adapters.mongo.job_changes import event_cleared
from fetcher.adapters.mongo.job_documents import RECORD, trace_of
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.errors import RecordCorrupt, Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import MOST_COUNTED, EventBacklog, EventClaim
from fetcher.domain.jobs import EventMark, JobStatus

log = structlog.get_logger(__name__)

YOUNG_SECONDS: Final = 30.0
"""For so long a mark that the reference wrote is left to the worker that wrote it."""
CORRUPT_SECONDS: Final = 300.0
"""For so long a mark that cannot be emitted is put aside, so that it starves no other."""
CORRUPT: Final = "mark_corrupt"

_PENDING: Document = {"metadata.terminalEventPending": True}
_EVENT_STATUS: Final = {
    JobStatus.COMPLETED.value: "completed",
    JobStatus.FAILED.value: "failed",
    JobStatus.CANCELLED.value: "failed",
}
_FIRST_DUE_FIRST: Final = (("event_due_at", ASCENDING), ("completed_at", ASCENDING))
_ENDED: Final[Document] = {"status": {"$in": list(_EVENT_STATUS)}}


class MongoEventOutbox:
    """Implements :class:`fetcher.ports.EventOutbox`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[EventClaim]:
        lease: Document = {}

        async def claim(turn: Turn) -> list[EventClaim]:
            now = turn.now
            lease["event_lease_until"] = now + timedelta(seconds=lease_seconds)
            claims: list[EventClaim] = []
            # What cannot be emitted is put aside and must not take another's place.
            while len(claims) < limit:
                leased = await claim_together(
                    turn.jobs,
                    _due(now) if job_ids is None else _due_of_ours(now),
                    lease,
                    order=_FIRST_DUE_FIRST,
                    job_ids=job_ids,
                    limit=limit - len(claims),
                )
                read = [await _readable_claim(turn, document) for document in leased]
                claims += [each for each in read if each is not None]
                if None not in read:
                    break
            return claims

        async def settle(turn: Turn) -> list[EventClaim] | None:
            """Else they would wait for the end of a lease that nobody knows of."""
            if not lease:
                return None
            ours = {**_PENDING, **lease}
            leased = await claimed_with(
                turn.majority_jobs, ours, order=_FIRST_DUE_FIRST, limit=limit
            )
            read = [await _readable_claim(turn, document) for document in leased]
            return [each for each in read if each is not None] or None

        return await self._server.run(claim, settle=settle)

    async def mark_published(self, job_id: JobId) -> None:
        async def clear(turn: Turn) -> bool:
            return (await turn.jobs.update_one(id_filter(job_id), event_cleared())).acknowledged

        await self._server.run(clear, settle=clear)

    async def postpone(self, job_id: JobId, *, retry_in_seconds: float, error_code: str) -> None:
        async def postpone(turn: Turn) -> bool:
            written = await turn.jobs.update_one(
                {**id_filter(job_id), **_PENDING},
                _postponed(turn.now, seconds=retry_in_seconds, error_code=error_code),
            )
            return written.acknowledged

        # Done twice it counts twice, which makes later waits longer.
        await self._server.run(postpone, settle=postpone)

    async def backlog(self) -> EventBacklog:
        async def measure(turn: Turn) -> EventBacklog:
            pending = await turn.jobs.count_documents(_PENDING, limit=MOST_COUNTED)
            if pending == 0:
                return EventBacklog(pending=0, oldest_seconds=0.0, unroutable=0)
            unroutable = await turn.jobs.count_documents(
                {**_PENDING, "event_last_error": Unroutable.code}, limit=MOST_COUNTED
            )
            oldest = await turn.jobs.find_one(
                {**_PENDING, "completed_at": {"$gte": FIRST_TIME, "$lte": turn.now}},
                projection=["completed_at"],
                sort=[("completed_at", ASCENDING)],
            )
            ended_at = DocumentFields(RECORD, oldest or {}).optional_time("completed_at")
            age = (turn.now - (ended_at or turn.now)).total_seconds()
            return EventBacklog(
                pending=pending, oldest_seconds=max(0.0, age), unroutable=unroutable
            )

        return await self._server.run(measure)


def _due(now: datetime) -> Document:
    young = now - timedelta(seconds=YOUNG_SECONDS)
    return {
        **_PENDING,
        **_ENDED,
        "$or": [
            {"event_due_at": {"$lte": now}},
            {"event_due_at": None, "completed_at": {"$lte": young}},
        ],
        **time_has_come("event_lease_until", now=now),
    }


def _due_of_ours(now: datetime) -> Document:
    """As :func:`_due` for those that one of us has told of: our marks have their time."""
    return {
        **_PENDING,
        **_ENDED,
        "event_due_at": {"$lte": now},
        **time_has_come("event_lease_until", now=now),
    }


async def _readable_claim(turn: Turn, document: Document) -> EventClaim | None:
    """The claim, or None for a mark that cannot be emitted: it is put aside for a while."""
    try:
        return _read_claim(document)
    except RecordCorrupt as corrupt:
        log.error("event_mark_corrupt", what=str(corrupt))
    await turn.jobs.update_one(
        {"_id": document["_id"], **_PENDING},
        _postponed(turn.now, seconds=CORRUPT_SECONDS, error_code=CORRUPT),
    )
    return None


def _read_claim(document: Document) -> EventClaim:
    """Raise RecordCorrupt for what spec worker-and-events 8.9 refuses to emit."""
    fields = DocumentFields(RECORD, document)
    marks = DocumentFields(f"{RECORD}: metadata", fields.document("metadata"))
    status, payload = marks.text("terminalEventStatus"), marks.text("terminalEventPayload")
    if status != _EVENT_STATUS[fields.text("status")]:
        raise marks.corrupt("terminalEventStatus")
    if not payload:
        raise marks.corrupt("terminalEventPayload")
    # The reference fixes no time with its mark; the end of the job never changes either.
    time = fields.optional_time("event_time") or fields.time("completed_at")
    return EventClaim(
        job_id=JobId(fields.record_id()),
        mark=EventMark(status=status, payload=payload, time=time),
        attempts=fields.count("event_attempts"),
        trace=trace_of(document),
    )


def _postponed(now: datetime, *, seconds: float, error_code: str) -> Document:
    return {
        "$set": {
            "event_due_at": now + timedelta(seconds=seconds),
            "event_lease_until": None,
            "event_last_error": error_code,
        },
        "$inc": {"event_attempts": 1},
    }
