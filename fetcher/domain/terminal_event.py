"""The events ``job.completed`` and ``job.failed`` (spec worker-and-events, section 8).

A mark with the exact body is written together with the terminal state; what is published later is
that body, under headers built from the mark.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from fetcher.domain.ids import SINGLE_TENANT, JobId
from fetcher.domain.jobs import EventMark, FailureFacts, Job, ResultFacts
from fetcher.domain.json_text import dumps
from fetcher.domain.message_bodies import CompletedBody, FailedBody
from fetcher.domain.message_envelope import HeaderValue, envelope
from fetcher.domain.redaction import redact
from fetcher.domain.timestamps import rfc3339
from fetcher.domain.trace_context import TraceContext

COMPLETED: Final = "completed"
FAILED: Final = "failed"
MAX_BODY_BYTES: Final = 1_048_576

JOB_CANCELLED: Final = FailureFacts(message="job cancelled", code="cancelled")
"""What a cancelled job says: old consumers know ``job.failed`` only (design section 4)."""

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,255}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_SOURCE_BYTES = 2048
_MAX_SUBJECT_BYTES = 1024
_MAX_ID_BYTES = 256

_CONNECT_STAGES = frozenset({"dns", "tcp", "tls", "auth", "session"})
_MAX_NAMES = 20


class EventRefused(ValueError):
    """An event that must not be sent as it is; ``field`` names what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"event {field} {problem}")
        self.field = field


# --- the mark -------------------------------------------------------------------------------


def completed_mark(
    job: Job, facts: ResultFacts, *, completed_at: datetime, execution_ms: int
) -> EventMark:
    """The mark of a completed job (spec 8.3). ``execution_ms`` counts from the message's start."""
    body: CompletedBody = {
        "jobId": str(job.id),
        "metadata": _callers_metadata(job),
        "status": "completed",
        "result": {
            "path": facts.path,
            "sizeBytes": facts.size_bytes,
            "rowCount": facts.row_count,
            "format": "json",
            "hmac": facts.hmac,
            "integrity": {"algorithm": "HMAC-SHA256", "signature": facts.hmac},
            "protection": {
                "encrypted": True,
                "mode": "adapter-managed",
                "appliedBy": "adapter",
                "keyVersion": facts.key_version,
            },
        },
        "executionTimeMs": execution_ms,
        "completedAt": rfc3339(completed_at),
    }
    return EventMark(status=COMPLETED, payload=dumps(body, escape_html=True), time=completed_at)


def failed_mark(job: Job, failure: FailureFacts, *, at: datetime) -> EventMark:
    """The mark of a failed job (spec 8.4), or of a cancelled one with JOB_CANCELLED."""
    error = {
        "message": redact(failure.message),
        "code": failure.code,
        "source": failure.source,
        "stage": failure.stage,
        "reason": failure.reason,
    }
    known = {name: value for name, value in error.items() if value is not None}
    metadata = {**_callers_metadata(job), "error": known}
    body: FailedBody = {
        "jobId": str(job.id),
        "metadata": dict(sorted(metadata.items())),
        "status": "failed",
    }
    return EventMark(status=FAILED, payload=dumps(body, escape_html=True), time=at)


def _callers_metadata(job: Job) -> dict[str, object]:
    # reserved names are refused in requests; a record of the reference may still hold them
    return {
        key: value
        for key, value in sorted(job.metadata.items())
        if key != "error" and not key.startswith("terminalEvent")
    }


