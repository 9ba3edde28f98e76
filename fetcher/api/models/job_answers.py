"""What the job operations answer (spec rest-api 9.3 and 9.8; members beyond those: design 4)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Self

from fetcher.api.models.connections import Answer, AnyJson, Id, Timestamp
from fetcher.api.models.job_parts import (
    AttemptAnswer,
    FailureAnswer,
    SourceNotesAnswer,
    TableProgressAnswer,
    shown_time,
)
from fetcher.commands.cancel_job import CancelledJob
from fetcher.commands.create_job import CreatedJob
from fetcher.domain.jobs import Job, JobOptions, JobStatus, ResultFacts
from fetcher.domain.json_values import JsonObject, JsonValue
from fetcher.domain.timestamps import rfc3339


class CreateJobAnswer(Answer):
    job_id: Id
    status: str
    created_at: Timestamp
    message: str

    @classmethod
    def of(cls, created: CreatedJob) -> Self:
        return cls(
            job_id=str(created.job.id),
            status=str(created.job.status),
            created_at=rfc3339(created.job.created_at),
            message="Job created and queued for processing"
            if created.is_new
            else "Duplicate request detected - returning existing job",
        )


class JobAnswer(Answer):
    id: Id
    metadata: Mapping[str, AnyJson] | None = None
    mapped_fields: dict[str, dict[str, list[str]]]
    filters: dict[str, dict[str, dict[str, dict[str, list[AnyJson]]]]] | None = None
    options: Mapping[str, AnyJson] | None = None
    status: str
    error: FailureAnswer | None = None
    result_path: str | None = None
    result_hmac: str | None = None
    sources: dict[str, SourceNotesAnswer] | None = None
    request_hash: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    size_bytes: int | None = None
    row_count: int | None = None
    result_deleted_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    waiting_reason: str | None = None
    progress: dict[str, dict[str, TableProgressAnswer]] | None = None
    attempts: list[AttemptAnswer] | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        result = job.result
        completed_at = job.completed_at if not job.status.is_active else None
        return cls(
            id=str(job.id),
            metadata=shown_metadata(job) or None,
            mapped_fields={
                source: {table: list(names) for table, names in tables.items()}
                for source, tables in job.mapped_fields.items()
            },
            filters={
                source: {
                    table: {
                        name: {operator: list(values) for operator, values in condition.items()}
                        for name, condition in fields.items()
                    }
                    for table, fields in tables.items()
                }
                for source, tables in job.filters.items()
            }
            or None,
            options=_shown_options(job.options) or None,
            status=str(job.status),
            error=FailureAnswer.of(job.failure) if job.failure is not None else None,
            result_path=(result.path or None) if result is not None else None,
            result_hmac=(result.hmac or None) if result is not None else None,
            sources=_told_of_sources(result) if result is not None else None,
            request_hash=job.request_hash or None,
            created_at=rfc3339(job.created_at),
            started_at=shown_time(job.started_at),
            completed_at=shown_time(completed_at),
            size_bytes=result.size_bytes if result is not None else None,
            row_count=result.row_count if result is not None else None,
            result_deleted_at=shown_time(job.result_deleted_at),
            cancel_requested_at=shown_time(job.cancel_requested),
            waiting_reason=job.waiting_reason if job.status is JobStatus.PENDING else None,
            progress={
                source: {table: TableProgressAnswer.of(read) for table, read in tables.items()}
                for source, tables in job.progress.items()
            }
            or None,
            attempts=[AttemptAnswer.of(attempt) for attempt in job.attempts] or None,
        )


class JobSummary(Answer):
    """A job in a list: without its fields, filters and metadata."""

    id: Id
    status: str
    source: str | None = None
    connections: list[str]
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    size_bytes: int | None = None
    row_count: int | None = None
    result_deleted_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    waiting_reason: str | None = None
    error: FailureAnswer | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        result = job.result
        return cls(
            id=str(job.id),
            status=str(job.status),
            source=job.product_name or None,
            connections=sorted(job.mapped_fields),
            created_at=rfc3339(job.created_at),
            started_at=shown_time(job.started_at),
            completed_at=shown_time(job.completed_at) if not job.status.is_active else None,
            size_bytes=result.size_bytes if result is not None else None,
            row_count=result.row_count if result is not None else None,
            result_deleted_at=shown_time(job.result_deleted_at),
            cancel_requested_at=shown_time(job.cancel_requested),
            waiting_reason=job.waiting_reason if job.status is JobStatus.PENDING else None,
            error=FailureAnswer.of(job.failure) if job.failure is not None else None,
        )


class JobListAnswer(Answer):
    items: list[JobSummary]
    next_cursor: str | None = None
    limit: int


class CancelJobAnswer(Answer):
    job_id: Id
    status: str
    message: str

    @classmethod
    def of(cls, cancelled: CancelledJob) -> Self:
        return cls(
            job_id=str(cancelled.job.id),
            status=str(cancelled.job.status),
            message="Job cancelled"
            if cancelled.has_ended
            else "Job is being stopped by its worker",
        )


class EndedJobEvent(Answer):
    """What the event stream tells of a job: that it has ended, and how."""

    job_id: Id
    status: str
    metadata: Mapping[str, AnyJson]
    error: FailureAnswer | None = None
    result_path: str | None = None
    result_hmac: str | None = None
    size_bytes: int | None = None
    row_count: int | None = None
    created_at: Timestamp
    completed_at: Timestamp

    @classmethod
    def of(cls, job: Job) -> Self:
        """Raise ValueError for a job that has not ended."""
        if job.completed_at is None:
            raise ValueError("the job has not ended")
        result = job.result
        return cls(
            job_id=str(job.id),
            status=str(job.status),
            metadata=shown_metadata(job),
            error=FailureAnswer.of(job.failure) if job.failure is not None else None,
            result_path=result.path if result is not None else None,
            result_hmac=result.hmac if result is not None else None,
            size_bytes=result.size_bytes if result is not None else None,
            row_count=result.row_count if result is not None else None,
            created_at=rfc3339(job.created_at),
            completed_at=rfc3339(job.completed_at),
        )


def _told_of_sources(result: ResultFacts) -> dict[str, SourceNotesAnswer] | None:
    return {
        name: SourceNotesAnswer.of(notes) for name, notes in result.source_notes.items()
    } or None


def shown_metadata(job: Job) -> dict[str, JsonValue]:
    """The caller's metadata, without bookkeeping; a failed job's message stands in ``error``."""
    shown: dict[str, JsonValue] = {
        key: value for key, value in job.metadata.items() if not key.startswith("terminalEvent")
    }
    if job.failure is not None:
        shown["error"] = job.failure.message
    return shown


def _shown_options(options: JobOptions) -> JsonObject:
    defaults = JobOptions()
    shown: dict[str, JsonValue] = {
        name: getattr(options, name)
        for name in ("values", "bigint", "decimals")
        if getattr(options, name) != getattr(defaults, name)
    }
    if options.limits:
        shown["limits"] = _exact_numbers(options.limits)
    return shown


def _exact_numbers(limits: Mapping[str, int | float]) -> dict[str, JsonValue]:
    return {name: v if isinstance(v, int) else Decimal(repr(v)) for name, v in limits.items()}
