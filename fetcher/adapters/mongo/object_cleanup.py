"""Objects of lost attempts that could not be deleted yet (decisions), noted in the job record."""

from collections.abc import Sequence
from datetime import timedelta

from pymongo import ASCENDING

from fetcher.adapters.mongo.document_fields import Document, DocumentFields, id_filter
from fetcher.adapters.mongo.job_documents import RECORD
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.ids import JobId
from fetcher.domain.job_transitions import UNREADABLE_SECONDS
from fetcher.domain.result_keys import LATE_WRITE_SECONDS


class MongoObjectCleanup:
    """Implements :class:`fetcher.ports.ObjectCleanup`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def note(
        self, job_id: JobId, keys: Sequence[str], *, late_seconds: float = LATE_WRITE_SECONDS
    ) -> None:
        if not keys:
            return

        async def note(turn: Turn) -> None:
            noted: Document = {
                "$min": {"cleanup_due": turn.now},
                "$max": {"cleanup_until": turn.now + timedelta(seconds=late_seconds)},
                "$addToSet": {"cleanup_keys": {"$each": list(keys)}},
            }
            await turn.jobs.update_one(id_filter(job_id), noted)

        await self._server.run(note)

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]:
        async def find(turn: Turn) -> list[tuple[JobId, tuple[str, ...]]]:
            due: Document = {"cleanup_due": {"$lte": turn.now}}
            order = [("cleanup_due", ASCENDING), ("_id", ASCENDING)]
            while True:
                found = turn.jobs.find(due, projection=["cleanup_due", "cleanup_keys"])
                oldest = await found.sort(order).limit(limit).to_list()
                notes = [(document["_id"], readable(document, _read_note)) for document in oldest]
                unreadable = [record_id for record_id, note in notes if note is None]
                if not unreadable:
                    return [note for _, note in notes if note is not None]
                later = turn.now + timedelta(seconds=UNREADABLE_SECONDS)
                await turn.jobs.update_many(
                    {**due, "_id": {"$in": unreadable}}, {"$set": {"cleanup_due": later}}
                )

        return await self._server.run(find)

    async def push_back(self, job_id: JobId, *, seconds: float) -> None:
        async def push_back(turn: Turn) -> None:
            noted = {**id_filter(job_id), "cleanup_due": {"$ne": None}}
            due = turn.now + timedelta(seconds=seconds)
            await turn.jobs.update_one(noted, {"$set": {"cleanup_due": due}})

        await self._server.run(push_back)

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        async def clear(turn: Turn) -> None:
            # Each write is judged anew: what is noted in between keeps its note, and its time.
            again = {
                **id_filter(job_id),
                "cleanup_until": {"$gt": turn.now},
                "cleanup_keys": {"$not": {"$elemMatch": {"$nin": list(keys)}}},
            }
            document = await turn.jobs.find_one(again, projection=["cleanup_until"])
            if document is not None:
                until = document["cleanup_until"]
                await turn.jobs.update_one(
                    {**again, "cleanup_until": until}, {"$set": {"cleanup_due": until}}
                )
                return
            over = {**id_filter(job_id), "cleanup_until": {"$not": {"$gt": turn.now}}}
            deleted = {"$pull": {"cleanup_keys": {"$in": list(keys)}}}
            await turn.jobs.update_one(over, deleted)
            no_note = {"$unset": {"cleanup_due": "", "cleanup_until": "", "cleanup_keys": ""}}
            await turn.jobs.update_one({**over, "cleanup_keys": []}, no_note)

        await self._server.run(clear)


def _read_note(document: Document) -> tuple[JobId, tuple[str, ...]]:
    fields = DocumentFields(RECORD, document)
    keys = tuple(key for key in fields.items("cleanup_keys") if isinstance(key, str))
    return JobId(fields.record_id()), keys
