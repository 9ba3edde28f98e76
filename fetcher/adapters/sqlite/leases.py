"""Leases of workers in SQLite."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from fetcher.adapters.sqlite import json_columns, rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_rows import end_job, find_job, next_end, save_state
from fetcher.adapters.sqlite.times import from_ms, later_ms
from fetcher.domain import job_transitions as transitions
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import Claimed, ClaimRefusal, FinishAnswer, Lease, LeaseState
from fetcher.domain.jobs import Job, JobStatus, Progress, TerminalOutcome


class SqliteLeases:
    """Each call is one transaction that reads the record, judges it and writes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, job_id: JobId, *, owner: str, lease_seconds: float, token: bytes | None = None
    ) -> Claimed | ClaimRefusal:
        lease_token = token or secrets.token_bytes(16)

        def claim(session: Session) -> Claimed | ClaimRefusal:
            job = find_job(session, job_id)
            if job is None:
                return ClaimRefusal.UNKNOWN
            claimed = transitions.claimed(
                job,
                owner=owner,
                token=lease_token,
                now=from_ms(session.now_ms),
                lease_until=from_ms(later_ms(session.now_ms, lease_seconds)),
            )
            if isinstance(claimed, ClaimRefusal):
                return claimed
            save_state(session, claimed)
            lease = Lease(job_id=job_id, token=lease_token, attempt=claimed.attempt)
            return Claimed(job=claimed, lease=lease)

        return await self._database.write(claim)

    async def renew(self, lease: Lease, *, lease_seconds: float) -> bool:
        def renew(session: Session) -> bool:
            renewed = session.change(
                "UPDATE job SET lease_until = :until"
                " WHERE id = :id AND lease_token = :token AND status = 'processing'",
                {
                    "until": later_ms(session.now_ms, lease_seconds),
                    "id": lease.job_id.bytes,
                    "token": lease.token,
                },
            )
            return renewed == 1

        return await self._database.write(renew)

    async def check(self, leases: Sequence[Lease]) -> Mapping[JobId, LeaseState]:
        def check(session: Session) -> Mapping[JobId, LeaseState]:
            return {lease.job_id: _state_of(session, lease) for lease in leases}

        return await self._database.read(check)

    async def finish(self, lease: Lease, outcome: TerminalOutcome) -> FinishAnswer:
        def finish(session: Session) -> FinishAnswer:
            job = find_job(session, lease.job_id)
            answer = transitions.judge_finish(job, lease, outcome)
            if job is None or answer is not None:
                return answer or FinishAnswer.SUPERSEDED
            ended = transitions.ended(job, outcome, completed_at=next_end(session))
            end_job(session, ended, outcome)
            return FinishAnswer.WRITTEN

        return await self._database.write(finish)

    async def release(self, lease: Lease) -> bool:
        return await self._let_go(lease, transitions.released)

    async def park(self, lease: Lease, *, until: datetime, reason: str) -> bool:
        return await self._let_go(lease, partial(transitions.parked, until=until, reason=reason))

    async def _let_go(self, lease: Lease, rule: Callable[[Job, datetime], Job]) -> bool:
        def let_go(session: Session) -> bool:
            job = find_job(session, lease.job_id)
            if job is None or not transitions.holds(job, lease.token):
                return False
            save_state(session, rule(job, from_ms(session.now_ms)))
            return True

        return await self._database.write(let_go)

    async def note_progress(self, lease: Lease, progress: Progress) -> bool:
        statement = (
            "UPDATE job SET progress = :progress"
            " WHERE id = :id AND lease_token = :token AND status = 'processing'"
        )
        values: rows.Values = {
            "progress": json_columns.dump_progress(progress),
            "id": lease.job_id.bytes,
            "token": lease.token,
        }
        return await self._database.write(lambda session: session.change(statement, values)) == 1


def _state_of(session: Session, lease: Lease) -> LeaseState:
    row = session.row(
        "SELECT status, lease_token, cancel_requested FROM job WHERE id = :id",
        id=lease.job_id.bytes,
    )
    if row is None or row["status"] != JobStatus.PROCESSING or row["lease_token"] != lease.token:
        return LeaseState.LOST
    asked = row["cancel_requested"] is not None
    return LeaseState.CANCEL_REQUESTED if asked else LeaseState.HELD
