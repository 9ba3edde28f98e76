"""The audit trail of this process: in the records, and in the log apart from the access log."""

import structlog

from fetcher.actors.metrics import ActorMetrics
from fetcher.bootstrap.clock import utc_now
from fetcher.commands.audit import Audit
from fetcher.domain.audit import AuditEntry
from fetcher.ports import AuditTrail

log = structlog.get_logger("fetcher.audit")


def open_audit(trail: AuditTrail, metrics: ActorMetrics) -> Audit:
    def unrecorded(entry: AuditEntry, why: str) -> None:
        log.error("audit_not_recorded", code=why, **_facts(entry))
        metrics.audit_unrecorded.inc()

    return Audit(trail=trail, now=utc_now, tell=_tell, unrecorded=unrecorded)


def local_audit(trail: AuditTrail) -> Audit:
    """That of a command on the machine: what it prints is for whoever runs it, so its entries are
    in the records alone, and in the log only where they are not."""

    def unrecorded(entry: AuditEntry, why: str) -> None:
        log.error("audit_not_recorded", code=why, **_facts(entry))

    return Audit(trail=trail, now=utc_now, tell=lambda _: None, unrecorded=unrecorded)


def _tell(entry: AuditEntry) -> None:
    log.info("audit", **_facts(entry))


def _facts(entry: AuditEntry) -> dict[str, str]:
    return {
        "audit_id": str(entry.id),
        "actor": entry.actor,
        "action": entry.action.value,
        "target": entry.target,
        "product": entry.product,
        "request_id": entry.request_id,
        "outcome": entry.outcome,
    }
