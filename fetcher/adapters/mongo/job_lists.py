"""Which jobs a list shows, and who reads from a connection, as MongoDB is asked."""

import re
from collections.abc import Mapping
from typing import Any, Final

from bson import Binary
from pymongo import ASCENDING, DESCENDING

from fetcher.adapters.mongo.document_fields import Document, DocumentFields, id_filter
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.product_filter import product_filter
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobCursor, JobQuery
from fetcher.domain.jobs import JobStatus

FIRST_ENDED_FIRST: Final = (("completed_at", ASCENDING), ("_id", ASCENDING))
LAST_ENDED_FIRST: Final = (("completed_at", DESCENDING), ("_id", DESCENDING))

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_PARKED: Final[Document] = {"status": JobStatus.PENDING.value, "waiting_reason": {"$ne": None}}


def list_order(query: JobQuery) -> list[tuple[str, int]]:
    direction = ASCENDING if query.ascending else DESCENDING
    return [("created_at", direction), ("_id", direction)]


async def list_filter(jobs: Collection, query: JobQuery) -> Document:
    """May let jobs through that do not read from the asked connection: see :func:`reads_from`."""
    wanted: list[Document] = []
    if query.statuses:
        wanted.append({"status": {"$in": sorted(status.value for status in query.statuses)}})
    if query.product_name is not None:
        wanted.append({"metadata.source": product_filter(query.product_name)})
    if query.config_name is not None:
        wanted.append(_may_read_from(query.config_name))
    created = {"$gte": query.created_from, "$lt": query.created_until}
    bounds = {operator: bound for operator, bound in created.items() if bound is not None}
    if bounds:
        wanted.append({"created_at": bounds})
    if query.after is not None:
        wanted += await _behind(jobs, query.after, ascending=query.ascending)
    return {"$and": wanted} if wanted else {}


def parked_filter(config_name: str) -> Document:
    """Parked jobs that may read from the connection."""
    return {"dedup_active": True, **_PARKED, **_may_read_from(config_name)}


def in_use_filter(config_name: str) -> Document:
    """Active jobs that may read from the connection, without parked ones."""
    return {"dedup_active": True, "$nor": [_PARKED], **_may_read_from(config_name)}


def reads_from(document: Mapping[str, Any], config_name: str) -> bool:
    """Whether the name is a key of ``mapped_fields``, whatever characters it has."""
    mapped_fields = document.get("mapped_fields")
    return isinstance(mapped_fields, Mapping) and config_name in mapped_fields


def place_in_list(document: Mapping[str, Any]) -> JobCursor | None:
    """None for a record without a place: no page can end at it, so no list shows it."""
    fields = DocumentFields(RECORD, document)
    try:
        return JobCursor(created_at=fields.time("created_at"), job_id=JobId(fields.record_id()))
    except RecordCorrupt:
        return None


def _may_read_from(config_name: str) -> Document:
    """A record of the reference has no ``datasources``. There, a name that is no plain path is
    not asked for, so that all such records come."""
    of_reference: Document = {"datasources": {"$exists": False}}
    if _PLAIN_NAME.fullmatch(config_name):
        of_reference[f"mapped_fields.{config_name}"] = {"$exists": True}
    return {"$or": [{"datasources": config_name}, of_reference]}


async def _behind(jobs: Collection, cursor: JobCursor, *, ascending: bool) -> list[Document]:
    """The server orders ids by their subtype first, so the one of the record must be known."""
    found = await jobs.find_one(id_filter(cursor.job_id), projection=["_id"])
    record_id = Binary(cursor.job_id.bytes, 0) if found is None else found["_id"]
    further = "$gt" if ascending else "$lt"
    return [
        # for the index: the server finds no bound in an $or
        {"created_at": {f"{further}e": cursor.created_at}},
        {
            "$or": [
                {"created_at": {further: cursor.created_at}},
                {"created_at": cursor.created_at, "_id": {further: record_id}},
            ]
        },
    ]
