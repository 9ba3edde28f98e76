"""Records to rows and back."""

from collections.abc import Mapping
from sqlite3 import Row
from typing import TypeAlias
from uuid import UUID

from fetcher.adapters.sqlite import json_columns as columns
from fetcher.adapters.sqlite.damaged_texts import check_texts
from fetcher.adapters.sqlite.times import optional_time_of, time_of, to_ms
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.jobs import EventMark, Job, JobStatus, ResultFacts, TerminalOutcome
from fetcher.domain.json_text import dumps
from fetcher.domain.trace_context import TraceContext, trace_context

Values: TypeAlias = dict[str, str | int | bytes | None]


def product_key(name: str) -> str:
    """As products are compared (decisions: without case)."""
    return name.strip().lower()


def connection_values(connection: Connection) -> Values:
    return {
        "id": connection.id.bytes,
        "config_name": connection.config_name,
        "type": connection.type.value,
        "host": connection.host,
        "port": connection.port,
        "database_name": connection.database_name,
        "schema": connection.schema,
        "username": connection.username,
        "password_encrypted": connection.password_encrypted,
        "encryption_key_version": connection.encryption_key_version,
        "product_name": connection.product_name,
        "product": product_key(connection.product_name),
        "tls": columns.dump_facts(connection.tls) if connection.tls else None,
        "metadata": dumps(connection.metadata),
        "created_at": to_ms(connection.created_at),
        "updated_at": to_ms(connection.updated_at),
        "deleted_at": to_ms(connection.deleted_at),
    }


def connection_of(row: Row) -> Connection:
    check_texts(row)
    if row["type"] not in frozenset(SourceType):
        raise RecordCorrupt("the column type holds something else")
    return Connection(
        id=ConnectionId(UUID(bytes=row["id"])),
        config_name=row["config_name"],
        type=SourceType(row["type"]),
        host=row["host"],
        port=row["port"],
        database_name=row["database_name"],
        username=row["username"],
        password_encrypted=row["password_encrypted"],
        encryption_key_version=row["encryption_key_version"],
        created_at=time_of(row, "created_at"),
        updated_at=time_of(row, "updated_at"),
        product_name=row["product_name"],
        schema=row["schema"],
        tls=columns.load("tls", row["tls"], columns.tls) if row["tls"] is not None else None,
        metadata=columns.load("metadata", row["metadata"], columns.plain_object),
        deleted_at=optional_time_of(row, "deleted_at"),
    )


def request_values(job: Job) -> Values:
    """What was asked: never written again."""
    return {
        "id": job.id.bytes,
        "created_at": to_ms(job.created_at),
        "request_hash": job.request_hash,
        "request_id": job.request_id,
        "traceparent": job.trace.parent if job.trace else None,
        "tracestate": (job.trace.state or None) if job.trace else None,
        "idempotency_key": job.idempotency_key,
        "product": job.product_name,
        "mapped_fields": dumps(job.mapped_fields),
        "filters": dumps(job.filters),
        "metadata": dumps(job.metadata),
        "options": columns.dump_facts(job.options),
    }


def source_values(job: Job, config_name: str) -> Values:
    """One line of the table of who reads from where."""
    return {
        "config_name": config_name,
        "created_at": to_ms(job.created_at),
        "id": job.id.bytes,
    }


def state_values(job: Job) -> Values:
    """What became of it: written anew with every transition."""
    result = job.result
    return {
        "status": job.status.value,
        "completed_at": to_ms(job.completed_at),
        "result_path": result.path if result else None,
        "result_hmac": result.hmac if result else None,
        "result_bytes": result.size_bytes if result else None,
        "result_rows": result.row_count if result else None,
        "result_key_version": result.key_version if result else None,
        "source_notes": columns.dump_source_notes(result.source_notes if result else {}),
        "failure": columns.dump_facts(job.failure) if job.failure else None,
        "attempt": job.attempt,
        "takeovers": job.takeovers,
        "lease_token": job.lease_token,
        "lease_until": to_ms(job.lease_until),
        "lease_owner": job.lease_owner,
        "started_at": to_ms(job.started_at),
        "due_at": to_ms(job.due_at),
        "waiting_reason": job.waiting_reason,
        "dispatched_at": to_ms(job.dispatched_at),
        "dispatch_seq": job.dispatch_seq,
        "cancel_requested": to_ms(job.cancel_requested),
        "attempts": columns.dump_attempts(job.attempts),
        "progress": columns.dump_progress(job.progress),
        "result_deleted_at": to_ms(job.result_deleted_at),
    }


