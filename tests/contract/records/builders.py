"""Records for the tests, valid unless told otherwise, and the steps that bring a job somewhere."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id, new_job_id
from fetcher.domain.job_store import Claimed, FinishAnswer
from fetcher.domain.jobs import (
    EventMark,
    FailureFacts,
    Job,
    JobStatus,
    ResultFacts,
    TerminalOutcome,
)
from fetcher.domain.times import cut_to_milliseconds
from fetcher.domain.trace_context import TraceContext
from fetcher.ports import RecordStore
from fetcher_engine import SourceNotes

LEASE_SECONDS = 60.0
ALREADY_OVER = 0.0
"""A lease of this length has run out when it begins, so that no test waits."""

RESULT = ResultFacts(
    path="external-data/1.json",
    hmac="ab" * 32,
    size_bytes=2**40,
    row_count=7,
    key_version="v2",
    source_notes={
        "sales_db": SourceNotes(has_snapshot=False, replaced_characters=2**40),
        "crm": SourceNotes(replaced_characters=1),
    },
)
FAILURE = FailureFacts(
    message="sales_db: connect failed at tls: certificate_expired",
    code="connect",
    source="sales_db",
    stage="tls",
    reason="certificate_expired",
)


def now() -> datetime:
    return cut_to_milliseconds(datetime.now(UTC))


def ago(seconds: float) -> datetime:
    return now() - timedelta(seconds=seconds)


TRACE = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "acme=1")


def a_job(**changes: Any) -> Job:
    """A pending job that nobody has seen, with a hash of its own."""
    values: dict[str, Any] = {
        "id": new_job_id(),
        "status": JobStatus.PENDING,
        "created_at": now(),
        "mapped_fields": {"sales_db": {"public.orders": ("id", "total")}},
        "request_hash": secrets.token_hex(32),
        "metadata": {"source": "Reporting"},
        "request_id": "req-1",
        "trace": TRACE,
    }
    return Job(**values | changes)


def a_connection(**changes: Any) -> Connection:
    values: dict[str, Any] = {
        "id": new_connection_id(),
        "config_name": f"db_{secrets.token_hex(6)}",
        "type": SourceType.POSTGRESQL,
        "host": "db.example.com",
        "port": 5432,
        "database_name": "sales",
        "username": "reader",
        "password_encrypted": "c2VhbGVk",
        "encryption_key_version": "1",
        "created_at": now(),
        "updated_at": now(),
    }
    return Connection(**values | changes)


def a_mark(status: str = "completed", payload: str = '{"jobId":"1"}') -> EventMark:
    return EventMark(status=status, payload=payload, time=now())


def completed(**changes: Any) -> TerminalOutcome:
    values: dict[str, Any] = {
        "status": JobStatus.COMPLETED,
        "event": a_mark(),
        "result": RESULT,
    }
    return TerminalOutcome(**values | changes)


def failed() -> TerminalOutcome:
    return TerminalOutcome(status=JobStatus.FAILED, event=a_mark("failed"), failure=FAILURE)


def cancelled() -> TerminalOutcome:
    failure = FailureFacts(message="job cancelled", code="cancelled")
    return TerminalOutcome(status=JobStatus.CANCELLED, event=a_mark("failed"), failure=failure)


async def inserted(store: RecordStore, **changes: Any) -> Job:
    job = a_job(**changes)
    await store.jobs.insert(job)
    return job


async def claimed(
    store: RecordStore, job: Job, *, owner: str = "worker-1", lease_seconds: float = LEASE_SECONDS
) -> Claimed:
    claim = await store.leases.claim(job.id, owner=owner, lease_seconds=lease_seconds)
    assert isinstance(claim, Claimed), claim
    return claim


async def ended(store: RecordStore, outcome: TerminalOutcome, **changes: Any) -> Job:
    """A job that was inserted, claimed and ended."""
    job = await inserted(store, **changes)
    claim = await claimed(store, job)
    assert await store.leases.finish(claim.lease, outcome) is FinishAnswer.WRITTEN
    return await read(store, job)


async def read(store: RecordStore, job: Job) -> Job:
    found = await store.jobs.get(job.id)
    assert found is not None
    return found
