"""The job table as the outbox of terminal events."""

from collections.abc import Sequence
from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import age_seconds, later_ms
from fetcher.domain.errors import Unroutable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import MOST_COUNTED, EventBacklog, EventClaim
from fetcher.domain.job_transitions import UNREADABLE_SECONDS

_COLUMNS: Final = (
    "id, event_status, event_payload, event_time, event_due_at, event_attempts,"
    " traceparent, tracestate"
)
_IS_DUE: Final = """
    event_pending = 1 AND event_due_at <= :now
    AND (event_lease_until IS NULL OR event_lease_until <= :now)
"""
_SELECT: Final = f"SELECT {_COLUMNS} FROM job WHERE {_IS_DUE}"  # noqa: S608  # constants
_DUE: Final = f"{_SELECT} ORDER BY event_due_at, id LIMIT :limit"
_DUE_BY_ID: Final = f"{_SELECT} AND id = :id"
_LEASE: Final = "UPDATE job SET event_lease_until = :until WHERE id = :id"
_PUBLISHED: Final = """
    UPDATE job SET event_pending = 0, event_status = NULL, event_payload = NULL,
        event_due_at = NULL, event_lease_until = NULL, event_last_error = NULL
    WHERE id = :id AND event_pending = 1
"""
_POSTPONE: Final = """
    UPDATE job SET event_due_at = :due_at, event_attempts = event_attempts + 1,
        event_lease_until = NULL, event_last_error = :error_code
    WHERE id = :id AND event_pending = 1
"""
_BACKLOG: Final = """
    SELECT count(*) AS pending, min(completed_at) AS oldest,
        count(*) FILTER (WHERE event_last_error = :unroutable) AS unroutable
    FROM (
        SELECT completed_at, event_last_error FROM job INDEXED BY job_event_due
        WHERE event_pending = 1 LIMIT :most
    )
"""


class SqliteEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[EventClaim]:
        def find(session: Session, most: int = limit) -> list[Row]:
            if job_ids is None:
                return session.rows(_DUE, now=session.now_ms, limit=most)
            found = [
                row
                for job_id in set(job_ids)
                for row in session.rows(_DUE_BY_ID, now=session.now_ms, id=job_id.bytes)
            ]
            return sorted(found, key=lambda row: (row["event_due_at"], row["id"]))[:most]

        def claim(session: Session) -> list[EventClaim]:
            claims: list[EventClaim] = []
            # What cannot be read is put aside and must not take another's place.
            while len(claims) < limit:
                found = find(session, limit - len(claims))
                read = readable(found, _claim_of)
                ids = {claim.job_id.bytes for claim in read}
                for row in found:
                    seconds = lease_seconds if row["id"] in ids else UNREADABLE_SECONDS
                    until = later_ms(session.now_ms, seconds)
                    session.change(_LEASE, {"until": until, "id": row["id"]})
                claims += read
                if len(read) == len(found):
                    break
            return claims

        # The sweep mostly finds nothing: it must not cost a write each time.
        if not await self._database.read(find):
            return []
        return await self._database.write(claim)

    async def mark_published(self, job_id: JobId) -> None:
        await self._database.write(lambda session: session.change(_PUBLISHED, {"id": job_id.bytes}))

    async def postpone(self, job_id: JobId, *, retry_in_seconds: float, error_code: str) -> None:
        def postpone(session: Session) -> int:
            due_at = later_ms(session.now_ms, retry_in_seconds)
            return session.change(
                _POSTPONE, {"id": job_id.bytes, "due_at": due_at, "error_code": error_code}
            )

        await self._database.write(postpone)

    async def backlog(self) -> EventBacklog:
        def count(session: Session) -> EventBacklog:
            row = session.rows(_BACKLOG, unroutable=Unroutable.code, most=MOST_COUNTED)[0]
            return EventBacklog(
                pending=row["pending"],
                oldest_seconds=age_seconds(row["oldest"], session.now_ms),
                unroutable=row["unroutable"],
            )

        return await self._database.read(count)


def _claim_of(row: Row) -> EventClaim:
    return EventClaim(
        job_id=rows.job_id_of(row),
        mark=rows.mark_of(row),
        attempts=row["event_attempts"],
        trace=rows.trace_of(row),
    )
