"""A job and its document (spec rest-api 12.3; the added fields: design section 4)."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from bson import Binary

from fetcher.adapters.mongo.bson_values import from_bson, to_bson
from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.adapters.mongo.filter_documents import filters_document, read_filters
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import (
    AttemptRecord,
    FailureFacts,
    Job,
    JobOptions,
    JobStatus,
    MappedFields,
    Progress,
    ResultFacts,
    TableProgress,
)
from fetcher.domain.json_values import JsonObject
from fetcher.domain.trace_context import (
    TRACEPARENT,
    TRACESTATE,
    TraceContext,
    trace_context,
)
from fetcher_engine import SourceNotes

RECORD: Final = "job record"
EVENT_MARKS: Final = ("terminalEventPending", "terminalEventStatus", "terminalEventPayload")

_STATUSES: Final = {each.value: each for each in JobStatus}
_ALWAYS_THERE: Final = frozenset(
    {
        *("status", "dedup_active", "completed_at", "dispatched_at"),
        *("attempt", "takeovers", "dispatch_seq"),
    }
)
_ENDED_BADLY: Final = (JobStatus.FAILED, JobStatus.CANCELLED)


def job_document(job: Job) -> Document:
    """The document of an insert.

    ``completed_at`` and ``dispatched_at`` are there as nulls: a record without ``dispatched_at``
    is one of the reference, dispatched when it was created.
    """
    document: Document = {
        "_id": Binary(job.id.bytes, 0),
        "mapped_fields": {
            config_name: {table: list(fields) for table, fields in tables.items()}
            for config_name, tables in job.mapped_fields.items()
        },
        "datasources": sorted(job.mapped_fields),
        "request_hash": job.request_hash,
        "created_at": job.created_at,
    }
    if job.metadata:
        document["metadata"] = to_bson(job.metadata)
    if job.filters:
        document["filters"] = filters_document(job.filters)
    if job.options != JobOptions():
        document["options"] = _options_document(job.options)
    if job.request_id:
        document["request_id"] = job.request_id
    if job.trace is not None:
        document |= job.trace.headers()
    if job.idempotency_key is not None:
        document["idempotency_key"] = job.idempotency_key
    state = state_fields(job).items()
    return document | {name: value for name, value in state if value or name in _ALWAYS_THERE}


def state_fields(job: Job) -> Document:
    """All that changes in a job's life, under the paths at which it is set."""
    fields: Document = {
        "status": job.status.value,
        "dedup_active": job.status.is_active,
        "completed_at": job.completed_at,
        "attempt": job.attempt,
        "takeovers": job.takeovers,
        "attempts": [_attempt_document(attempt) for attempt in job.attempts],
        "lease_owner": job.lease_owner,
        "lease_token": token_value(job.lease_token),
        "lease_until": job.lease_until,
        "started_at": job.started_at,
        "due_at": job.due_at,
        "waiting_reason": job.waiting_reason,
        "dispatched_at": job.dispatched_at,
        "dispatch_seq": job.dispatch_seq,
        "cancel_requested": job.cancel_requested,
        "progress": progress_document(job.progress),
        "result_deleted_at": job.result_deleted_at,
    }
    if job.result is not None:
        fields |= {
            "result_path": job.result.path,
            "result_hmac": job.result.hmac,
            "result_bytes": job.result.size_bytes,
            "result_rows": job.result.row_count,
            "result_key_version": job.result.key_version,
            "source_notes": _source_notes_document(job.result.source_notes),
        }
    if job.failure is not None:
        fields |= {
            "metadata.error": job.failure.message,
            "failure": _failure_document(job.failure),
        }
    return fields


def progress_document(progress: Progress) -> Document:
    return {
        config_name: {
            table: {"rows": read.rows, "bytes": read.bytes} for table, read in tables.items()
        }
        for config_name, tables in progress.items()
    }


def token_value(token: bytes | None) -> Binary | None:
    return None if token is None else Binary(token, 0)


