"""What a job's document keeps of its event, attempts and left objects (spec rest-api 12.3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords, job_leases
from fetcher.adapters.mongo.job_reading import find_job
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import FinishAnswer
from fetcher.domain.jobs import AttemptRecord, Job, JobStatus
from tests.integration.mongo.builders import (
    FAILURE,
    a_job,
    cancelled,
    claimed,
    completed,
    failed,
    only_document,
)

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration


async def test_marks_can_be_written_where_there_is_no_metadata(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job(metadata={})
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    assert await records.leases.finish(claim.lease, failed()) is FinishAnswer.WRITTEN
    assert only_document(raw)["metadata"]["error"] == FAILURE.message


async def test_a_published_event_leaves_no_mark(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    await records.leases.finish(claim.lease, completed())
    await records.events.mark_published(job.id)
    document = only_document(raw)
    assert document["metadata"] == {"source": "acme-reports"}
    assert not {"event_due_at", "event_lease_until", "event_last_error"} & set(document)


async def test_a_failed_try_to_publish_is_noted(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    await records.leases.finish(claim.lease, completed())
    [event] = await records.events.claim_due(limit=5, lease_seconds=30)
    await records.events.postpone(event.job_id, retry_in_seconds=20, error_code="unroutable")
    document = only_document(raw)
    assert document["event_attempts"] == 1
    assert document["event_last_error"] == "unroutable"
    assert document["event_lease_until"] is None
    assert document["event_due_at"] >= document["completed_at"] + timedelta(seconds=20)


async def test_a_release_leaves_a_pending_record(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    assert await records.leases.release(claim.lease)
    document = only_document(raw)
    assert document["status"] == "pending"
    assert document["dedup_active"] is True
    assert (document["completed_at"], document["dispatched_at"]) == (None, None)
    assert (document["lease_token"], document["lease_until"]) == (None, None)
    assert (document["dispatch_seq"], document["attempt"], document["takeovers"]) == (1, 1, 0)
    assert document["attempts"][0]["code"] == "released"


async def test_only_the_last_twenty_attempts_are_kept(records: MongoRecords, raw: Raw) -> None:
    begun = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
    job = a_job()
    await records.jobs.insert(job)
    entry = {"owner": "w", "started_at": begun, "ended_at": begun, "code": "released"}
    earlier = [{"attempt": number, **entry} for number in range(1, 21)]
    raw["job"].update_one({}, {"$set": {"attempts": earlier, "attempt": 20}})
    claim = await claimed(records, job)
    assert [attempt.attempt for attempt in claim.job.attempts] == list(range(2, 22))
    assert len(only_document(raw)["attempts"]) == 20
    assert claim.job.attempts[0] == AttemptRecord(
        attempt=2, owner="w", started_at=begun, ended_at=begun, code="released"
    )


async def test_left_objects_are_noted_once_each_with_the_first_time(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    await records.cleanup.note(job.id, ["a", "b"], late_seconds=0)
    first = only_document(raw)["cleanup_due"]
    await records.cleanup.note(job.id, ["b", "c"], late_seconds=0)
    document = only_document(raw)
    assert document["cleanup_keys"] == ["a", "b", "c"]
    assert document["cleanup_due"] == first
    assert await records.cleanup.find_due(limit=1) == [(job.id, ("a", "b", "c"))]
    await records.cleanup.clear(job.id, ["a", "b", "c"])
    left = only_document(raw)
    assert [name for name in left if name.startswith("cleanup_")] == []


async def test_a_note_of_an_earlier_version_ends_with_its_deletion(
    records: MongoRecords, raw: Raw
) -> None:
    """It has no second time."""
    job = a_job()
    await records.jobs.insert(job)
    await records.cleanup.note(job.id, ["a"])
    raw["job"].update_one({}, {"$unset": {"cleanup_until": ""}})
    await records.cleanup.clear(job.id, ["a"])
    left = only_document(raw)
    assert [name for name in left if name.startswith("cleanup_")] == []


@pytest.mark.parametrize("status", list(JobStatus))
async def test_dedup_active_says_whether_the_status_is_active(
    records: MongoRecords, raw: Raw, status: JobStatus
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    if status is not JobStatus.PENDING:
        claim = await claimed(records, job)
        outcomes = {
            JobStatus.COMPLETED: completed(),
            JobStatus.FAILED: failed(),
            JobStatus.CANCELLED: cancelled(),
        }
        if status in outcomes:
            await records.leases.finish(claim.lease, outcomes[status])
    document = only_document(raw)
    assert document["status"] == status.value
    assert document["dedup_active"] is (status in (JobStatus.PENDING, JobStatus.PROCESSING))


async def test_a_terminal_write_by_the_owner_does_not_read_the_record_again(
    records: MongoRecords, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    reads: list[object] = []
    find = find_job

    async def counted(jobs: Any, job_id: JobId) -> Job | None:
        reads.append(job_id)
        return await find(jobs, job_id)

    monkeypatch.setattr(job_leases, "find_job", counted)
    await records.leases.renew(claim.lease, lease_seconds=600)
    assert await records.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
    assert reads == []
    stored = only_document(raw)
    assert (stored["status"], stored["lease_until"]) == ("completed", None)
    assert [line["ended_at"] for line in stored["attempts"]] == [stored["completed_at"]]
    assert await records.leases.finish(claim.lease, completed()) is FinishAnswer.WRITTEN
    assert reads == [job.id]


async def test_a_wish_to_cancel_after_the_claim_is_found_by_the_terminal_write(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    await records.jobs.request_cancel(job.id, cancelled().event)
    answer = await records.leases.finish(claim.lease, completed())
    assert answer is FinishAnswer.CANCEL_REQUESTED
    assert only_document(raw)["status"] == "processing"
