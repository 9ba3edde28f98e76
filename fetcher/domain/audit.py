"""Who did what, and how it ended: for those who must answer for it later (decision 039)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

ANONYMOUS: Final = "anonymous"
"""Nobody is asked who they are."""
LOCAL: Final = "local"
"""Whoever runs a command on the machine."""
MAX_CHARACTERS: Final = 256


class AuditAction(StrEnum):
    CONNECTION_CREATED = "connection.created"
    CONNECTION_CHANGED = "connection.changed"
    CONNECTION_TESTED = "connection.tested"
    CONNECTION_DELETED = "connection.deleted"
    CONNECTION_ASSIGNED = "connection.assigned"
    JOB_CREATED = "job.created"
    JOB_CANCELLED = "job.cancelled"
    JOB_RERUN = "job.rerun"
    RESULT_DOWNLOADED = "result.downloaded"
    RESULT_PREVIEWED = "result.previewed"
    RESULT_DELETED = "result.deleted"
    DEAD_LETTERS_REDRIVEN = "dlq.redriven"
    DEAD_LETTERS_PURGED = "dlq.purged"
    KEYS_ROTATED = "keys.rotated"


class AuditOutcome(StrEnum):
    """The good ends; else an entry has the error's code."""

    SUCCEEDED = "succeeded"
    REPEATED = "repeated"
    """The job that the same request made before."""
    INTERRUPTED = "interrupted"
    """The caller went away before the answer, or whoever ran the command interrupted it: the record
    of the target says what became of it."""
    CRASHED = "crashed"
    PARTIAL = "partial"
    """Some of it is left: to be done again."""


def letters_target(count: int) -> str:
    """Of what was done to dead letters."""
    return f"{count} letter" if count == 1 else f"{count} letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """No secret, no filter value, nothing of a row is ever in one."""

    id: UUID
    time: datetime
    actor: str
    action: AuditAction
    target: str
    """The id of what it was done to, of dead letters how many; empty where there is none yet."""
    product: str
    request_id: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCursor:
    """Place in the order of entries: time, then id."""

    time: datetime
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """One page, newest first, strictly before the cursor; a filter that is None has no say."""

    actor: str | None = None
    action: AuditAction | None = None
    target: str | None = None
    before: AuditCursor | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    items: tuple[AuditEntry, ...]
    next: AuditCursor | None
    """What the next page is before; None after the last one."""


def plain(text: str) -> str:
    """What a caller wrote, fit for one line: bounded, without what cannot be printed."""
    return "".join(each if each.isprintable() else "?" for each in text[:MAX_CHARACTERS])
