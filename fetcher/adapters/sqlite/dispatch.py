"""The job table as the outbox of work messages."""

from collections.abc import Mapping, Sequence
from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_rows import find_job, readable_jobs, save_state
from fetcher.adapters.sqlite.rows import job_id_of
from fetcher.adapters.sqlite.times import from_ms, later_ms
from fetcher.domain import job_transitions as transitions
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import DispatchBacklog, DispatchClaim, RedriveAnswer

_IS_DUE: Final = """
    status = 'pending' AND dispatched_at IS NULL
    AND (due_at IS NULL OR due_at <= :now)
    AND (dispatch_lease_until IS NULL OR dispatch_lease_until <= :now)
"""
_SELECT: Final = f"SELECT * FROM job WHERE {_IS_DUE}"  # noqa: S608  # constants
_DUE: Final = f"{_SELECT} ORDER BY created_at, id LIMIT :limit"
_DUE_BY_ID: Final = f"{_SELECT} AND id = :id"
_BACKLOG: Final = """
    SELECT count(*) AS dispatched, count(*) FILTER (WHERE dispatched_at <= :until) AS stale
    FROM job WHERE status = 'pending' AND dispatched_at IS NOT NULL
"""
_DISPATCH_AGAIN: Final = """
    UPDATE job SET dispatched_at = NULL, dispatch_seq = dispatch_seq + 1,
        dispatch_lease_until = NULL
    WHERE id IN (
        SELECT id FROM job WHERE status = 'pending' AND dispatched_at <= :until
        ORDER BY dispatched_at, id LIMIT :limit
    )
"""
# Not by the table of who reads from where: that has all jobs that ever did.
_PARKED: Final = """
    SELECT id FROM job INDEXED BY job_undispatched
    WHERE status = 'pending' AND dispatched_at IS NULL
    AND waiting_reason IS NOT NULL AND due_at > :now
    AND EXISTS (
        SELECT 1 FROM job_source
        WHERE config_name = :config_name AND created_at = job.created_at AND job_id = job.id
    )
    ORDER BY created_at, id
"""


class SqliteDispatch:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_due(
        self, *, limit: int, lease_seconds: float, job_ids: Sequence[JobId] | None = None
    ) -> list[DispatchClaim]:
        def find(session: Session) -> list[Row]:
            if job_ids is None:
                return session.rows(_DUE, now=session.now_ms, limit=limit)
            found = [
                row
                for job_id in set(job_ids)
                for row in session.rows(_DUE_BY_ID, now=session.now_ms, id=job_id.bytes)
            ]
            return sorted(found, key=lambda row: (row["created_at"], row["id"]))[:limit]

        def claim(session: Session) -> list[DispatchClaim]:
            until = later_ms(session.now_ms, lease_seconds)
            found = find(session)
            for row in found:
                session.change(
                    "UPDATE job SET dispatch_lease_until = :until WHERE id = :id",
                    {"until": until, "id": row["id"]},
                )
            return [
                DispatchClaim(job=job, dispatch_seq=job.dispatch_seq)
                for job in readable_jobs(found)
            ]

        # The sweep mostly finds nothing: it must not cost a write each time.
        if not await self._database.read(find):
            return []
        return await self._database.write(claim)

    async def mark_dispatched(self, job_id: JobId, dispatch_seq: int) -> bool:
        def mark(session: Session) -> bool:
            marked = session.change(
                "UPDATE job SET dispatched_at = :now, dispatch_lease_until = NULL"
                " WHERE id = :id AND status = 'pending' AND dispatch_seq = :dispatch_seq",
                {"now": session.now_ms, "id": job_id.bytes, "dispatch_seq": dispatch_seq},
            )
            return marked == 1

        return await self._database.write(mark)

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog:
        def count(session: Session) -> DispatchBacklog:
            until = later_ms(session.now_ms, -older_than_seconds)
            row = session.rows(_BACKLOG, until=until)[0]
            return DispatchBacklog(dispatched=row["dispatched"], stale=row["stale"])

        return await self._database.read(count)

    async def dispatch_again(self, *, older_than_seconds: float, limit: int) -> int:
        def again(session: Session) -> int:
            until = later_ms(session.now_ms, -older_than_seconds)
            return session.change(_DISPATCH_AGAIN, {"until": until, "limit": limit})

        return await self._database.write(again)

    async def wake_parked(self, config_name: str, *, told: int) -> list[JobId]:
        def find(session: Session) -> list[Row]:
            return session.rows(_PARKED, config_name=config_name, now=session.now_ms)

        def wake(session: Session) -> list[JobId]:
            found = find(session)
            for row in found:
                session.change("UPDATE job SET due_at = NULL WHERE id = :id", {"id": row["id"]})
            return [job_id_of(row) for row in found[:told]]

        # Mostly nobody waits: that must not cost a write each time.
        if not await self._database.read(find):
            return []
        return await self._database.write(wake)

    async def redrive(self, job_ids: Sequence[JobId]) -> Mapping[JobId, RedriveAnswer]:
        def redrive(session: Session) -> Mapping[JobId, RedriveAnswer]:
            return {job_id: _redriven(session, job_id) for job_id in job_ids}

        return await self._database.write(redrive)


def _redriven(session: Session, job_id: JobId) -> RedriveAnswer:
    try:
        job = find_job(session, job_id)
    except RecordCorrupt:
        return RedriveAnswer.UNREADABLE
    if job is None:
        return RedriveAnswer.UNKNOWN
    redriven = transitions.redriven(job, from_ms(session.now_ms))
    if isinstance(redriven, RedriveAnswer):
        return redriven
    save_state(session, redriven)
    return RedriveAnswer.DISPATCHED
