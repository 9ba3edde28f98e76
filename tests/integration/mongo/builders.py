"""Records to put into the store."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id, new_job_id
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import (
    EventMark,
    FailureFacts,
    Job,
    JobStatus,
    ResultFacts,
    TerminalOutcome,
)
from fetcher.domain.times import cut_to_milliseconds
from fetcher_engine import SourceNotes

RESULT = ResultFacts(
    path="external-data/x.json",
    hmac="ab" * 32,
    size_bytes=2**33,
    row_count=7,
    key_version="2",
    source_notes={"sales_db": SourceNotes(has_snapshot=False, replaced_characters=12)},
)
FAILURE = FailureFacts(
    message="sales_db: connect failed at tls: certificate expired",
    code="connect",
    source="sales_db",
    stage="tls",
    reason="certificate expired",
)


def wall_clock() -> datetime:
    return cut_to_milliseconds(datetime.now(UTC))


def a_job(**changes: Any) -> Job:
    job_id = new_job_id()
    job = Job(
        id=job_id,
        status=JobStatus.PENDING,
        created_at=wall_clock(),
        mapped_fields={"sales_db": {"orders": ("id", "total")}},
        request_hash=f"hash of {job_id}",
        metadata={"source": "acme-reports"},
    )
    return replace(job, **changes)


def a_connection(**changes: Any) -> Connection:
    connection_id = new_connection_id()
    now = wall_clock()
    connection = Connection(
        id=connection_id,
        config_name=f"db-{connection_id}",
        type=SourceType.POSTGRESQL,
        host="pg1.acme.test",
        port=5432,
        database_name="sales",
        username="reader",
        password_encrypted="c2VhbGVk",
        encryption_key_version="1",
        created_at=now,
        updated_at=now,
        product_name="acme-reports",
    )
    return replace(connection, **changes)


def an_event(status: str) -> EventMark:
    return EventMark(status=status, payload=f'{{"status":"{status}"}}', time=wall_clock())


def completed() -> TerminalOutcome:
    return TerminalOutcome(status=JobStatus.COMPLETED, event=an_event("completed"), result=RESULT)


def failed() -> TerminalOutcome:
    return TerminalOutcome(status=JobStatus.FAILED, event=an_event("failed"), failure=FAILURE)


def cancelled() -> TerminalOutcome:
    failure = FailureFacts(message="job cancelled", code="cancelled")
    return TerminalOutcome(status=JobStatus.CANCELLED, event=an_event("failed"), failure=failure)


def only_document(raw: Database[dict[str, Any]]) -> dict[str, Any]:
    [document] = raw["job"].find()
    return document


async def claimed(records: MongoRecords, job: Job) -> Claimed:
    claim = await records.leases.claim(job.id, owner="worker-1", lease_seconds=60)
    assert isinstance(claim, Claimed)
    return claim
