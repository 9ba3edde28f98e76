"""Jobs inside of a transaction: find, change, end."""

from collections.abc import Iterable
from datetime import datetime
from sqlite3 import Row

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Session
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import from_ms
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, TerminalOutcome


def find_job(session: Session, job_id: JobId) -> Job | None:
    row = session.row("SELECT * FROM job WHERE id = :id", id=job_id.bytes)
    return rows.job_of(row) if row is not None else None


def readable_jobs(found: Iterable[Row]) -> list[Job]:
    """For sweeps: a record that cannot be read is reported and must not stop the others."""
    return readable(found, rows.job_of)


def save_state(session: Session, job: Job) -> None:
    """Write the job's state. The dispatch lease belongs to the state before: it goes."""
    values = rows.state_values(job) | {"dispatch_lease_until": None}
    session.change(rows.update_statement("job", values), values | {"id": job.id.bytes})


def end_job(session: Session, ended: Job, outcome: TerminalOutcome) -> None:
    """Write the terminal state and its event together."""
    values = (
        rows.state_values(ended)
        | rows.event_values(outcome, session.now_ms)
        | {"dispatch_lease_until": None}
    )
    session.change(rows.update_statement("job", values), values | {"id": ended.id.bytes})


def next_end(session: Session) -> datetime:
    """The ``completed_at`` of a terminal write: now, but later than every one before it.

    Two jobs that end in one millisecond, and a clock that was set back, would otherwise let a job
    become visible before the place that a reader of the ended jobs has reached.
    """
    row = session.row(
        "SELECT completed_at FROM job WHERE completed_at IS NOT NULL"
        " ORDER BY completed_at DESC LIMIT 1"
    )
    earliest = row["completed_at"] + 1 if row is not None else session.now_ms
    return from_ms(max(session.now_ms, earliest))
