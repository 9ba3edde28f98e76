"""A job's document, name by name and BSON type by BSON type (spec rest-api 12.3)."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64
from pymongo.database import Database

from fetcher.adapters.mongo import MongoRecords
from fetcher.domain.job_store import FinishAnswer
from fetcher.domain.jobs import JobOptions, TerminalOutcome
from tests.integration.mongo.builders import (
    RESULT,
    a_job,
    cancelled,
    claimed,
    completed,
    failed,
    only_document,
)
from tests.integration.mongo.reference import typed

Raw = Database[dict[str, Any]]

pytestmark = pytest.mark.integration

ALL_ABSENT = {
    "equals": None,
    "greaterthan": None,
    "greaterorequal": None,
    "lessthan": None,
    "lessorequal": None,
    "between": None,
    "in": None,
    "notin": None,
    "notequals": None,
    "like": None,
}


async def test_a_new_job_is_stored_as_the_reference_would(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    assert typed(only_document(raw)) == typed(
        {
            "_id": job.id.bytes,
            "metadata": {"source": "acme-reports"},
            "mapped_fields": {"sales_db": {"orders": ["id", "total"]}},
            "datasources": ["sales_db"],
            "status": "pending",
            "dedup_active": True,
            "request_hash": job.request_hash,
            "created_at": job.created_at,
            "completed_at": None,
            "dispatched_at": None,
            "dispatch_seq": 0,
            "attempt": 0,
            "takeovers": 0,
        }
    )


async def test_the_id_is_a_binary_of_subtype_0(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    assert raw["job"].count_documents({"_id": Binary(job.id.bytes, 0)}) == 1
    assert raw["job"].count_documents({"_id": {"$type": "binData"}}) == 1
    assert type(only_document(raw)["_id"]) is bytes  # pymongo's form of subtype 0, of no other


async def test_names_with_dots_and_dollars_are_stored_as_they_are(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job(
        mapped_fields={"sales_db": {"public.orders": ("id",), "$t.x": ("$a.b",)}},
        metadata={"source": "acme-reports", "a.b": {"c.d": 1}},
        filters={"sales_db": {"public.orders": {"o.id": {"eq": (1,)}}}},
    )
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    await records.leases.finish(claim.lease, completed())
    document = only_document(raw)
    assert document["mapped_fields"]["sales_db"] == {"public.orders": ["id"], "$t.x": ["$a.b"]}
    assert document["metadata"]["a.b"] == {"c.d": 1}
    assert document["filters"]["sales_db"]["public.orders"]["o.id"]["equals"] == [1]
    read = await records.jobs.get(job.id)
    assert read is not None
    assert (read.mapped_fields, read.metadata, read.filters) == (
        job.mapped_fields,
        job.metadata,
        job.filters,
    )


@pytest.mark.parametrize(
    ("operator", "stored_name"),
    [
        ("eq", "equals"),
        ("gt", "greaterthan"),
        ("gte", "greaterorequal"),
        ("lt", "lessthan"),
        ("lte", "lessorequal"),
        ("between", "between"),
        ("in", "in"),
        ("nin", "notin"),
        ("ne", "notequals"),
        ("like", "like"),
    ],
)
async def test_a_condition_has_all_ten_names(
    records: MongoRecords, raw: Raw, operator: str, stored_name: str
) -> None:
    job = a_job(filters={"sales_db": {"orders": {"total": {operator: (10, "x")}}}})
    await records.jobs.insert(job)
    condition = only_document(raw)["filters"]["sales_db"]["orders"]["total"]
    assert condition == ALL_ABSENT | {stored_name: [10, "x"]}
    read = await records.jobs.get(job.id)
    assert read is not None
    assert read.filters == job.filters


@pytest.mark.parametrize(
    ("operator", "stored_name"), [("is_null", "isnull"), ("not_null", "notnull")]
)
async def test_our_own_operators_stand_beside_the_ten(
    records: MongoRecords, raw: Raw, operator: str, stored_name: str
) -> None:
    job = a_job(filters={"sales_db": {"orders": {"total": {operator: (True,)}}}})
    await records.jobs.insert(job)
    condition = only_document(raw)["filters"]["sales_db"]["orders"]["total"]
    assert condition == ALL_ABSENT | {stored_name: [True]}
    read = await records.jobs.get(job.id)
    assert read is not None
    assert read.filters == job.filters


@pytest.mark.parametrize(
    ("number", "stored"),
    [
        (7, 7),
        (2**40, Int64(2**40)),
        (2**63 - 1, Int64(2**63 - 1)),
        (-(2**63), Int64(-(2**63))),
        (2**63, Decimal128("9223372036854775808")),
        (9007199254740993, Int64(9007199254740993)),
        (Decimal("12.50"), Decimal128("12.50")),
        (Decimal("1E+5"), Decimal128("1E+5")),
        (10**34 - 1, Decimal128("9" * 34)),
        (10**34 + 1, Binary(b"1" + b"0" * 33 + b"1", 0x80)),
        (Decimal("0." + "1" * 40), Binary(b"0." + b"1" * 40, 0x80)),
        (Decimal("1E+6144"), Binary(b"1E+6144", 0x80)),
        (Decimal("1E-9999"), Binary(b"1E-9999", 0x80)),
    ],
)
async def test_numbers_keep_every_digit(
    records: MongoRecords, raw: Raw, number: int | Decimal, stored: object
) -> None:
    job = a_job(
        metadata={"source": "acme-reports", "deep": [{"n": number}]},
        filters={"sales_db": {"orders": {"total": {"eq": (number,)}}}},
    )
    await records.jobs.insert(job)
    document = only_document(raw)
    assert typed(document["metadata"]["deep"]) == typed([{"n": stored}])
    equals = document["filters"]["sales_db"]["orders"]["total"]["equals"]
    assert typed(equals) == typed([stored])
    read = await records.jobs.get(job.id)
    assert read is not None
    assert read == job
    [same] = read.filters["sales_db"]["orders"]["total"]["eq"]
    assert (type(same), str(same)) == (type(number), str(number))


async def test_what_is_unset_is_absent_and_what_is_set_is_stored(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job(
        metadata={},
        options=JobOptions(bigint="string", limits={"maxResultBytes": 10, "timeout": 1.5}),
        request_id="r-1",
        idempotency_key="k-1",
    )
    await records.jobs.insert(job)
    document = only_document(raw)
    assert "metadata" not in document
    assert "filters" not in document
    assert document["options"] == {
        "values": "compatible",
        "bigint": "string",
        "decimals": "string",
        "limits": {"maxResultBytes": 10, "timeout": 1.5},
    }
    assert (document["request_id"], document["idempotency_key"]) == ("r-1", "k-1")
    assert await records.jobs.get(job.id) == job


async def test_a_claim_writes_lease_and_attempt(records: MongoRecords, raw: Raw) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    document = only_document(raw)
    assert document["status"] == "processing"
    assert document["dedup_active"] is True
    assert document["completed_at"] is None
    assert document["lease_token"] == claim.lease.token
    assert len(claim.lease.token) == 16
    assert document["lease_owner"] == "worker-1"
    assert document["lease_until"] - document["started_at"] == timedelta(seconds=60)
    assert document["attempt"] == 1
    assert document["attempts"] == [
        {
            "attempt": 1,
            "owner": "worker-1",
            "started_at": document["started_at"],
            "ended_at": None,
            "code": None,
        }
    ]
    assert await records.jobs.get(job.id) == claim.job


async def test_completing_writes_facts_and_marks_in_one_document(
    records: MongoRecords, raw: Raw
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    outcome = completed()
    assert await records.leases.finish(claim.lease, outcome) is FinishAnswer.WRITTEN
    document = only_document(raw)
    assert document["status"] == "completed"
    assert document["dedup_active"] is False
    assert isinstance(document["completed_at"], datetime)
    assert document["result_path"] == RESULT.path
    assert document["result_hmac"] == RESULT.hmac
    assert document["result_bytes"] == Int64(2**33)
    assert document["result_rows"] == 7
    assert document["result_key_version"] == "2"
    assert document["source_notes"] == {"sales_db": {"snapshot": False, "replaced_characters": 12}}
    assert document["metadata"] == {
        "source": "acme-reports",
        "terminalEventPending": True,
        "terminalEventStatus": "completed",
        "terminalEventPayload": outcome.event.payload,
    }
    assert document["event_time"] == outcome.event.time
    assert document["event_due_at"] == document["completed_at"]
    assert document["event_attempts"] == 0
    assert document["lease_token"] == claim.lease.token
    assert document["lease_until"] is None
    read = await records.jobs.get(job.id)
    assert read is not None
    assert read.result == RESULT
    assert read.metadata == {"source": "acme-reports"}
    assert read.event_pending


@pytest.mark.parametrize(("outcome", "status"), [(failed(), "failed"), (cancelled(), "cancelled")])
async def test_an_error_is_a_text_in_the_database(
    records: MongoRecords, raw: Raw, outcome: TerminalOutcome, status: str
) -> None:
    job = a_job()
    await records.jobs.insert(job)
    claim = await claimed(records, job)
    await records.leases.finish(claim.lease, outcome)
    document = only_document(raw)
    assert outcome.failure is not None
    assert document["status"] == status
    assert document["dedup_active"] is False
    assert document["metadata"]["error"] == outcome.failure.message
    assert document["metadata"]["terminalEventStatus"] == "failed"
    assert document["failure"]["code"] == outcome.failure.code
    assert document["attempts"][0]["code"] == outcome.failure.code
    read = await records.jobs.get(job.id)
    assert read is not None
    assert read.failure == outcome.failure
    assert read.metadata == {"source": "acme-reports"}
