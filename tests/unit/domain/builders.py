"""Jobs and facts for tests."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from tests.unit.crypto import vectors

JOB_ID: Final = JobId(UUID(vectors.JOB_ID))
CREATED_AT: Final = datetime(2026, 3, 14, 9, 26, 53, 500_000, tzinfo=UTC)
COMPLETED_AT: Final = datetime(2026, 3, 14, 9, 26, 54, 312_000, tzinfo=UTC)

_JOB = Job(
    id=JOB_ID,
    status=JobStatus.PENDING,
    created_at=CREATED_AT,
    mapped_fields={"sales_db": {"orders": ("id", "total")}},
    request_hash="0" * 64,
    metadata={"source": "acme-reports"},
    request_id="req-1",
)


def a_job(**changes: object) -> Job:
    return replace(_JOB, **changes)  # type: ignore[arg-type] # the fields' own types differ


def result_facts(*, row_count: int = 1) -> ResultFacts:
    return ResultFacts(
        path=f"external-data/{JOB_ID}.json",
        hmac=vectors.RESULT_HMAC,
        size_bytes=103,
        row_count=row_count,
        key_version="1",
    )
