"""How a change of a job's state is written: compare-and-set on one document.

A job is read, the rules of :mod:`fetcher.domain.job_transitions` say what becomes of it, and the
fields that differ are set on the condition that what the rules looked at is still so. The only
dotted paths are those of marks below ``metadata``: names that a caller chose never become a path.
"""

from datetime import datetime
from typing import Any, Final

from bson import Binary

from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.job_documents import (
    EVENT_MARKS,
    attempt_document,
    failure_document,
)
from fetcher.adapters.mongo.server import Turn
from fetcher.domain.jobs import EventMark, Job

TRIES: Final = 5
"""How often a change is judged anew after somebody else changed the record in between."""


def owned(job: Job) -> Document:
    """The condition of a write by the lease's owner: nobody else's changes matter to it."""
    return {
        **id_filter(job.id),
        "status": job.status.value,
        "lease_token": _token(job),
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
    old, new = _state_fields(before), _state_fields(after)
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    written = await turn.jobs.update_one(condition, {"$set": changed | (also or {})})
    return written.matched_count == 1


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


def _state_fields(job: Job) -> Document:
    fields: Document = {
        "status": job.status.value,
        "dedup_active": job.status.is_active,
        "completed_at": job.completed_at,
        "attempt": job.attempt,
        "takeovers": job.takeovers,
        "attempts": [attempt_document(attempt) for attempt in job.attempts],
        "lease_owner": job.lease_owner,
        "lease_token": _token(job),
        "lease_until": job.lease_until,
        "started_at": job.started_at,
        "due_at": job.due_at,
        "waiting_reason": job.waiting_reason,
        "dispatched_at": job.dispatched_at,
        "dispatch_seq": job.dispatch_seq,
        "cancel_requested": job.cancel_requested,
    }
    if job.result is not None:
        fields |= {
            "result_path": job.result.path,
            "result_hmac": job.result.hmac,
            "result_bytes": job.result.size_bytes,
            "result_rows": job.result.row_count,
            "result_key_version": job.result.key_version,
        }
    if job.failure is not None:
        fields |= {
            "metadata.error": job.failure.message,
            "failure": failure_document(job.failure),
        }
    return fields


def _token(job: Job) -> Binary | None:
    return None if job.lease_token is None else Binary(job.lease_token, 0)
