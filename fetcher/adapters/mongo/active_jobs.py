"""How many jobs are where, and how long the oldest have waited."""

from datetime import datetime
from typing import Final

from pymongo import ASCENDING

from fetcher.adapters.mongo.document_fields import FIRST_TIME, LAST_TIME, Document, DocumentFields
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.server import Turn
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.job_store import MOST_COUNTED, ActiveJobs
from fetcher.domain.jobs import JobStatus

_PENDING: Final[Document] = {"status": JobStatus.PENDING.value}
_PROCESSING: Final[Document] = {"status": JobStatus.PROCESSING.value}
_UNDISPATCHED: Final[Document] = {**_PENDING, "dispatched_at": {"$eq": None, "$type": "null"}}
_DISPATCHED: Final[Document] = {**_PENDING, "dispatched_at": {"$type": "date"}}
_BY_THE_REFERENCE: Final[Document] = {**_PENDING, "dispatched_at": {"$exists": False}}
"""Dispatched when it was created."""

_FRESH: Final[Document] = {"due_at": None, "attempt": {"$not": {"$gt": 0}}}
_PUT_BACK: Final[Document] = {**_UNDISPATCHED, "due_at": None, "attempt": {"$gt": 0}}


async def look_at_active(turn: Turn) -> ActiveJobs:
    """Runs on the asyncio side. Each question is served by an index of the pending jobs; where
    there is none of those, as with most of many tenants, no more is asked of them."""
    processing = await _count(turn, _PROCESSING)
    if await turn.jobs.find_one(_PENDING, ["_id"]) is None:
        return ActiveJobs(
            undispatched=0,
            dispatched=0,
            parked=0,
            processing=processing,
            oldest_undispatched_seconds=0.0,
            oldest_dispatched_seconds=0.0,
        )
    now = turn.now
    due = {"due_at": {"$lte": now}}
    waiting = await _count(turn, _UNDISPATCHED)
    parked = await _count(turn, {**_UNDISPATCHED, "due_at": {"$gt": now}})
    dispatched = await _count(turn, _DISPATCHED) + await _count(turn, _BY_THE_REFERENCE)
    return ActiveJobs(
        undispatched=max(0, waiting - parked),
        dispatched=min(dispatched, MOST_COUNTED),
        parked=parked,
        processing=processing,
        oldest_undispatched_seconds=max(
            await _oldest(turn, {**_UNDISPATCHED, **_FRESH}, "created_at", now),
            await _put_back(turn, now),
            await _oldest(turn, {**_UNDISPATCHED, **due}, "due_at", now),
        ),
        oldest_dispatched_seconds=max(
            await _oldest(turn, _DISPATCHED, "dispatched_at", now),
            await _oldest(turn, _BY_THE_REFERENCE, "created_at", now),
        ),
    )


async def _count(turn: Turn, which: Document) -> int:
    return await turn.jobs.count_documents(which, limit=MOST_COUNTED)


async def _oldest(turn: Turn, which: Document, since: str, now: datetime) -> float:
    readable = {**which, since: {**which.get(since, {}), "$gte": FIRST_TIME, "$lte": now}}
    found = await turn.jobs.find_one(readable, projection=[since], sort=[(since, ASCENDING)])
    started = DocumentFields(RECORD, found or {}).optional_time(since)
    return max(0.0, (now - started).total_seconds()) if started is not None else 0.0


async def _put_back(turn: Turn, now: datetime) -> float:
    """A job that an attempt gave back waits since that attempt's end: it is due without a time."""
    found = await turn.jobs.find_one(
        {**_PUT_BACK, "created_at": {"$gte": FIRST_TIME, "$lt": LAST_TIME}},
        projection={"created_at": 1, "attempts": {"$slice": -1}},
        sort=[("created_at", ASCENDING)],
    )
    if found is None:
        return 0.0
    ended_at = _last_end(found)
    since = ended_at or DocumentFields(RECORD, found).optional_time("created_at") or now
    return max(0.0, (now - since).total_seconds())


def _last_end(found: Document) -> datetime | None:
    """None also where the last attempt cannot be read: this measures, and judges no record."""
    try:
        last = DocumentFields(RECORD, found).items("attempts")
        if not last or not isinstance(last[0], dict):
            return None
        return DocumentFields(RECORD, last[0]).optional_time("ended_at")
    except RecordCorrupt:
        return None
