"""Numbers over the job table."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.times import LATEST_MS, from_ms, to_ms
from fetcher.domain.activity import EndedMinute
from fetcher.domain.job_store import MOST_COUNTED
from fetcher.domain.jobs import JobStatus

_COUNT: Final = """
    SELECT count(*) FROM (SELECT 1 FROM job WHERE status = :status LIMIT :most)
"""
_ENDED: Final = """
    SELECT completed_at / 60000 * 60000 AS minute, status,
        count(*) AS jobs, count(started_at) AS timed,
        total(max(completed_at - started_at, 0)) AS total_ms,
        coalesce(max(max(completed_at - started_at, 0)), 0) AS longest_ms
    FROM job INDEXED BY job_ended WHERE completed_at BETWEEN :since AND :until
    GROUP BY minute, status ORDER BY minute, status
"""


class SqliteStatistics:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_by_status(self) -> Mapping[JobStatus, int]:
        def count(session: Session) -> Mapping[JobStatus, int]:
            return {
                each: session.rows(_COUNT, status=each, most=MOST_COUNTED)[0][0]
                for each in JobStatus
            }

        return await self._database.read(count)

    async def ended_by_minute(self, *, since: datetime) -> Sequence[EndedMinute]:
        def group(session: Session) -> Sequence[EndedMinute]:
            return [
                EndedMinute(
                    minute=from_ms(row["minute"]),
                    status=JobStatus(row["status"]),
                    jobs=row["jobs"],
                    timed=row["timed"],
                    total_seconds=row["total_ms"] / 1000,
                    longest_seconds=row["longest_ms"] / 1000,
                )
                for row in session.rows(_ENDED, since=to_ms(since), until=LATEST_MS)
                if row["status"] in frozenset(JobStatus)
            ]

        return await self._database.read(group)
