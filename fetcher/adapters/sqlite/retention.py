"""What has had its time, in SQLite."""

from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite import json_columns, rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.times import nearest_time, to_ms
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.retention import KeptResult

RESULTS: Final = """
    SELECT id, completed_at, result_path FROM job
    WHERE status = 'completed' AND result_path IS NOT NULL AND result_deleted_at IS NULL
    AND completed_at < :until AND (completed_at, id) > (:time, :id)
    ORDER BY completed_at, id LIMIT :limit
"""
JOBS: Final = """
    SELECT id, created_at, mapped_fields FROM job
    WHERE completed_at IS NOT NULL AND completed_at < :until
    AND status IN ('completed', 'failed', 'cancelled')
    AND event_pending = 0 AND cleanup_due IS NULL
    AND (status <> 'completed' OR result_path IS NULL OR result_deleted_at IS NOT NULL)
    ORDER BY completed_at, id LIMIT :limit
"""
_DELETE: Final = "DELETE FROM job WHERE id = :id"
_DELETE_SOURCE: Final = """
    DELETE FROM job_source
    WHERE config_name = :config_name AND created_at = :created_at AND job_id = :id
"""
_DELETE_SOURCES: Final = "DELETE FROM job_source WHERE job_id = :id"
_DELETE_KEYS: Final = "DELETE FROM job_key WHERE job_id = :id"
_BEFORE_ALL_TIME: Final = -1


class SqliteRetention:
    """Implements :class:`fetcher.ports.JobRetention`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_results(
        self, *, older_than_seconds: float, after: EndedCursor | None, limit: int
    ) -> list[KeptResult]:
        time = to_ms(after.completed_at) if after is not None else _BEFORE_ALL_TIME
        job_id = after.job_id.bytes if after is not None else b""

        def find(session: Session) -> list[KeptResult]:
            until = session.old_ms(older_than_seconds)
            found = session.rows(RESULTS, until=until, time=time, id=job_id, limit=limit)
            return [_kept(row) for row in found]

        return await self._database.read(find)

    async def delete_jobs(self, *, older_than_seconds: float, limit: int) -> int:
        def delete(session: Session) -> int:
            until = session.old_ms(older_than_seconds)
            found = session.rows(JOBS, until=until, limit=limit)
            for row in found:
                _delete_sources(session, row)
                session.change(_DELETE_KEYS, {"id": row["id"]})
                session.change(_DELETE, {"id": row["id"]})
            return len(found)

        return await self._database.write(delete)


def _kept(row: Row) -> KeptResult:
    place = EndedCursor(completed_at=nearest_time(row["completed_at"]), job_id=rows.job_id_of(row))
    return KeptResult(place=place, path=row["result_path"])


def _delete_sources(session: Session, row: Row) -> None:
    try:
        sources = json_columns.load(
            "mapped_fields", row["mapped_fields"], json_columns.plain_object
        )
    except RecordCorrupt:
        # Without their names they are looked for among all: rare, and nothing stays behind.
        session.change(_DELETE_SOURCES, {"id": row["id"]})
        return
    for config_name in sources:
        values: rows.Values = {
            "config_name": config_name,
            "created_at": row["created_at"],
            "id": row["id"],
        }
        session.change(_DELETE_SOURCE, values)