def read_job(document: Mapping[str, Any]) -> Job:
    """Raise RecordCorrupt, naming the field, for what is no job."""
    fields = DocumentFields(RECORD, document)
    status = _STATUSES.get(fields.text("status"))
    if status is None:
        raise fields.corrupt("status")
    metadata = fields.document("metadata")
    failure = _read_failure(fields, metadata) if status in _ENDED_BADLY else None
    return Job(
        id=JobId(fields.record_id()),
        status=status,
        created_at=fields.time("created_at"),
        completed_at=fields.optional_time("completed_at"),
        mapped_fields=_read_mapped_fields(fields.document("mapped_fields")),
        filters=read_filters(fields.document("filters"), record=RECORD),
        request_hash=fields.text("request_hash"),
        request_id=fields.text("request_id"),
        trace=trace_of(document),
        metadata=_read_metadata(metadata, without_error=failure is not None),
        options=_read_options(fields.document("options")),
        result=_read_result(fields),
        failure=failure,
        attempt=fields.count("attempt"),
        takeovers=fields.count("takeovers"),
        attempts=tuple(_read_attempt(entry) for entry in fields.items("attempts")),
        lease_owner=fields.optional_text("lease_owner"),
        lease_token=fields.optional_bytes("lease_token"),
        lease_until=fields.optional_time("lease_until"),
        started_at=fields.optional_time("started_at"),
        due_at=fields.optional_time("due_at"),
        waiting_reason=fields.optional_text("waiting_reason"),
        dispatched_at=_dispatched_at(fields, document),
        dispatch_seq=fields.count("dispatch_seq"),
        cancel_requested=fields.optional_time("cancel_requested"),
        event_pending=metadata.get("terminalEventPending") is True,
        progress=_read_progress(fields.document("progress")),
        result_deleted_at=fields.optional_time("result_deleted_at"),
        idempotency_key=_one_key(fields, document),
    )


def _one_key(fields: DocumentFields, document: Mapping[str, Any]) -> str | None:
    """Of several the first."""
    stored = document.get("idempotency_key")
    if isinstance(stored, list) and stored and isinstance(stored[0], str):
        return stored[0]
    return fields.optional_text("idempotency_key")


def trace_of(document: Mapping[str, Any]) -> TraceContext | None:
    """What is no trace context is none: it decides nothing about the job."""
    return trace_context(document.get(TRACEPARENT), document.get(TRACESTATE))


def _attempt_document(attempt: AttemptRecord) -> Document:
    return {
        "attempt": attempt.attempt,
        "owner": attempt.owner,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "code": attempt.code,
    }


def _failure_document(failure: FailureFacts) -> Document:
    """What stands beside the text in ``metadata.error`` (decisions, "Failure text")."""
    parts = {
        "code": failure.code,
        "source": failure.source,
        "stage": failure.stage,
        "reason": failure.reason,
    }
    return {name: value for name, value in parts.items() if value is not None}


def _read_failure(fields: DocumentFields, metadata: Mapping[str, Any]) -> FailureFacts | None:
    """A job that the reference failed has its text alone."""
    message = metadata.get("error")
    if not isinstance(message, str):
        return None
    parts = DocumentFields(f"{RECORD}: failure", fields.document("failure"))
    return FailureFacts(
        message=message,
        code=parts.text("code"),
        source=parts.optional_text("source"),
        stage=parts.optional_text("stage"),
        reason=parts.optional_text("reason"),
    )


def _read_metadata(stored: Mapping[str, Any], *, without_error: bool) -> JsonObject:
    hidden = {*EVENT_MARKS, "error"} if without_error else {*EVENT_MARKS}
    return {
        name: from_bson(value, field=f"{RECORD}: metadata")
        for name, value in stored.items()
        if name not in hidden
    }


