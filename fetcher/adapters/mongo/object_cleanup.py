"""Objects of lost attempts that could not be deleted yet (decisions), noted in the job record."""

from collections.abc import Sequence
from datetime import timedelta

from pymongo import ASCENDING

from fetcher.adapters.mongo.document_fields import Document, DocumentFields, id_filter
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.ids import JobId


class MongoObjectCleanup:
    """Implements :class:`fetcher.ports.ObjectCleanup`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def note(self, job_id: JobId, keys: Sequence[str]) -> None:
        if not keys:
            return

        async def note(turn: Turn) -> None:
            noted: Document = {
                "$min": {"cleanup_due": turn.now},
                "$addToSet": {"cleanup_keys": {"$each": list(keys)}},
            }
            await turn.jobs.update_one(id_filter(job_id), noted)

        await self._server.run(note)

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]:
        async def find(turn: Turn) -> list[tuple[JobId, tuple[str, ...]]]:
            found = turn.jobs.find(
                {"cleanup_due": {"$lte": turn.now}}, projection=["cleanup_due", "cleanup_keys"]
            )
            oldest = found.sort([("cleanup_due", ASCENDING), ("_id", ASCENDING)]).limit(limit)
            return [_read_note(document) async for document in oldest]

        return await self._server.run(find)

    async def push_back(self, job_id: JobId, *, seconds: float) -> None:
        async def push_back(turn: Turn) -> None:
            noted = {**id_filter(job_id), "cleanup_due": {"$ne": None}}
            due = turn.now + timedelta(seconds=seconds)
            await turn.jobs.update_one(noted, {"$set": {"cleanup_due": due}})

        await self._server.run(push_back)

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        async def clear(turn: Turn) -> None:
            deleted = {"$pull": {"cleanup_keys": {"$in": list(keys)}}}
            await turn.jobs.update_one(id_filter(job_id), deleted)
            # Its own write: a key noted in between keeps the note.
            nothing_left = {**id_filter(job_id), "cleanup_keys": []}
            no_note = {"$unset": {"cleanup_due": "", "cleanup_keys": ""}}
            await turn.jobs.update_one(nothing_left, no_note)

        await self._server.run(clear)


def _read_note(document: Document) -> tuple[JobId, tuple[str, ...]]:
    fields = DocumentFields(RECORD, document)
    keys = tuple(key for key in fields.items("cleanup_keys") if isinstance(key, str))
    return JobId(fields.record_id()), keys
