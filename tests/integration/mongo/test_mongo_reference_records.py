"""Records as the reference writes them, without any field of ours, read and worked on.

Built from the record tables of spec rest-api 12.2 and 12.3: doubles for all numbers of JSON, nulls
for unused operators, absent or null where the tables say so.
"""

from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any

import pytest
from bson import Binary
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.connections import Connection, ConnectionQuery, SourceType, TlsSettings
from fetcher.domain.job_store import CancelAnswer, Claimed, ClaimRefusal, EndedCursor
from fetcher.domain.jobs import EventMark, FailureFacts, Job, JobStatus, ResultFacts
from tests.integration.mongo.builders import an_event, failed
from tests.integration.mongo.reference import (
    CONNECTION_ID,
    CREATED,
    ENDED,
    JOB_ID,
    reference_connection,
    reference_job,
    stored_job,
)

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

LONG_AGO = timedelta(days=1)


async def test_a_pending_job_reads_as_one_that_was_dispatched_when_created(
    records: MongoRecords, raw: Raw
) -> None:
    job = await stored_job(records, raw)
    assert job == Job(
        id=JOB_ID,
        status=JobStatus.PENDING,
        created_at=CREATED,
        mapped_fields={"sales_db": {"public.orders": ("id", "total")}},
        request_hash="79dcd116bf0a2a59b828e759968cc080184d850885d486078e1fbdceaba9e0bf",
        filters={
            "sales_db": {
                "public.orders": {
                    "total": {"gte": (Decimal("10.5"),), "nin": (1, 9007199254740992)},
                    "state": {"in": ("paid", "sent")},
                }
            }
        },
        metadata={
            "source": "acme-reports",
            "batch": 7,
            "share": Decimal("0.25"),
            "tags": ["a", None],
        },
        dispatched_at=CREATED,
    )
    assert type(job.metadata["batch"]) is int


async def test_absent_fields_are_the_same_as_null_ones(records: MongoRecords, raw: Raw) -> None:
    document = reference_job()
    for name in ("metadata", "filters", "completed_at"):
        del document[name]
    raw["job"].insert_one(document)
    job = await records.jobs.get(JOB_ID)
    assert job is not None
    assert (job.metadata, job.filters, job.completed_at) == ({}, {}, None)


async def test_a_null_in_place_of_a_table_or_source_is_none_of_either(
    records: MongoRecords, raw: Raw
) -> None:
    job = await stored_job(
        records, raw, mapped_fields={"a": None, "b": {"t": None, "u": ["x"]}}, filters={"a": {}}
    )
    assert job.mapped_fields == {"a": {}, "b": {"t": (), "u": ("x",)}}
    assert job.filters == {"a": {}}


@pytest.mark.parametrize(
    ("double", "number"),
    [
        (100.0, 100),
        (-0.0, Decimal("-0")),
        (2.0**53 + 2, 2**53 + 2),
        (1e20, 10**20),
        (1e21, Decimal("1e+21")),
        (1.5e300, Decimal("1.5e+300")),
        (0.1, Decimal("0.1")),
        (1e-7, Decimal("1e-07")),
        (5e-324, Decimal("5e-324")),
    ],
)
async def test_a_double_is_the_number_that_its_shortest_form_says(
    records: MongoRecords, raw: Raw, double: float, number: int | Decimal
) -> None:
    job = await stored_job(records, raw, metadata={"n": double})
    assert job.metadata["n"] == number
    assert type(job.metadata["n"]) is type(number)


async def test_a_completed_job(records: MongoRecords, raw: Raw) -> None:
    job = await stored_job(
        records,
        raw,
        status="completed",
        dedup_active=False,
        completed_at=ENDED,
        result_path="external-data/x.json",
        result_hmac="ab",
    )
    assert job.result == ResultFacts(
        path="external-data/x.json", hmac="ab", size_bytes=0, row_count=0, key_version=""
    )
    assert (job.failure, job.event_pending) == (None, False)
    cursor = EndedCursor(completed_at=ENDED, job_id=JOB_ID)
    assert await records.jobs.latest_ended() == cursor
    assert await records.jobs.list_ended(after=None, limit=5) == [job]
    assert await records.jobs.list_ended(after=cursor, limit=5) == []


