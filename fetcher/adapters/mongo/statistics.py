"""Numbers over the job collection: what is grouped is grouped by the server."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fetcher.adapters.mongo.document_fields import LAST_TIME, Document
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.activity import EndedMinute
from fetcher.domain.job_store import MOST_COUNTED
from fetcher.domain.jobs import JobStatus

_TERMINAL: Final = [status.value for status in JobStatus if not status.is_active]

_ENDED_MS: Final = {"$toLong": "$completed_at"}
_RUN_MS: Final = {
    "$cond": [
        {"$eq": [{"$type": "$started_at"}, "date"]},
        {"$max": [0, {"$subtract": ["$completed_at", "$started_at"]}]},
        None,
    ]
}
_BY_MINUTE: Final[Sequence[Document]] = (
    {
        "$project": {
            "status": 1,
            "minute": {"$subtract": [_ENDED_MS, {"$mod": [_ENDED_MS, 60_000]}]},
            "run_ms": _RUN_MS,
        }
    },
    {
        "$group": {
            "_id": {"minute": "$minute", "status": "$status"},
            "jobs": {"$sum": 1},
            "timed": {"$sum": {"$cond": [{"$eq": ["$run_ms", None]}, 0, 1]}},
            "total_ms": {"$sum": "$run_ms"},
            "longest_ms": {"$max": "$run_ms"},
        }
    },
)


class MongoStatistics:
    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def count_by_status(self) -> Mapping[JobStatus, int]:
        async def count(turn: Turn) -> Mapping[JobStatus, int]:
            return {
                each: await turn.jobs.count_documents({"status": each.value}, limit=MOST_COUNTED)
                for each in JobStatus
            }

        return await self._server.run(count)

    async def ended_by_minute(self, *, since: datetime) -> Sequence[EndedMinute]:
        # By the type of the bound, only dates are compared with it.
        wanted: Document = {
            "completed_at": {"$gte": since, "$lt": LAST_TIME},
            "status": {"$in": _TERMINAL},
        }

        async def group(turn: Turn) -> Sequence[EndedMinute]:
            found = await turn.jobs.aggregate([{"$match": wanted}, *_BY_MINUTE])
            minutes = [_ended_minute(document, since) async for document in found]
            return sorted(minutes, key=lambda each: (each.minute, each.status))

        return await self._server.run(group)


def _ended_minute(document: Mapping[str, Any], since: datetime) -> EndedMinute:
    place = document["_id"]
    return EndedMinute(
        minute=datetime.fromtimestamp(int(place["minute"]) / 1000, since.tzinfo),
        status=JobStatus(place["status"]),
        jobs=int(document["jobs"]),
        timed=int(document["timed"]),
        total_seconds=int(document["total_ms"] or 0) / 1000,
        longest_seconds=int(document["longest_ms"] or 0) / 1000,
    )
