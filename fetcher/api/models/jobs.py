"""Bodies of the job operations (spec rest-api 9; ``options``: design section 6)."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Self, cast

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema

from fetcher.api.models.connections import Answer, AnyJson, Id, Timestamp, renamed
from fetcher.api.payloads import Part, StrictPart
from fetcher.commands.create_job import CreatedJob
from fetcher.commands.job_order import JobOrder
from fetcher.domain.jobs import FailureFacts, Job, JobOptions, Operator, ResultFacts
from fetcher.domain.json_values import JsonObject, JsonValue
from fetcher.domain.timestamps import rfc3339
from fetcher_engine import SourceNotes

Values = list[AnyJson] | None


_TOO_LARGE = 10**300
"""A double can still hold it."""


def _seconds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    return float(value) if -_TOO_LARGE < value < _TOO_LARGE else math.inf


Seconds = Annotated[float, BeforeValidator(_seconds), WithJsonSchema({"type": "number"})]


class ConditionRequest(StrictPart):
    """The operators of one field; all of them must hold."""

    model_config = ConfigDict(alias_generator=None)

    eq: Values = None
    gt: Values = None
    gte: Values = None
    lt: Values = None
    lte: Values = None
    between: Values = None
    within: Values = renamed("in")
    nin: Values = None
    ne: Values = None
    like: Values = None
    is_null: Values = None
    not_null: Values = None

    def to_command(self) -> dict[str, Sequence[JsonValue]]:
        sent = self.model_dump(by_alias=True, exclude_none=True)
        return {str(operator): sent[operator] for operator in Operator if operator in sent}


class LimitsRequest(StrictPart):
    max_datasources: int | None = None
    max_tables_per_datasource: int | None = None
    max_fields_per_table: int | None = None
    max_concurrency: int | None = None
    timeout: Seconds | None = None
    max_result_bytes: int | None = None


class OptionsRequest(StrictPart):
    values: str | None = None
    bigint: str | None = None
    decimals: str | None = None
    limits: LimitsRequest | None = None

    def to_command(self) -> JobOptions:
        defaults = JobOptions()
        limits = self.limits.model_dump(by_alias=True, exclude_none=True) if self.limits else {}
        return JobOptions(
            values=self.values if self.values is not None else defaults.values,
            bigint=self.bigint if self.bigint is not None else defaults.bigint,
            decimals=self.decimals if self.decimals is not None else defaults.decimals,
            limits=limits,
        )


class DataRequest(StrictPart):
    mapped_fields: dict[str, dict[str, list[str] | None] | None] | None = None
    filters: dict[str, dict[str, dict[str, ConditionRequest | None] | None] | None] | None = None
    options: OptionsRequest | None = None


class CreateJobRequest(Part):
    data_request: DataRequest | None = None
    metadata: dict[str, AnyJson] | None = None

    def to_command(self, *, request_id: str) -> JobOrder:
        asked = self.data_request or DataRequest()
        mapped = asked.mapped_fields
        return JobOrder(
            mapped_fields=None
            if mapped is None
            else {
                source: {table: names or [] for table, names in (tables or {}).items()}
                for source, tables in mapped.items()
            },
            filters={
                source: {
                    table: {
                        name: condition.to_command() if condition is not None else {}
                        for name, condition in (fields or {}).items()
                    }
                    for table, fields in (tables or {}).items()
                }
                for source, tables in (asked.filters or {}).items()
            },
            metadata=cast("JsonObject | None", self.metadata),
            options=asked.options.to_command() if asked.options is not None else None,
            request_id=request_id,
        )


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


class FailureAnswer(Answer):
    """Why a job failed, in safe words."""

    message: str
    code: str
    source: str | None = None
    stage: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, failure: FailureFacts) -> Self:
        return cls(
            message=failure.message,
            code=failure.code,
            source=failure.source,
            stage=failure.stage,
            reason=failure.reason,
        )


class SourceNotesAnswer(Answer):
    """How a source was read, as far as that does not go without saying."""

    snapshot: bool | None = None
    """False where its tables were not read as of one moment."""

    replaced_characters: int | None = None
    """How many characters stand in the place of bytes that were no text."""

    @classmethod
    def of(cls, notes: SourceNotes) -> Self:
        return cls(
            snapshot=None if notes.has_snapshot else False,
            replaced_characters=notes.replaced_characters or None,
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
    completed_at: Timestamp | None = None

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
            sources=_told_of_sources(job.result) if job.result is not None else None,
            request_hash=job.request_hash or None,
            created_at=rfc3339(job.created_at),
            completed_at=rfc3339(completed_at) if completed_at is not None else None,
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