async def test_a_failed_job_has_its_text(records: MongoRecords, raw: Raw) -> None:
    job = await stored_job(
        records,
        raw,
        status="failed",
        dedup_active=False,
        completed_at=ENDED,
        metadata={"source": "acme-reports", "error": "process failed: unable to publish"},
    )
    assert job.failure == FailureFacts(message="process failed: unable to publish", code="")
    assert job.metadata == {"source": "acme-reports"}


async def test_an_id_of_subtype_4_is_read_and_worked_on(records: MongoRecords, raw: Raw) -> None:
    await stored_job(records, raw, _id=Binary(JOB_ID.bytes, 4))
    claim = await records.leases.claim(JOB_ID, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    assert dict(await records.leases.check([claim.lease])) == {JOB_ID: "held"}
    await records.leases.finish(claim.lease, failed())
    [document] = raw["job"].find()
    assert (document["_id"], document["status"]) == (Binary(JOB_ID.bytes, 4), "failed")


async def test_ended_jobs_with_ids_of_either_subtype_are_listed_once(
    records: MongoRecords, raw: Raw
) -> None:
    for subtype, first_byte in [(0, 2), (4, 3), (0, 4)]:
        document = reference_job(
            _id=Binary(bytes([first_byte]) + JOB_ID.bytes[1:], subtype),
            status="completed",
            dedup_active=False,
            completed_at=ENDED,
        )
        raw["job"].insert_one(document)
    seen: list[Job] = []
    after = None
    while page := await records.jobs.list_ended(after=after, limit=3):
        seen += page
        last = page[-1]
        assert last.completed_at is not None
        after = EndedCursor(completed_at=last.completed_at, job_id=last.id)
        assert len(seen) <= 3
    assert len(seen) == 3


# --- dispatch, leases and events of a mixed fleet ---------------------------------------------


async def test_a_pending_job_is_dispatched_again_only_once_it_is_stale(
    records: MongoRecords, raw: Raw
) -> None:
    await stored_job(records, raw)
    assert await records.dispatch.claim_due(limit=5, lease_seconds=15) == []
    backlog = await records.dispatch.backlog(older_than_seconds=600)
    assert (backlog.dispatched, backlog.stale) == (1, 1)
    assert await records.dispatch.dispatch_again(older_than_seconds=600, limit=5) == 1
    [claim] = await records.dispatch.claim_due(limit=5, lease_seconds=15)
    assert (claim.job.id, claim.dispatch_seq) == (JOB_ID, 1)
    assert await records.dispatch.mark_dispatched({JOB_ID: 1})
    assert (await records.dispatch.backlog(older_than_seconds=600)).stale == 0


async def test_a_pending_job_can_be_claimed_released_and_cancelled(
    records: MongoRecords, raw: Raw
) -> None:
    await stored_job(records, raw)
    claim = await records.leases.claim(JOB_ID, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    assert claim.lease.attempt == 1
    assert await records.leases.release(claim.lease)
    assert await records.jobs.request_cancel(JOB_ID, an_event("failed")) is CancelAnswer.CANCELLED
    job = await records.jobs.get(JOB_ID)
    assert job is not None
    assert (job.status, job.failure) == (
        JobStatus.CANCELLED,
        FailureFacts(message="job cancelled", code="cancelled"),
    )


async def test_processing_without_a_lease_runs_out_ten_minutes_after_first_sight(
    records: MongoRecords, raw: Raw
) -> None:
    await stored_job(records, raw, status="processing")
    refusal = await records.leases.claim(JOB_ID, owner="w", lease_seconds=60)
    assert refusal is ClaimRefusal.LEASED
    assert await records.expired.find_expired(limit=5) == []
    [document] = raw["job"].find()
    server_time = raw.command("hello")["localTime"].replace(tzinfo=UTC)
    left = document["lease_until"] - server_time
    assert timedelta(minutes=9, seconds=50) < left <= timedelta(minutes=10, seconds=1)
    assert await records.expired.find_expired(limit=5) == []
    assert raw["job"].find_one() == document  # the second look moves nothing


async def test_a_worker_of_the_reference_that_never_ended_is_taken_over(
    records: MongoRecords, raw: Raw
) -> None:
    await stored_job(records, raw, status="processing", lease_until=CREATED)
    [expired] = await records.expired.find_expired(limit=5)
    assert (expired.id, expired.lease_token) == (JOB_ID, None)
    assert await records.expired.requeue(expired)
    [document] = raw["job"].find()
    assert (document["status"], document["takeovers"], document["dispatch_seq"]) == (
        "pending",
        1,
        1,
    )


async def test_a_mark_of_the_reference_is_published_once_it_is_30_seconds_old(
    records: MongoRecords, raw: Raw
) -> None:
    marks = {
        "source": "acme-reports",
        "terminalEventPending": True,
        "terminalEventStatus": "completed",
        "terminalEventPayload": '{"jobId":"x"}',
    }
    now = raw.command("hello")["localTime"].replace(tzinfo=UTC)
    ended: dict[str, Any] = {"status": "completed", "dedup_active": False, "metadata": marks}
    await stored_job(records, raw, **ended, completed_at=now - timedelta(seconds=5))
    assert await records.events.claim_due(limit=5, lease_seconds=30) == []
    raw["job"].update_one({}, {"$set": {"completed_at": ENDED}})
    [claim] = await records.events.claim_due(limit=5, lease_seconds=30)
    assert claim.job_id == JOB_ID
    assert claim.mark == EventMark(status="completed", payload='{"jobId":"x"}', time=ENDED)
    assert claim.attempts == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"metadata.terminalEventPayload": ""},
        {"metadata.terminalEventPayload": 7},
        {"metadata.terminalEventStatus": None},
        {"metadata.terminalEventStatus": "failed"},
        {"completed_at": ENDED, "event_time": "yesterday"},
    ],
)
async def test_a_mark_that_cannot_be_emitted_stays_and_starves_no_other(
    records: MongoRecords, raw: Raw, changed: dict[str, Any]
) -> None:
    marks = {
        "terminalEventPending": True,
        "terminalEventStatus": "completed",
        "terminalEventPayload": "{}",
    }
    ended: dict[str, Any] = {"status": "completed", "dedup_active": False, "metadata": marks}
    await stored_job(records, raw, **ended, completed_at=ENDED)
    raw["job"].update_one({}, {"$set": changed})
    good = reference_job(_id=Binary(bytes(16), 0), completed_at=ENDED + LONG_AGO, **ended)
    raw["job"].insert_one(good)
    [claim] = await records.events.claim_due(limit=1, lease_seconds=30)
    assert claim.job_id.int == 0
    document = raw["job"].find_one({"_id": JOB_ID.bytes})
    assert document is not None
    assert document["metadata"]["terminalEventPending"] is True
    assert document["event_last_error"] == "mark_corrupt"
    assert document["event_attempts"] == 1


