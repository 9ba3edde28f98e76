"""The outbox collection of the reference: drained, and never written to otherwise (decisions).

Its own dispatchers may work on it beside us. We claim as they do (spec worker-and-events 8.8): a
record that still is as it was read becomes ``PROCESSING`` under a token and with a new
``updated_at``, which is also what a claim's age is counted from.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from pymongo import ASCENDING

from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.server import Collection, MongoServer, Turn
from fetcher.domain.reference_events import ReferenceRecord

COLLECTION: Final = "streaming_outbox_events"
EVENT_TYPE: Final = "lerian.streaming.publish"
STUCK_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 300.0
TOO_MANY_ATTEMPTS: Final = "max dispatch attempts exceeded"
"""What the reference writes where it gave up on an event that a broker did not take."""


class MongoReferenceOutbox:
    """Implements :class:`fetcher.ports.ReferenceOutbox`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def claim_due(self, *, limit: int) -> list[ReferenceRecord]:
        async def claim(turn: Turn) -> list[ReferenceRecord]:
            outbox = _outbox(turn)
            claims: list[ReferenceRecord] = []
            for document in await _due(outbox, turn.now, limit=limit):
                token = str(uuid4())
                unchanged = {name: document.get(name) for name in ("_id", "status", "updated_at")}
                taken = await outbox.update_one(
                    unchanged,
                    {"$set": _changed(turn, "PROCESSING", claim_token=token)},
                )
                if taken.modified_count:
                    claims.append(_record(document, token))
            return claims

        return await self._server.run(claim)

    async def mark_published(self, record: ReferenceRecord) -> None:
        await self._end_claim(record, "PUBLISHED")

    async def postpone(self, record: ReferenceRecord, *, problem: str) -> None:
        await self._end_claim(record, "FAILED", last_error=problem)

    async def refuse(self, record: ReferenceRecord, *, problem: str) -> None:
        await self._end_claim(record, "INVALID", last_error=problem)

    async def _end_claim(self, record: ReferenceRecord, status: str, **fields: object) -> None:
        async def end(turn: Turn) -> None:
            changed = _changed(turn, status, **fields)
            if status == "PUBLISHED":
                changed["published_at"] = turn.now
            await _outbox(turn).update_one(
                {"_id": record.key, "status": "PROCESSING", "claim_token": record.token},
                {"$set": changed, "$unset": {"claim_token": ""}},
            )

        await self._server.run(end)


def _outbox(turn: Turn) -> Collection:
    return turn.database[COLLECTION]


async def _due(outbox: Collection, now: datetime, *, limit: int) -> list[Document]:
    """In the order of the reference; last what it gave up on. The collection need not exist, and
    where nothing is due, which is nearly always, that is one question."""
    stuck = {"$lte": now - timedelta(seconds=STUCK_SECONDS)}
    rested = {"$lte": now - timedelta(seconds=RETRY_SECONDS)}
    kinds: tuple[Document, ...] = (
        {"status": "PROCESSING", "updated_at": stuck},
        {"status": "FAILED", "updated_at": rested},
        {"status": "PENDING"},
        {"status": "INVALID", "last_error": TOO_MANY_ATTEMPTS},
    )
    found: list[Document] = []
    if await outbox.find_one({"event_type": EVENT_TYPE, "$or": list(kinds)}, ["_id"]) is None:
        return found
    for kind in kinds:
        if len(found) < limit:
            cursor = outbox.find(
                {**kind, "event_type": EVENT_TYPE},
                sort=[("created_at", ASCENDING), ("id", ASCENDING)],
                limit=limit - len(found),
            )
            found += await cursor.to_list()
    return found


def _changed(turn: Turn, status: str, **fields: object) -> Document:
    return {"status": status, "updated_at": turn.now, **fields}


def _record(document: Document, token: str) -> ReferenceRecord:
    record_id, payload = document.get("id"), document.get("payload")
    return ReferenceRecord(
        key=document["_id"],
        token=token,
        record_id=record_id if isinstance(record_id, str) else str(document["_id"]),
        payload=payload if isinstance(payload, str) else "",
    )
