"""The audit trail in MongoDB: a collection of its own, ``audit``."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from bson import Binary
from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError, OperationFailure

from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.adapters.together import Together
from fetcher.domain.audit import AuditAction, AuditCursor, AuditEntry, AuditPage, AuditQuery
from fetcher.domain.errors import RecordCorrupt

RECORD: Final = "audit entry"
DUPLICATE_KEY: Final = 11000
_ACTIONS: Final = {each.value: each for each in AuditAction}
NEWEST: Final = [("time", DESCENDING), ("_id", DESCENDING)]
OLDEST: Final = [("time", ASCENDING), ("_id", ASCENDING)]


class MongoAudit:
    """Implements :class:`fetcher.ports.AuditTrail`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server
        self._appends = Together(self._append)

    async def append(self, entry: AuditEntry) -> None:
        await self._appends.ask(entry)

    async def _append(self, entries: Sequence[AuditEntry]) -> Mapping[AuditEntry, None]:
        documents = [_document(entry) for entry in entries]

        async def insert(turn: Turn) -> bool:
            try:
                await turn.audit.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                problems = (*error.details["writeConcernErrors"], *error.details["writeErrors"])
                others = [each["code"] for each in problems if each["code"] != DUPLICATE_KEY]
                if others:
                    raise OperationFailure("", code=others[0]) from None
                # They come from an earlier try whose answer was lost.
            return True

        async def settle(turn: Turn) -> bool | None:
            ids = [document["_id"] for document in documents]
            return await turn.audit.count_documents({"_id": {"$in": ids}}) == len(ids) or None

        await self._server.run(insert, settle=settle)
        return {}

    async def list_page(self, query: AuditQuery) -> AuditPage:
        wanted: Document = {
            name: value
            for name, value in (
                ("actor", query.actor),
                ("action", query.action.value if query.action is not None else None),
                ("target", query.target),
            )
            if value is not None
        }
        before = query.before
        if before is not None:
            wanted["time"] = {"$lte": before.time}

        async def read(turn: Turn) -> AuditPage:
            size = query.limit + 1
            page: list[tuple[AuditCursor, Document]] = []
            found = turn.audit.find(wanted, batch_size=size).sort(NEWEST)
            async with found as documents:
                async for document in documents:
                    place = _place(document)
                    # The cursor's own instant is read again: others may come after it in there.
                    if place is not None and (
                        before is None or (place.time, place.id) < (before.time, before.id)
                    ):
                        page.append((place, document))
                    if len(page) == size:
                        break
            entries = [_entry(document) for _, document in page[: query.limit]]
            return AuditPage(
                items=tuple(entry for entry in entries if entry is not None),
                next=page[query.limit - 1][0] if len(page) == size else None,
            )

        return await self._server.run(read)

    async def delete_old(self, *, older_than_seconds: float, limit: int) -> int:
        async def delete(turn: Turn) -> int:
            old = {"time": {"$lt": turn.now - timedelta(seconds=older_than_seconds)}}
            found = turn.audit.find(old, {"_id": True}).sort(OLDEST).limit(limit)
            ids = [document["_id"] async for document in found]
            if not ids:
                return 0
            deleted = await turn.audit.delete_many({"_id": {"$in": ids}})
            return deleted.deleted_count

        return await self._server.run(delete)


def _document(entry: AuditEntry) -> Document:
    return {
        "_id": Binary(entry.id.bytes, 0),
        "time": entry.time,
        "actor": entry.actor,
        "action": entry.action.value,
        "target": entry.target,
        "product": entry.product,
        "request_id": entry.request_id,
        "outcome": entry.outcome,
    }


def _place(document: Document) -> AuditCursor | None:
    """None for one without a place: no page can end at it, so no page shows it."""
    fields = DocumentFields(RECORD, document)
    try:
        return AuditCursor(time=fields.time("time"), id=fields.record_id())
    except RecordCorrupt:
        return None


def _entry(document: Document) -> AuditEntry | None:
    """None for one that cannot be read."""
    fields = DocumentFields(RECORD, document)
    try:
        action = _ACTIONS.get(fields.text("action"))
        if action is None:
            return None
        return AuditEntry(
            id=fields.record_id(),
            time=fields.time("time"),
            actor=fields.text("actor"),
            action=action,
            target=fields.text("target"),
            product=fields.text("product"),
            request_id=fields.text("request_id"),
            outcome=fields.text("outcome"),
        )
    except RecordCorrupt:
        return None