async def test_a_mark_on_a_job_that_has_not_ended_is_left_alone(
    records: MongoRecords, raw: Raw
) -> None:
    marks = {"terminalEventPending": True, "terminalEventStatus": "completed"}
    await stored_job(records, raw, metadata=marks)
    assert await records.events.claim_due(limit=5, lease_seconds=30) == []


# --- connections ------------------------------------------------------------------------------


async def test_a_connection_with_its_nulls(records: MongoRecords, raw: Raw) -> None:
    raw["connection"].insert_one(reference_connection())
    connection = await records.connections.get(CONNECTION_ID)
    assert connection == Connection(
        id=CONNECTION_ID,
        config_name="sales_db",
        type=SourceType.POSTGRESQL,
        host="pg1.acme.test",
        port=5432,
        database_name="sales",
        username="reader",
        password_encrypted="c2VhbGVk",
        encryption_key_version="1",
        created_at=CREATED,
        updated_at=ENDED,
        product_name="acme-reports",
    )
    assert await records.connections.find_by_config_names(["sales_db", "x"]) == [connection]


async def test_an_old_connection_without_a_product_and_with_all_else(
    records: MongoRecords, raw: Raw
) -> None:
    document = reference_connection(
        schema="public",
        ssl={"mode": "verify-ca", "ca": "PEM"},
        metadata={"team": "bi", "rank": 3.0},
    )
    del document["product_name"]
    raw["connection"].insert_one(document)
    connection = await records.connections.get(CONNECTION_ID)
    assert connection is not None
    assert connection.product_name == ""
    assert connection.schema == "public"
    assert connection.tls == TlsSettings(mode="verify-ca", ca="PEM")
    assert connection.metadata == {"team": "bi", "rank": 3}


async def test_a_deleted_connection_is_invisible_and_frees_its_name(
    records: MongoRecords, raw: Raw
) -> None:
    raw["connection"].insert_one(reference_connection(deleted_at=ENDED))
    assert await records.connections.get(CONNECTION_ID) is None
    assert await records.connections.find_by_config_names(["sales_db"]) == []
    assert (await records.connections.list_page(ConnectionQuery())).total == 0
