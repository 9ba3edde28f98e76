"""Jobs of the reference: listed, looked for, worked on and ended, and what then lies there."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from bson import Binary, Int64
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    CancelAnswer,
    Claimed,
    FinishAnswer,
    JobCursor,
    JobQuery,
    PendingCounts,
)
from fetcher.domain.jobs import Job, JobStatus, TableProgress
from tests.integration.mongo.builders import RESULT, a_job, an_event, completed
from tests.integration.mongo.reference import CREATED, ENDED, JOB_ID, reference_job, typed

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

OF_REFERENCE = set(reference_job()) | {"result_path", "result_hmac"}
MARKS = {
    "terminalEventPending": True,
    "terminalEventStatus": "failed",
    "terminalEventPayload": '{"jobId":"x"}',
}


def an_id(number: int) -> JobId:
    return JobId(UUID(int=number))


def insert(raw: Raw, number: int, **changes: Any) -> dict[str, Any]:
    own = {"_id": Binary(an_id(number).bytes, 0), "request_hash": f"hash {number}"}
    document = reference_job(**own | changes)
    raw["job"].insert_one(document)
    return document


def the_document(raw: Raw) -> dict[str, Any]:
    [document] = raw["job"].find()
    return document


async def listed(records: MongoRecords, **query: Any) -> list[int]:
    page = await records.jobs.list_page(JobQuery(limit=50, **query))
    assert page.next is None
    return [job.id.int for job in page.items]


# --- lists ------------------------------------------------------------------------------------


async def test_old_variants_are_listed_without_bookkeeping(records: MongoRecords, raw: Raw) -> None:
    ended: dict[str, Any] = {"dedup_active": False, "completed_at": ENDED}
    error = "process failed: unable to publish"
    insert(raw, 1, status="failed", **ended, metadata={"source": "p", "error": error, **MARKS})
    insert(raw, 2, status="failed", **ended, metadata={"error": {"code": 7.0}, "source": "P"})
    insert(raw, 3, status="completed", **ended, result_path="x.json", result_hmac="ab")
    document = reference_job(_id=Binary(an_id(4).bytes, 4), request_hash="h")
    for name in ("completed_at", "metadata", "filters", "dedup_active"):
        del document[name]
    raw["job"].insert_one(document)
    page = await records.jobs.list_page(JobQuery(ascending=True))
    jobs = {job.id.int: job for job in page.items}
    assert set(jobs) == {1, 2, 3, 4}
    assert jobs[1].failure is not None
    assert (jobs[1].failure.message, jobs[1].metadata) == (error, {"source": "p"})
    assert jobs[1].event_pending
    assert (jobs[2].failure, jobs[2].metadata) == (None, {"error": {"code": 7}, "source": "P"})
    assert jobs[3].result is not None
    assert (jobs[4].metadata, jobs[4].filters, jobs[4].completed_at) == ({}, {}, None)
    assert all((job.progress, job.result_deleted_at) == ({}, None) for job in jobs.values())
    assert await listed(records, product_name="p") == [2, 1]
    assert await listed(records, statuses=frozenset({JobStatus.PENDING})) == [4]


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_pages_over_one_instant_hold_ids_of_either_subtype_once(
    records: MongoRecords, raw: Raw, limit: int, ascending: bool
) -> None:
    for number in range(1, 8):
        insert(raw, number, _id=Binary(an_id(number).bytes, 4 if number % 3 == 0 else 0))
    seen: list[int] = []
    after: JobCursor | None = None
    for _ in range(8):
        page = await records.jobs.list_page(JobQuery(limit=limit, ascending=ascending, after=after))
        seen += [job.id.int for job in page.items]
        after = page.next
        if after is None:
            break
    assert sorted(seen) == list(range(1, 8))


async def test_a_record_that_cannot_be_read_is_left_out_and_stops_no_page(
    records: MongoRecords, raw: Raw
) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"mapped_fields": 5},
        {},
        {"created_at": "yesterday"},
        {"_id": "no uuid"},
        {},
    ]
    for number, changed in enumerate(changes, 1):
        own: dict[str, Any] = {"created_at": CREATED + timedelta(seconds=number)}
        insert(raw, number, **own | changed)
    seen: list[int] = []
    after: JobCursor | None = None
    while True:
        page = await records.jobs.list_page(JobQuery(limit=1, ascending=True, after=after))
        seen += [job.id.int for job in page.items]
        after = page.next
        if after is None:
            break
        assert len(seen) < 9
    assert seen == [1, 3, 6]


# --- who reads from a connection --------------------------------------------------------------

ODD = ["a.b", "$x", ".", "sales_db.public", "sales_db.public.orders", "表", ""]


async def test_a_record_without_datasources_is_found_by_its_mapped_fields(
    records: MongoRecords, raw: Raw
) -> None:
    insert(raw, 1, mapped_fields={"sales_db": {"public.orders": ["id"]}, "crm_db": None})
    await records.jobs.insert(a_job(mapped_fields={"own_db": {"sales": ("x",)}}))
    for name in ("sales_db", "crm_db", "own_db"):
        assert await records.jobs.is_in_use(name)
        assert len(await listed(records, config_name=name)) == 1
    for name in ["sales", "orders", "public", "SALES_DB", "mapped_fields", *ODD]:
        assert not await records.jobs.is_in_use(name), name
        assert await listed(records, config_name=name) == []


@pytest.mark.parametrize("name", ["a.b", "表", " x", "a/b", ""])
async def test_an_odd_name_in_an_old_record_fails_nothing(
    records: MongoRecords, raw: Raw, name: str
) -> None:
    insert(raw, 1, mapped_fields={name: {"t": ["x"]}})
    insert(raw, 2, mapped_fields={"a": {"b": ["x"]}})
    insert(raw, 3, mapped_fields=5)
    assert await records.jobs.is_in_use(name)
    assert await records.jobs.is_in_use("a")
    assert not await records.jobs.is_in_use(name + "2")
    assert await listed(records, config_name=name) == [1]
    assert await listed(records, config_name="a") == [2]


@pytest.mark.parametrize(
    ("changes", "in_use"),
    [
        ({"status": "pending"}, True),
        ({"status": "processing"}, True),
        ({"status": "pending", "waiting_reason": None}, True),
        ({"status": "processing", "waiting_reason": "breaker open"}, True),
        ({"status": "pending", "waiting_reason": "breaker open"}, False),
        ({"status": "completed", "dedup_active": False}, False),
        ({"status": "failed", "dedup_active": False}, False),
    ],
)
@pytest.mark.parametrize("own", [{}, {"datasources": ["sales_db"]}])
async def test_what_uses_a_connection(
    records: MongoRecords, raw: Raw, changes: dict[str, Any], own: dict[str, Any], in_use: bool
) -> None:
    insert(raw, 1, **changes, **own)
    assert await records.jobs.is_in_use("sales_db") is in_use


async def test_pending_jobs_of_the_reference_count(records: MongoRecords, raw: Raw) -> None:
    insert(raw, 1, metadata={"source": " ACME-reports"})
    insert(raw, 2, metadata=None)
    insert(raw, 3, status="processing")
    counts = await records.jobs.pending_counts(product_name="acme-Reports")
    assert counts == PendingCounts(total=2, of_product=1)


# --- what we write into them ------------------------------------------------------------------


async def test_from_claim_to_end_the_layout_is_the_references(
    records: MongoRecords, raw: Raw
) -> None:
    before = reference_job()
    raw["job"].insert_one(before)
    claim = await records.leases.claim(JOB_ID, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    claimed = the_document(raw)
    untouched = {name: before[name] for name in OF_REFERENCE & set(before)} | {
        "status": "processing"
    }
    assert typed({n: claimed[n] for n in untouched}) == typed(untouched)
    assert typed(claimed["lease_token"]) == ("bytes", claim.lease.token)
    assert typed(claimed["attempt"]) == ("int", 1)

    progress = {"sales_db": {"public.orders": TableProgress(rows=2**40, bytes=5)}}
    assert await records.leases.note_progress(claim.lease, progress)
    noted = the_document(raw)
    stored = {"sales_db": {"public.orders": {"rows": Int64(2**40), "bytes": 5}}}
    assert typed(noted) == typed(claimed | {"progress": stored})

    outcome = completed()
    assert await records.leases.finish(claim.lease, outcome) is FinishAnswer.WRITTEN
    ended = the_document(raw)
    facts = {
        "status": "completed",
        "dedup_active": False,
        "completed_at": ended["completed_at"],
        "result_path": RESULT.path,
        "result_hmac": RESULT.hmac,
        "metadata": before["metadata"]
        | {
            "terminalEventPending": True,
            "terminalEventStatus": "completed",
            "terminalEventPayload": outcome.event.payload,
        },
    }
    assert typed({n: ended[n] for n in OF_REFERENCE}) == typed(
        {n: v for n, v in before.items() if n in OF_REFERENCE} | facts
    )
    assert ended["completed_at"] >= claimed["started_at"]
    assert typed(ended["result_bytes"]) == ("Int64", 2**33)
    assert typed(ended["progress"]) == typed(stored)

    await records.events.mark_published(JOB_ID)
    assert typed(the_document(raw)["metadata"]) == typed(before["metadata"])
    at = ENDED + timedelta(days=1)
    assert await records.jobs.mark_result_deleted(JOB_ID, at=at)
    deleted = the_document(raw)
    assert typed(deleted["result_deleted_at"]) == ("datetime", at)
    assert deleted["result_path"] == RESULT.path
    job = await records.jobs.find_latest_by_hash(before["request_hash"], within_seconds=10**9)
    assert job is not None
    assert job.result_deleted_at == at


async def test_a_claim_takes_away_the_progress_of_the_attempt_before(
    records: MongoRecords, raw: Raw
) -> None:
    stale = {"sales_db": {"public.orders": {"rows": 7.0, "bytes": 9.0}}}
    insert(raw, 1, status="processing", lease_until=CREATED, progress=stale)
    claim = await records.leases.claim(an_id(1), owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    assert the_document(raw)["progress"] == {}


async def test_a_cancel_ends_a_pending_job_in_the_references_layout(
    records: MongoRecords, raw: Raw
) -> None:
    before = reference_job()
    del before["completed_at"]
    raw["job"].insert_one(before)
    mark = an_event("failed")
    assert await records.jobs.request_cancel(JOB_ID, mark) is CancelAnswer.CANCELLED
    after = the_document(raw)
    expected = before | {
        "status": "cancelled",
        "dedup_active": False,
        "completed_at": after["completed_at"],
        "metadata": before["metadata"]
        | {
            "error": "job cancelled",
            "terminalEventPending": True,
            "terminalEventStatus": "failed",
            "terminalEventPayload": mark.payload,
        },
    }
    assert typed({name: after[name] for name in expected}) == typed(expected)


async def test_a_keyed_job_of_ours_loses_its_key_as_a_field(
    records: MongoRecords, raw: Raw
) -> None:
    job: Job = a_job(idempotency_key="/v1/fetcher k acme")
    await records.jobs.insert(job)
    before = the_document(raw)
    assert typed(before["idempotency_key"]) == ("str", "/v1/fetcher k acme")
    await records.jobs.forget_idempotency_key(job.id, "/v1/fetcher k acme")
    after = the_document(raw)
    del before["idempotency_key"]
    assert typed(after) == typed(before)
