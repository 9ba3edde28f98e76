"""The job table as the outbox of work messages."""

from collections.abc import Mapping, Sequence
from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_rows import find_job, save_state, sorted_out
from fetcher.adapters.sqlite.rows import job_id_of
from fetcher.adapters.sqlite.times import age_seconds, from_ms, later_ms
from fetcher.domain import job_transitions as transitions
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    MOST_COUNTED,
    ActiveJobs,
    DispatchBacklog,
    DispatchClaim,
    RedriveAnswer,
)
from fetcher.domain.job_transitions import UNREADABLE_SECONDS
from fetcher.domain.jobs import Job

_IS_DUE: Final = """
    status = 'pending' AND dispatched_at IS NULL
    AND (due_at IS NULL OR due_at <= :now)
    AND (dispatch_lease_until IS NULL OR dispatch_lease_until <= :now)
"""
_SELECT: Final = f"SELECT * FROM job WHERE {_IS_DUE}"  # noqa: S608  # constants
_DUE: Final = f"{_SELECT} ORDER BY created_at, id LIMIT :limit"
_DUE_BY_ID: Final = f"{_SELECT} AND id = :id"
_LEASE: Final = "UPDATE job SET dispatch_lease_until = :until WHERE id = :id"
_BACKLOG: Final = """
    SELECT count(*) AS dispatched, count(*) FILTER (WHERE dispatched_at <= :until) AS stale
    FROM job WHERE status = 'pending' AND dispatched_at IS NOT NULL
"""
_UNDISPATCHED: Final = """
    SELECT count(*) FILTER (WHERE due_at IS NULL OR due_at <= :now) AS due,
        count(*) FILTER (WHERE due_at > :now) AS parked,
        min(coalesce(due_at, created_at))
            FILTER (WHERE due_at IS NULL OR due_at <= :now) AS oldest
    FROM (
        SELECT due_at, created_at FROM job INDEXED BY job_undispatched
        WHERE status = 'pending' AND dispatched_at IS NULL LIMIT :most
    )
"""
_DISPATCHED: Final = """
    SELECT count(*) AS n, min(dispatched_at) AS oldest FROM (
        SELECT dispatched_at FROM job INDEXED BY job_dispatched
        WHERE status = 'pending' AND dispatched_at IS NOT NULL
        ORDER BY dispatched_at LIMIT :most
    )
"""
_PROCESSING: Final = """
    SELECT count(*) AS n FROM (
        SELECT 1 FROM job INDEXED BY job_leased WHERE status = 'processing' LIMIT :most
    )
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
        def find(session: Session, most: int = limit) -> list[Row]:
            if job_ids is None:
                return session.rows(_DUE, now=session.now_ms, limit=most)
            found = [
                row
                for job_id in set(job_ids)
                for row in session.rows(_DUE_BY_ID, now=session.now_ms, id=job_id.bytes)
            ]
            return sorted(found, key=lambda row: (row["created_at"], row["id"]))[:most]

        def claim(session: Session) -> list[DispatchClaim]:
            claimed: list[Job] = []
            # What cannot be read is put aside and must not take another's place.
            while len(claimed) < limit:
                jobs, unreadable = sorted_out(find(session, limit - len(claimed)))
                _lease(session, [job.id.bytes for job in jobs], lease_seconds)
                claimed += jobs
                if not unreadable:
                    break
                _lease(session, unreadable, UNREADABLE_SECONDS)
            return [DispatchClaim(job=job, dispatch_seq=job.dispatch_seq) for job in claimed]

        # The sweep mostly finds nothing: it must not cost a write each time.
        if job_ids is None and not await self._database.read(find):
            return []
        return await self._database.write(claim)

    async def mark_dispatched(self, dispatched: Mapping[JobId, int]) -> int:
        def mark(session: Session) -> int:
            return sum(
                session.change(
                    "UPDATE job SET dispatched_at = :now, dispatch_lease_until = NULL"
                    " WHERE id = :id AND status = 'pending' AND dispatch_seq = :dispatch_seq",
                    {"now": session.now_ms, "id": job_id.bytes, "dispatch_seq": dispatch_seq},
                )
                for job_id, dispatch_seq in dispatched.items()
            )

        return await self._database.write(mark)

    async def backlog(self, *, older_than_seconds: float) -> DispatchBacklog:
        def count(session: Session) -> DispatchBacklog:
            until = later_ms(session.now_ms, -older_than_seconds)
            row = session.rows(_BACKLOG, until=until)[0]
            return DispatchBacklog(dispatched=row["dispatched"], stale=row["stale"])

        return await self._database.read(count)

    async def active_jobs(self) -> ActiveJobs:
        def look(session: Session) -> ActiveJobs:
            waiting = session.rows(_UNDISPATCHED, now=session.now_ms, most=MOST_COUNTED)[0]
            sent = session.rows(_DISPATCHED, most=MOST_COUNTED)[0]
            return ActiveJobs(
                undispatched=waiting["due"],
                dispatched=sent["n"],
                parked=waiting["parked"],
                processing=session.rows(_PROCESSING, most=MOST_COUNTED)[0]["n"],
                oldest_undispatched_seconds=age_seconds(waiting["oldest"], session.now_ms),
                oldest_dispatched_seconds=age_seconds(sent["oldest"], session.now_ms),
            )

        return await self._database.read(look)

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


def _lease(session: Session, record_ids: Sequence[bytes], seconds: float) -> None:
    until = later_ms(session.now_ms, seconds)
    for record_id in record_ids:
        session.change(_LEASE, {"until": until, "id": record_id})


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
