"""Leases that ran out, in SQLite."""

from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_rows import (
    end_job,
    find_job,
    next_end,
    save_state,
    sorted_out,
)
from fetcher.adapters.sqlite.times import from_ms, later_ms, to_ms
from fetcher.domain import job_transitions as transitions
from fetcher.domain.job_transitions import FIRST_SIGHT_SECONDS, UNREADABLE_SECONDS
from fetcher.domain.jobs import Job, TerminalOutcome

_RAN_OUT: Final = """
    SELECT * FROM job WHERE status = 'processing' AND lease_until <= :now
    ORDER BY lease_until, id LIMIT :limit
"""
_PUSH_BACK: Final = """
    UPDATE job SET lease_until = :until
    WHERE id = :id AND status = 'processing' AND lease_until <= :seen
"""
_LEASELESS: Final = "SELECT 1 FROM job WHERE status = 'processing' AND lease_until IS NULL LIMIT 1"
_GIVE_LEASE: Final = """
    UPDATE job SET lease_until = :until WHERE status = 'processing' AND lease_until IS NULL
"""


class SqliteExpiredLeases:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_expired(self, *, limit: int) -> list[Job]:
        def find(session: Session) -> tuple[list[Job], list[bytes], bool]:
            found = session.rows(_RAN_OUT, now=session.now_ms, limit=limit)
            jobs, unreadable = sorted_out(found)
            return jobs, unreadable, session.row(_LEASELESS) is not None

        def push_back(session: Session) -> None:
            until = later_ms(session.now_ms, UNREADABLE_SECONDS)
            for record_id in unreadable:
                session.change(
                    _PUSH_BACK, {"id": record_id, "seen": session.now_ms, "until": until}
                )

        def give_lease(session: Session) -> int:
            until = later_ms(session.now_ms, FIRST_SIGHT_SECONDS)
            return session.change(_GIVE_LEASE, {"until": until})

        jobs, unreadable, some_without_lease = await self._database.read(find)
        while unreadable:
            # Left at the head of every search, a batch of them would keep all others waiting.
            await self._database.write(push_back)
            jobs, unreadable, some_without_lease = await self._database.read(find)
        if some_without_lease:
            await self._database.write(give_lease)
        return jobs

    async def requeue(self, job: Job) -> bool:
        def requeue(session: Session) -> bool:
            now = from_ms(session.now_ms)
            current = find_job(session, job.id)
            if current is None or not transitions.may_requeue(current, job, now):
                return False
            save_state(session, transitions.requeued(current, now))
            return True

        return await self._database.write(requeue)

    async def push_back(self, job: Job, *, seconds: float) -> None:
        def push_back(session: Session) -> None:
            values: rows.Values = {
                "id": job.id.bytes,
                "seen": to_ms(job.lease_until),
                "until": later_ms(session.now_ms, seconds),
            }
            session.change(_PUSH_BACK, values)

        await self._database.write(push_back)

    async def finish(self, job: Job, outcome: TerminalOutcome) -> bool:
        def finish(session: Session) -> bool:
            now = from_ms(session.now_ms)
            current = find_job(session, job.id)
            if current is None or not transitions.may_end_expired(current, job, outcome, now):
                return False
            completed_at = next_end(session)
            ended = transitions.ended_without_owner(current, outcome, completed_at=completed_at)
            end_job(session, ended, outcome)
            return True

        return await self._database.write(finish)