def failure_message(
    *,
    config: str | None,
    stage: str | None,
    reason: str,
    place: str = "",
    missing_tables: Sequence[str] = (),
    missing_fields: Mapping[str, Sequence[str]] | None = None,
    ambiguous: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A failure in words, from safe parts only (decisions, "Failure text").

    ``stage`` and ``reason`` are words of closed sets, never a driver's text; names are those that
    the caller itself asked for, ``place`` a table or one of its columns, both as they are;
    ``ambiguous`` ones stand with what they could mean, which differs from them in case alone.
    ``sales_db: connect failed at tls: certificate expired``.
    """
    parts = [config] if config else []
    missing = _mismatch(missing_tables, missing_fields or {}, ambiguous or {})
    if missing:
        parts += ["schema mismatch", missing]
    else:
        if stage in _CONNECT_STAGES:
            parts.append(f"connect failed at {stage}")
        elif stage:
            parts.append(f"{stage} failed")
        words = reason.replace("_", " ")
        parts.append(f"{words} ({place})" if place else words)
    return redact(": ".join(parts))


def _mismatch(
    tables: Sequence[str],
    fields: Mapping[str, Sequence[str]],
    ambiguous: Mapping[str, Sequence[str]],
) -> str:
    qualified = [f"{table}.{field}" for table, names in fields.items() for field in names]
    doubtful = [f"{name} ({_listed(meanings)})" for name, meanings in ambiguous.items()]
    kinds = (
        ("missing tables", tables),
        ("missing fields", qualified),
        ("ambiguous names", doubtful),
    )
    return "; ".join(f"{kind} {_listed(names)}" for kind, names in kinds if names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


# --- the message ----------------------------------------------------------------------------


def event_routing_key(mark: EventMark) -> str:
    return f"job.{mark.status}"


def event_id(job_id: JobId, status: str) -> str:
    """The ``ce-id``: the one value by which consumers know an event again."""
    return f"fetcher.job.{status}.{job_id}"


def event_body(mark: EventMark) -> bytes:
    """The bytes to publish. Raise EventRefused above 1 MiB."""
    return checked_body(mark.payload)


def checked_body(text: str) -> bytes:
    """The bytes of an event's body. Raise EventRefused above 1 MiB."""
    body = text.encode("utf-8")
    if len(body) > MAX_BODY_BYTES:
        raise EventRefused("body", f"is over {MAX_BODY_BYTES} bytes")
    return body


def event_headers(
    job_id: JobId,
    mark: EventMark,
    *,
    source: str,
    request_id: str,
    tenant: str = SINGLE_TENANT,
    trace: TraceContext | None = None,
) -> dict[str, HeaderValue]:
    """The headers without the signature (spec 8.2); raise EventRefused.

    ``source`` is ``STREAMING_CLOUDEVENTS_SOURCE`` verbatim, ``tenant`` is sent and signed exactly
    as given, ``request_id`` is fresh for each publish.
    """
    headers = cloud_event_headers(
        event_id=event_id(job_id, mark.status),
        status=mark.status,
        time=rfc3339(mark.time),
        source=source,
        subject=str(job_id),
        tenant=tenant,
        request_id=request_id,
    )
    return {**headers, **(trace_headers(trace) if trace is not None else {})}


def trace_headers(trace: TraceContext) -> dict[str, HeaderValue]:
    """In both spellings: lower case as byte arrays like all of CloudEvents, capitalised as text."""
    lower: dict[str, HeaderValue] = {
        name: bytearray(value, "ascii") for name, value in trace.headers().items()
    }
    return {**lower, **trace.capitalised()}


def cloud_event_headers(
    *,
    event_id: str,
    status: str,
    time: str,
    source: str,
    subject: str,
    tenant: str,
    request_id: str,
) -> dict[str, HeaderValue]:
    """As :func:`event_headers`, of an event that is told by its parts; ``time`` is RFC 3339."""
    if not _TENANT.fullmatch(tenant):
        raise EventRefused("tenant", "is not of the allowed form")
    cloud_event = {
        "ce-specversion": "1.0",
        "ce-id": _limited("id", event_id, max_bytes=_MAX_ID_BYTES),
        "ce-source": _limited("source", source, max_bytes=_MAX_SOURCE_BYTES),
        "ce-type": f"studio.lerian.job.{status}",
        "ce-time": time,
        "ce-schemaversion": "1.0.0",
        "ce-resourcetype": "job",
        "ce-eventtype": status,
        "ce-subject": _limited("subject", subject, max_bytes=_MAX_SUBJECT_BYTES),
        "ce-datacontenttype": "application/json",
        "ce-tenantid": tenant,
    }
    as_byte_arrays: dict[str, HeaderValue] = {
        name: bytearray(value, "utf-8") for name, value in cloud_event.items()
    }
    return envelope(as_byte_arrays, request_id=request_id, tenant=tenant)


def _limited(field: str, value: str, *, max_bytes: int) -> str:
    if not value:
        raise EventRefused(field, "is empty")
    if len(value.encode("utf-8", "replace")) > max_bytes:
        raise EventRefused(field, f"is over {max_bytes} bytes")
    if _CONTROL.search(value):
        raise EventRefused(field, "holds a control character")
    return value
