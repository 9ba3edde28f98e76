"""Bodies of the audit trail for operators."""

from typing import Self

from fetcher.api.models.connections import Answer, Id, Timestamp
from fetcher.domain.audit import AuditAction, AuditEntry
from fetcher.domain.timestamps import rfc3339


class AuditEntryAnswer(Answer):
    """Who did what, and how it ended: ``succeeded``, ``repeated``, ``interrupted``, ``crashed``, or
    an error's code. ``target`` is empty where there was none yet."""

    id: Id
    time: Timestamp
    actor: str
    action: AuditAction
    target: str
    product: str
    request_id: str
    outcome: str

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        return cls(
            id=str(entry.id),
            time=rfc3339(entry.time),
            actor=entry.actor,
            action=entry.action,
            target=entry.target,
            product=entry.product,
            request_id=entry.request_id,
            outcome=entry.outcome,
        )


class AuditListAnswer(Answer):
    items: list[AuditEntryAnswer]
    next_cursor: str | None = None
    limit: int
