"""Records that cannot be read or written: the field is named, no value, and no sweep stops."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from bson import Binary, Regex
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.audit import AuditQuery
from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import PortError, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import EndedCursor
from fetcher.queries.ended_jobs import EndedJobs
from tests.contract.records.test_audit_trail import an_entry
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


def an_id(number: int) -> JobId:
    return JobId(UUID(int=JOB_ID.int + number))


def a_pending_job(job_id: JobId, *, number: int, **changes: Any) -> dict[str, Any]:
    return reference_job(
        **{
            "_id": Binary(job_id.bytes, 0),
            "request_hash": f"{number:064}",
            "dispatched_at": None,
            "dispatch_seq": 1,
            "created_at": CREATED + timedelta(seconds=number),
        }
        | changes
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


@pytest.mark.parametrize("limit", [1, 2, 9])
async def test_corrupt_records_take_nobodys_place_in_a_batch_to_dispatch(
    records: MongoRecords, raw: Raw, limit: int
) -> None:
    """The corrupt ones are the oldest."""
    corrupt, sound = [an_id(n) for n in range(5)], [an_id(n) for n in range(5, 8)]
    for n, job_id in enumerate([*corrupt, *sound]):
        changes = {"mapped_fields": 5} if job_id in corrupt else {}
        raw["job"].insert_one(a_pending_job(job_id, number=n, **changes))

    async def claimed(*hints: JobId) -> list[JobId]:
        claims = await records.dispatch.claim_due(
            limit=limit, lease_seconds=15, job_ids=hints or None
        )
        return [claim.job.id for claim in claims]

    assert await claimed(*corrupt, sound[2]) == [sound[2]]
    assert await claimed() == sound[:2][:limit]
    assert await claimed() == sound[:2][limit:]
    # For longer than a lease, so that they are no part of every sweep.
    aside, leased = (
        max(document["dispatch_lease_until"] for document in raw["job"].find(which))
        for which in ({"mapped_fields": 5}, {"mapped_fields": {"$ne": 5}})
    )
    assert aside - leased > timedelta(seconds=30)


async def test_corrupt_records_take_nobodys_place_in_a_batch_to_reap(
    records: MongoRecords, raw: Raw
) -> None:
    for n in range(3):
        changes = {"mapped_fields": 5} if n < 2 else {}
        raw["job"].insert_one(
            a_pending_job(an_id(n), number=n, status="processing", lease_until=CREATED, **changes)
        )
    assert [job.id for job in await records.expired.find_expired(limit=1)] == [an_id(2)]


async def test_a_corrupt_record_keeps_no_other_parked(records: MongoRecords, raw: Raw) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    parked = {"waiting_reason": "connection sales_db is down", "due_at": later}
    for n in range(2):
        foreign = {"_id": "no uuid"} if n == 0 else {}
        raw["job"].insert_one(a_pending_job(an_id(n), number=n, **parked, **foreign))
    assert await records.dispatch.wake_parked("sales_db", told=5) == [an_id(1)]
    assert raw["job"].count_documents({"due_at": None}) == 2


async def test_a_corrupt_note_of_left_objects_keeps_no_other(
    records: MongoRecords, raw: Raw
) -> None:
    for n, keys in enumerate((5, 5, ["a.json"])):
        changes = {"cleanup_due": CREATED, "cleanup_keys": keys}
        raw["job"].insert_one(a_pending_job(an_id(n), number=n, **changes))
    assert await records.cleanup.find_due(limit=1) == [(an_id(2), ("a.json",))]
    assert await records.cleanup.find_due(limit=9) == [(an_id(2), ("a.json",))]


async def test_a_corrupt_record_does_not_stop_the_order_of_ends(
    records: MongoRecords, raw: Raw
) -> None:
    last_id = JobId(UUID(int=JOB_ID.int + 1))
    end = {"status": "failed", "dedup_active": False, "completed_at": ENDED}
    corrupt = {"_id": Binary(last_id.bytes, 0), "mapped_fields": 5}
    raw["job"].insert_one(reference_job(**end, **corrupt))
    await stored_job(records, raw, **end)
    assert [job.id for job in await records.jobs.list_ended(after=None, limit=5)] == [JOB_ID]
    assert [job.id for job in await records.jobs.latest_failed(limit=1)] == [JOB_ID]
    assert await records.jobs.latest_ended() == EndedCursor(completed_at=ENDED, job_id=last_id)
    with pytest.raises(RecordCorrupt):
        await records.jobs.get(last_id)


@pytest.mark.parametrize("no_time", [SECRET, 5])
@pytest.mark.parametrize("attempts", [[5], [{"ended_at": SECRET}]])
async def test_what_is_no_time_stops_no_measure(
    records: MongoRecords, raw: Raw, no_time: object, attempts: list[object]
) -> None:
    """The server of the tests holds no date beyond those of Python, which is as unreadable."""
    event = {"$set": {"metadata.terminalEventPending": True}}
    end = {"status": "failed", "dedup_active": False}
    await stored_job(records, raw, **end, completed_at=ENDED)
    ended = {"_id": Binary(an_id(3).bytes, 0), "completed_at": no_time}
    raw["job"].insert_one(reference_job(**end, **ended))
    raw["job"].update_many({}, event)
    for n, created_at in enumerate((no_time, CREATED)):
        changes = {"created_at": created_at, "attempt": 1, "attempts": attempts}
        raw["job"].insert_one(a_pending_job(an_id(n + 10), number=n, **changes))
    assert (await records.events.backlog()).oldest_seconds > 0
    active = await records.dispatch.active_jobs()
    assert (active.undispatched, active.oldest_undispatched_seconds > 0) == (2, True)
    assert [job.id for job in await records.jobs.list_ended(after=None, limit=5)] == [JOB_ID]
    latest = await records.jobs.latest_ended()
    assert latest == EndedCursor(completed_at=ENDED, job_id=JOB_ID)
    minutes = await records.statistics.ended_by_minute(since=ENDED - timedelta(minutes=5))
    assert sum(each.jobs for each in minutes) == 1


async def test_an_end_far_ahead_of_the_clock_keeps_no_reader_from_what_ends_now(
    records: MongoRecords, raw: Raw
) -> None:
    """It was written while the server's clock was ahead, before that was set back."""
    ahead = datetime.now(UTC) + timedelta(days=3650)
    end = {"status": "failed", "dedup_active": False}
    last_id = an_id(1)
    raw["job"].insert_one(reference_job(**end, _id=Binary(last_id.bytes, 0), completed_at=ahead))
    assert await records.jobs.latest_ended() is None
    along = EndedJobs.after(
        records.jobs, EndedCursor(completed_at=ahead, job_id=last_id), product_name=None
    )
    new = await EndedJobs.from_now(records.jobs, product_name=None)
    assert await along.next() == []
    await stored_job(records, raw, **end, completed_at=datetime.now(UTC))
    for reader in (along, new):
        assert [job.id for job in await reader.next()] == [JOB_ID]
        assert await reader.next() == []


async def test_an_audit_entry_that_cannot_be_read_ends_no_list(
    records: MongoRecords, raw: Raw
) -> None:
    entries = [an_entry(time=ENDED - timedelta(seconds=n)) for n in range(3)]
    for entry in entries:
        await records.audit.append(entry)
    raw["audit"].update_one({"time": entries[0].time}, {"$set": {"action": "of.later"}})
    raw["audit"].insert_one({"time": "yesterday"})
    first = await records.audit.list_page(AuditQuery(limit=1))
    assert first.items == ()
    rest = await records.audit.list_page(AuditQuery(before=first.next))
    assert (list(rest.items), rest.next) == (entries[1:], None)


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