def _read_mapped_fields(stored: Mapping[str, Any]) -> MappedFields:
    sources = DocumentFields(f"{RECORD}: mapped_fields", stored)
    mapped: dict[str, dict[str, tuple[str, ...]]] = {}
    for config_name in stored:
        tables = sources.document(config_name)
        of_tables = DocumentFields(f"{RECORD}: mapped_fields", tables)
        mapped[config_name] = {table: _names(of_tables, table) for table in tables}
    return mapped


def _read_progress(stored: Mapping[str, Any]) -> Progress:
    sources = DocumentFields(f"{RECORD}: progress", stored)
    progress: dict[str, dict[str, TableProgress]] = {}
    for config_name in stored:
        tables = sources.document(config_name)
        of_tables = DocumentFields(f"{RECORD}: progress", tables)
        counts = {
            table: DocumentFields(f"{RECORD}: progress", of_tables.document(table))
            for table in tables
        }
        progress[config_name] = {
            table: TableProgress(rows=read.count("rows"), bytes=read.count("bytes"))
            for table, read in counts.items()
        }
    return progress


def _names(fields: DocumentFields, table: str) -> tuple[str, ...]:
    names = fields.items(table)
    if all(isinstance(name, str) for name in names):
        return tuple(names)
    raise fields.corrupt("field names")


def _read_options(stored: Mapping[str, Any]) -> JobOptions:
    default = JobOptions()
    fields = DocumentFields(f"{RECORD}: options", stored)
    limits = fields.document("limits")
    return JobOptions(
        values=fields.text("values") or default.values,
        bigint=fields.text("bigint") or default.bigint,
        decimals=fields.text("decimals") or default.decimals,
        limits={name: _limit(fields, value) for name, value in limits.items()},
    )


def _limit(fields: DocumentFields, value: object) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if isinstance(value, float) else int(value)
    raise fields.corrupt("limits")


def _options_document(options: JobOptions) -> Document:
    return {
        "values": options.values,
        "bigint": options.bigint,
        "decimals": options.decimals,
        "limits": dict(options.limits),
    }


def _read_result(fields: DocumentFields) -> ResultFacts | None:
    path = fields.text("result_path")
    if not path:
        return None
    return ResultFacts(
        path=path,
        hmac=fields.text("result_hmac"),
        size_bytes=fields.count("result_bytes"),
        row_count=fields.count("result_rows"),
        key_version=fields.text("result_key_version"),
        source_notes=_read_source_notes(fields.document("source_notes")),
    )


def _source_notes_document(told: Mapping[str, SourceNotes]) -> Document:
    return {
        config_name: {
            "snapshot": notes.has_snapshot,
            "replaced_characters": notes.replaced_characters,
        }
        for config_name, notes in told.items()
    }


def _read_source_notes(stored: Mapping[str, Any]) -> dict[str, SourceNotes]:
    sources = DocumentFields(f"{RECORD}: source_notes", stored)
    told: dict[str, SourceNotes] = {}
    for config_name in stored:
        notes = sources.document(config_name)
        count = DocumentFields(f"{RECORD}: source_notes", notes).count("replaced_characters")
        with suppress(ValueError):
            told[config_name] = SourceNotes(
                has_snapshot=notes.get("snapshot", True), replaced_characters=count
            )
        if config_name not in told:
            raise sources.corrupt(config_name)
    return told


def _read_attempt(entry: object) -> AttemptRecord:
    if not isinstance(entry, Mapping):
        raise DocumentFields(RECORD, {}).corrupt("attempts")
    fields = DocumentFields(f"{RECORD}: attempts", entry)
    return AttemptRecord(
        attempt=fields.count("attempt"),
        owner=fields.text("owner"),
        started_at=fields.time("started_at"),
        ended_at=fields.optional_time("ended_at"),
        code=fields.optional_text("code"),
    )


def _dispatched_at(fields: DocumentFields, document: Mapping[str, Any]) -> datetime | None:
    if "dispatched_at" in document:
        return fields.optional_time("dispatched_at")
    return fields.time("created_at")
