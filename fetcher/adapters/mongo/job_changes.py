"""How a change of a job's state is written: compare-and-set on one document.

A job is read, the rules of :mod:`fetcher.domain.job_transitions` say what becomes of it, and the
fields that differ are set on the condition that what the rules looked at is still so. The only
dotted paths are those of marks below ``metadata``: names that a caller chose never become a path.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.job_documents import EVENT_MARKS, state_fields, token_value
from fetcher.adapters.mongo.server import Turn
from fetcher.domain.jobs import EventMark, Job

TRIES: Final = 5
"""How often a change is judged anew after somebody else changed the record in between."""

CHANGES_TOO_OFTEN: Final = "the job's record changes too often"


def owned(job: Job) -> Document:
    """The condition of a write by the lease's owner: nobody else's changes matter to it."""
    return {
        **id_filter(job.id),
        "status": job.status.value,
        "lease_token": token_value(job.lease_token),
        "cancel_requested": job.cancel_requested,
    }


def unchanged(job: Job) -> Document:
    """The condition of a write by anybody else."""
    return {
        **owned(job),
        "attempt": count_filter(job.attempt),
        "lease_until": job.lease_until,
        "dispatch_seq": count_filter(job.dispatch_seq),
    }


def count_filter(count: int) -> Any:
    """A counter of 0 may be absent: the reference writes none."""
    return {"$in": [0, None]} if count == 0 else count


async def write_change(
    turn: Turn, before: Job, after: Job, *, condition: Document, also: Document | None = None
) -> bool:
    """Whether the condition held and the change was written."""
    written = await turn.jobs.update_one(condition, change(before, after, also=also))
    return written.matched_count == 1


def change(before: Job, after: Job, *, also: Document | None = None) -> Document:
    """The update that makes the one of the other."""
    old, new = state_fields(before), state_fields(after)
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return {"$set": changed | (also or {})}


def event_fields(mark: EventMark, *, now: datetime) -> Document:
    """The pending event, due at once."""
    return {
        "metadata.terminalEventPending": True,
        "metadata.terminalEventStatus": mark.status,
        "metadata.terminalEventPayload": mark.payload,
        "event_time": mark.time,
        "event_due_at": now,
        "event_attempts": 0,
        "event_lease_until": None,
    }


def event_cleared() -> Document:
    marks = [f"metadata.{mark}" for mark in EVENT_MARKS]
    bookkeeping = ["event_due_at", "event_lease_until", "event_last_error"]
    return {"$unset": dict.fromkeys(marks + bookkeeping, "")}


def due_at_once(job: Job) -> Job:
    """On every clock: with a time, a process that is a little behind would call the job not due."""
    return replace(job, due_at=None)
