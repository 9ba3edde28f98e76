"""Records that cannot be read or written: the field is named, no value, and no sweep stops."""

from typing import Any
from uuid import UUID

import pytest
import structlog
from bson import Binary, Regex
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import PortError, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import (
    EndedCursor,
)
from tests.integration.mongo.builders import a_job
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

SECRET = "s3cr3t-canary"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"status": SECRET}, "job record: status"),
        ({"created_at": SECRET}, "job record: created_at"),
        ({"created_at": None}, "job record: created_at"),
        ({"request_hash": 7}, "job record: request_hash"),
        ({"metadata": SECRET}, "job record: metadata"),
        ({"metadata": {"x": Regex(SECRET)}}, "job record: metadata: holds what is no JSON value"),
        ({"metadata": {"x": float("nan")}}, "job record: metadata: holds what is no JSON value"),
        ({"metadata": {"x": b"1"}}, "job record: metadata: holds what is no JSON value"),
        (
            {"metadata": {"x": Binary(SECRET.encode(), 0x80)}},
            "job record: metadata: holds what is no JSON value",
        ),
        ({"mapped_fields": {SECRET: 1}}, f"job record: mapped_fields: {SECRET}"),
        ({"result_path": "x", "source_notes": {"a": 1}}, "job record: source_notes: a"),
        (
            {"result_path": "x", "source_notes": {"a": {"replaced_characters": -1}}},
            "job record: source_notes: a",
        ),
        (
            {"result_path": "x", "source_notes": {"a": {"snapshot": SECRET}}},
            "job record: source_notes: a",
        ),
        ({"mapped_fields": {"a": {"t": [1]}}}, "job record: mapped_fields: field names"),
        (
            {"filters": {"a": {"t": {"f": {SECRET: [1]}}}}},
            "job record: filters: unknown operator",
        ),
        ({"filters": {"a": {"t": {"f": {"equals": 1}}}}}, "job record: filters: equals"),
        ({"attempt": "1"}, "job record: attempt"),
        ({"attempt": True}, "job record: attempt"),
        ({"attempts": [SECRET]}, "job record: attempts"),
        ({"progress": {"a": {"t": SECRET}}}, "job record: progress: t"),
        ({"progress": {"a": {"t": {"rows": SECRET}}}}, "job record: progress: rows"),
        ({"lease_token": SECRET}, "job record: lease_token"),
        ({"options": {"limits": {"x": SECRET}}}, "job record: options: limits"),
        (
            {"failure": SECRET, "status": "failed", "metadata": {"error": "x"}},
            "job record: failure",
        ),
    ],
)
async def test_a_corrupt_job_names_the_field_and_no_value(
    records: MongoRecords, raw: Raw, changes: dict[str, Any], named: str
) -> None:
    raw["job"].insert_one(reference_job(**changes))
    with pytest.raises(RecordCorrupt) as caught:
        await records.jobs.get(JOB_ID)
    assert str(caught.value) == named
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"type": "REDIS"}, "connection record: type"),
        ({"port": "5432"}, "connection record: port"),
        ({"ssl": SECRET}, "connection record: ssl"),
        ({"ssl": {"key": 1}}, "connection record: ssl: key"),
        ({"password_encrypted": b"x"}, "connection record: password_encrypted"),
    ],
)
async def test_a_corrupt_connection_names_the_field_and_no_value(
    records: MongoRecords, raw: Raw, changes: dict[str, Any], named: str
) -> None:
    raw["connection"].insert_one(reference_connection(**changes))
    with pytest.raises(RecordCorrupt) as caught:
        await records.connections.get(CONNECTION_ID)
    assert str(caught.value) == named
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_a_corrupt_connection_is_left_out_of_lists_and_told(
    records: MongoRecords, raw: Raw
) -> None:
    raw["connection"].insert_one(reference_connection())
    other = {"_id": Binary(UUID(int=1).bytes, 0), "config_name": "other_db", "type": SECRET}
    raw["connection"].insert_one(reference_connection(**other))
    with structlog.testing.capture_logs() as told:
        page = await records.connections.list_page(ConnectionQuery())
    assert ([found.id for found in page.items], page.total) == ([CONNECTION_ID], 2)
    assert [(r["event"], r["what"], r["record_id"]) for r in told] == [
        ("record_corrupt", "connection record: type", UUID(int=1).hex)
    ]


async def test_a_corrupt_record_does_not_stop_a_sweep(records: MongoRecords, raw: Raw) -> None:
    foreign = {"_id": "no uuid", "status": "processing", "lease_until": CREATED}
    raw["job"].insert_one(reference_job(**foreign, request_hash="other"))
    await stored_job(records, raw, status="processing", lease_until=ENDED)
    assert [job.id for job in await records.expired.find_expired(limit=5)] == [JOB_ID]

    raw["job"].update_many({}, {"$set": {"status": "pending", "dispatched_at": None}})
    claims = await records.dispatch.claim_due(limit=5, lease_seconds=15)
    assert [claim.job.id for claim in claims] == [JOB_ID]


async def test_a_corrupt_record_does_not_stop_the_order_of_ends(
    records: MongoRecords, raw: Raw
) -> None:
    last_id = JobId(UUID(int=JOB_ID.int + 1))
    end = {"status": "failed", "dedup_active": False, "completed_at": ENDED}
    corrupt = {"_id": Binary(last_id.bytes, 0), "mapped_fields": 5}
    raw["job"].insert_one(reference_job(**end, **corrupt))
    await stored_job(records, raw, **end)
    assert [job.id for job in await records.jobs.list_ended(after=None, limit=5)] == [JOB_ID]
    assert await records.jobs.latest_ended() == EndedCursor(completed_at=ENDED, job_id=last_id)
    with pytest.raises(RecordCorrupt):
        await records.jobs.get(last_id)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    "metadata",
    [{"a\0b": 1}, {"x": "\ud800"}, {"x": "y" * (16 * 1024 * 1024)}, nested(2000)],
    ids=["nul", "surrogate", "size", "depth"],
)
async def test_what_bson_cannot_hold_is_refused_without_its_text(
    records: MongoRecords, metadata: dict[str, Any]
) -> None:
    with pytest.raises(PortError, match=r"^the record cannot be stored$") as caught:
        await records.jobs.insert(a_job(metadata=metadata))
    assert caught.value.code == "record_not_storable"
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
