"""What has had its time, in MongoDB."""

from datetime import timedelta
from typing import Final

from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.job_lists import FIRST_ENDED_FIRST
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import JobStatus
from fetcher.domain.retention import KeptResult

_COMPLETED: Final = JobStatus.COMPLETED.value
_ENDED: Final = [status.value for status in JobStatus if not status.is_active]


class MongoRetention:
    """Implements :class:`fetcher.ports.JobRetention`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def find_results(
        self, *, older_than_seconds: float, after: EndedCursor | None, limit: int
    ) -> list[KeptResult]:
        async def find(turn: Turn) -> list[KeptResult]:
            ended: Document = {"$lt": turn.now - timedelta(seconds=older_than_seconds)}
            if after is not None:
                ended["$gte"] = after.completed_at
            wanted = {"status": _COMPLETED, "result_deleted_at": None, "completed_at": ended}
            fields = ["completed_at", "result_path"]
            kept: list[KeptResult] = []
            found = turn.jobs.find(wanted, fields, batch_size=limit + 1).sort(FIRST_ENDED_FIRST)
            async with found as documents:
                async for document in documents:
                    result = _kept(document)
                    # The cursor's own instant is read again: others may come after it in there.
                    if result is not None and (after is None or _is_after(result.place, after)):
                        kept.append(result)
                    if len(kept) == limit:
                        break
            return kept

        return await self._server.run(find)

    async def delete_jobs(self, *, older_than_seconds: float, limit: int) -> int:
        async def delete(turn: Turn) -> int:
            wanted: Document = {
                "status": {"$in": _ENDED},
                "completed_at": {"$lt": turn.now - timedelta(seconds=older_than_seconds)},
                "metadata.terminalEventPending": {"$ne": True},
                "cleanup_due": None,
                "$or": [
                    {"status": {"$ne": _COMPLETED}},
                    {"result_path": {"$in": [None, ""]}},
                    {"result_deleted_at": {"$ne": None}},
                ],
            }
            found = turn.jobs.find(wanted, {"_id": True}).sort(FIRST_ENDED_FIRST).limit(limit)
            ids = [document["_id"] async for document in found]
            if not ids:
                return 0
            # The conditions once more: what has become due meanwhile stays.
            deleted = await turn.jobs.delete_many({**wanted, "_id": {"$in": ids}})
            return deleted.deleted_count

        return await self._server.run(delete)


def _kept(document: Document) -> KeptResult | None:
    """None for a job without a result, and for a record that cannot be read: its end is told by
    whoever asks for it."""
    fields = DocumentFields(RECORD, document)
    try:
        path = fields.text("result_path")
        place = EndedCursor(
            completed_at=fields.time("completed_at"), job_id=JobId(fields.record_id())
        )
    except RecordCorrupt:
        return None
    return KeptResult(place=place, path=path) if path else None


def _is_after(place: EndedCursor, other: EndedCursor) -> bool:
    return (place.completed_at, place.job_id) > (other.completed_at, other.job_id)