def event_values(outcome: TerminalOutcome, now_ms: int) -> Values:
    """The pending event, due at once."""
    return {
        "event_pending": 1,
        "event_status": outcome.event.status,
        "event_payload": outcome.event.payload,
        "event_time": to_ms(outcome.event.time),
        "event_due_at": now_ms,
    }


def job_of(row: Row) -> Job:
    check_texts(row)
    if row["status"] not in frozenset(JobStatus):
        raise RecordCorrupt("the column status holds something else")
    has_result = row["result_path"] is not None
    return Job(
        id=job_id_of(row),
        status=JobStatus(row["status"]),
        created_at=time_of(row, "created_at"),
        mapped_fields=columns.load("mapped_fields", row["mapped_fields"], columns.mapped_fields),
        request_hash=row["request_hash"],
        filters=columns.load("filters", row["filters"], columns.filters),
        metadata=columns.load("metadata", row["metadata"], columns.plain_object),
        options=columns.load("options", row["options"], columns.options),
        request_id=row["request_id"],
        trace=trace_of(row),
        completed_at=optional_time_of(row, "completed_at"),
        result=_result_of(row) if has_result else None,
        failure=columns.load("failure", row["failure"], columns.failure)
        if row["failure"] is not None
        else None,
        attempt=row["attempt"],
        takeovers=row["takeovers"],
        lease_owner=row["lease_owner"],
        lease_token=row["lease_token"],
        lease_until=optional_time_of(row, "lease_until"),
        started_at=optional_time_of(row, "started_at"),
        due_at=optional_time_of(row, "due_at"),
        waiting_reason=row["waiting_reason"],
        dispatched_at=optional_time_of(row, "dispatched_at"),
        dispatch_seq=row["dispatch_seq"],
        cancel_requested=optional_time_of(row, "cancel_requested"),
        event_pending=bool(row["event_pending"]),
        attempts=columns.load("attempts", row["attempts"], columns.attempts),
        progress=columns.load("progress", row["progress"], columns.progress),
        result_deleted_at=optional_time_of(row, "result_deleted_at"),
        idempotency_key=row["idempotency_key"],
    )


def trace_of(row: Row) -> TraceContext | None:
    """What is no trace context any more is none: it decides nothing about the job."""
    return trace_context(row["traceparent"], row["tracestate"])


def job_id_of(row: Row) -> JobId:
    return JobId(UUID(bytes=row["id"]))


def mark_of(row: Row) -> EventMark:
    return EventMark(
        status=row["event_status"],
        payload=row["event_payload"],
        time=time_of(row, "event_time"),
    )


def _result_of(row: Row) -> ResultFacts:
    return ResultFacts(
        path=row["result_path"],
        hmac=row["result_hmac"],
        size_bytes=row["result_bytes"],
        row_count=row["result_rows"],
        key_version=row["result_key_version"],
        source_notes=columns.load("source_notes", row["source_notes"], columns.source_notes),
    )


def insert_statement(table: str, values: Mapping[str, object], *, on_conflict: str = "") -> str:
    """Names are ours, values are bound."""
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    return f"INSERT INTO {table} ({names}) VALUES ({places}) {on_conflict}"  # noqa: S608  # our names


def update_statement(table: str, values: Mapping[str, object]) -> str:
    """Names are ours, values are bound, ``:id`` among them."""
    places = ", ".join(f"{name} = :{name}" for name in values if name != "id")
    return f"UPDATE {table} SET {places} WHERE id = :id"  # noqa: S608  # our names
