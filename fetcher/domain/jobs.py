"""A job: one request for fields of up to ten sources, and what became of it.

Times are the record store's clock, in UTC, cut to milliseconds (what MongoDB keeps).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from fetcher.domain.ids import JobId
from fetcher.domain.json_values import JsonObject, JsonScalar
from fetcher.domain.trace_context import TraceContext
from fetcher_engine import SourceNotes

MappedFields: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Config name to table to fields, as requested."""

Condition: TypeAlias = Mapping[str, tuple[JsonScalar, ...]]
"""Operator to its values; the operators are those of :class:`Operator`."""

Filters: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Condition]]]
"""Config name to table to field to condition."""


class Operator(StrEnum):
    """Filter operators in the order of the request hash (spec rest-api 9.4), then our own two."""

    EQ = "eq"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    BETWEEN = "between"
    IN = "in"
    NIN = "nin"
    NE = "ne"
    LIKE = "like"
    IS_NULL = "is_null"
    NOT_NULL = "not_null"


class JobStatus(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_active(self) -> bool:
        """Whether the job still blocks an identical request (``dedup_active``)."""
        return self in (JobStatus.PENDING, JobStatus.PROCESSING)


LIMIT_NAMES: Final = MappingProxyType(
    {
        "maxDatasources": "max_datasources",
        "maxTablesPerDatasource": "max_tables_per_datasource",
        "maxFieldsPerTable": "max_fields_per_table",
        "maxConcurrency": "max_concurrency",
        "timeout": "timeout",
        "maxResultBytes": "max_result_bytes",
    }
)
"""JSON name of a limit to the Engine's name (spec engine 4.13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """``dataRequest.options`` (design section 6); the defaults are what absence means.

    ``limits`` uses the JSON names of the Engine's limits (spec engine 4.13) and only lowers them.
    """

    values: str = "compatible"
    bigint: str = "number"
    decimals: str = "string"
    limits: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFacts:
    """What the record keeps of a stored result. Sizes count the plain document."""

    path: str
    hmac: str
    size_bytes: int
    row_count: int
    key_version: str
    source_notes: Mapping[str, SourceNotes] = field(default_factory=dict)
    """By config name, of those sources of which there is something to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFacts:
    """Why a job failed, from safe parts only: never a driver's text.

    ``message`` goes through the redaction rules of spec worker-and-events 8.5 before it is built.
    """

    message: str
    code: str
    source: str | None = None
    stage: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMark:
    """The pending terminal event that is written together with the terminal state.

    ``status`` is ``completed`` or ``failed`` (a cancelled job emits ``failed``, design section 4);
    ``payload`` is the exact body that will be published, ``time`` the event's fixed ``ce-time``.
    """

    status: str
    payload: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProgress:
    """What has been read of one table so far; bytes of rendered rows."""

    rows: int
    bytes: int


Progress: TypeAlias = Mapping[str, Mapping[str, TableProgress]]
"""Config name to table to what its running (or last) attempt has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalOutcome:
    """One terminal write: exactly one of ``result`` (completed) and ``failure`` (the other two).

    ``progress`` is what the attempt has read; empty where nobody knows: what was noted stays.
    """

    status: JobStatus
    event: EventMark
    result: ResultFacts | None = None
    failure: FailureFacts | None = None
    progress: Progress = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    """An attempt that ends before it began: the job waits until then, by the store's clock."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One line of the job's history; ``ended_at`` is None while the attempt runs."""

    attempt: int
    owner: str
    started_at: datetime
    ended_at: datetime | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One record of the job store (spec rest-api 12.3; the added fields: design section 4)."""

    id: JobId
    status: JobStatus
    created_at: datetime
    mapped_fields: MappedFields
    request_hash: str
    filters: Filters = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    """The caller's metadata. ``error`` is in it only as the API shows it (:attr:`failure`)."""
    options: JobOptions = field(default_factory=JobOptions)
    request_id: str = ""
    """``X-Request-Id`` of the call that created the job: it travels on the work message."""
    completed_at: datetime | None = None
    result: ResultFacts | None = None
    failure: FailureFacts | None = None
    attempt: int = 0
    takeovers: int = 0
    lease_owner: str | None = None
    lease_token: bytes | None = field(default=None, repr=False)
    lease_until: datetime | None = None
    started_at: datetime | None = None
    due_at: datetime | None = None
    waiting_reason: str | None = None
    dispatched_at: datetime | None = None
    dispatch_seq: int = 0
    cancel_requested: datetime | None = None
    event_pending: bool = False
    attempts: tuple[AttemptRecord, ...] = ()
    progress: Progress = field(default_factory=dict)
    result_deleted_at: datetime | None = None
    """A job whose result was deleted is no duplicate (decisions)."""
    trace: TraceContext | None = None
    """Of the call that created the job: what its messages, its run and its event belong to."""
    idempotency_key: str | None = None
    """Path, key and product as one text, see :func:`idempotency_key`; unique among all jobs. Of
    several keys one: the store knows the others."""

    @property
    def is_parked(self) -> bool:
        """Whether it waits for its connection's breaker rather than for a worker."""
        return self.status is JobStatus.PENDING and self.waiting_reason is not None

    @property
    def product_name(self) -> str:
        """The product that asked: ``metadata.source``, compared without case (decisions)."""
        source = self.metadata.get("source")
        return source.strip().lower() if isinstance(source, str) else ""


# --- what the claims of the record store answer -----------------------------------------------


def idempotency_key(*, path: str, key: str, product_name: str) -> str:
    """The scope of an ``Idempotency-Key`` (decisions) as one text.

    Neither path nor key may hold a blank; with the product last no two scopes share a text.
    """
    return f"{path} {key} {product_name}"
