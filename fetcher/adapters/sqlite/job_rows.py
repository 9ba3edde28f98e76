"""Jobs inside of a transaction: find, change, end."""

from collections.abc import Sequence
from datetime import datetime
from sqlite3 import Row
from typing import Final

import structlog

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Session
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import from_ms, later_ms
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import AHEAD_SECONDS
from fetcher.domain.jobs import Job, TerminalOutcome

log = structlog.get_logger(__name__)

ALL_OF_JOBS: Final = "SELECT * FROM job"
_JOB_OF_ID: Final = f"{ALL_OF_JOBS} WHERE id = :id"
_LAST_END: Final = "SELECT max(completed_at) AS ended FROM job WHERE completed_at <= :most"
_AHEAD: Final = "SELECT 1 FROM job WHERE completed_at > :most LIMIT 1"


def find_job(session: Session, job_id: JobId) -> Job | None:
    row = session.row(_JOB_OF_ID, id=job_id.bytes)
    return rows.job_of(row) if row is not None else None


def sorted_out(found: Sequence[Row]) -> tuple[list[Job], list[bytes]]:
    """For sweeps: the jobs, and the ids of what cannot be read. That is reported and must not stop
    the others: a sweep puts it aside for a while, and looks on."""
    jobs = readable(found, rows.job_of)
    ids = {job.id.bytes for job in jobs}
    return jobs, [row["id"] for row in found if row["id"] not in ids]


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

    Two jobs that end in one millisecond, and a clock that was set back a little, would otherwise
    let a job become visible before the place that a reader of the ended jobs has reached. An end
    that lies further ahead than AHEAD_SECONDS is not counted: it was written while the clock was
    wrong, and would make every later end as wrong as itself.
    """
    most = later_ms(session.now_ms, AHEAD_SECONDS)
    if session.row(_AHEAD, most=most) is not None and session.is_first_time("ends_ahead"):
        log.warning("ends_ahead_of_clock", consequence="such jobs stand last in lists by their end")
    last: int | None = session.rows(_LAST_END, most=most)[0]["ended"]
    return from_ms(session.now_ms if last is None else max(session.now_ms, last + 1))
