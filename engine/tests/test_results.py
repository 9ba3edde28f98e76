"""Results, states and snapshots as values (spec 4.7, 4.11, 4.12, 21.1)."""

import dataclasses
from datetime import UTC, datetime

import pytest

from fetcher_engine import (
    DirectResult,
    ExecutionState,
    ExecutionStatus,
    ExtractionResult,
    ProtectionOwner,
    ResultIntegrity,
    ResultProtection,
    ResultReference,
    SchemaSnapshot,
    TableSnapshot,
)

NOON = datetime(2031, 4, 5, 12, tzinfo=UTC)


def test_five_statuses_of_which_three_are_terminal() -> None:
    assert [s.value for s in ExecutionStatus] == [
        "pending",
        "running",
        "completed",
        "failed",
        "canceled",
    ]
    assert {s.value for s in ExecutionStatus if s.is_terminal} == {
        "completed",
        "failed",
        "canceled",
    }
    with pytest.raises(ValueError, match="queued"):
        ExecutionStatus("queued")


@pytest.mark.parametrize(
    ("integrity", "present"),
    [
        (ResultIntegrity(algorithm="SHA-256", digest="ab"), True),
        (ResultIntegrity(signature="ab"), True),
        (ResultIntegrity(algorithm="SHA-256"), False),
    ],
)
def test_integrity_is_present_with_a_digest_or_a_signature(
    integrity: ResultIntegrity, present: bool
) -> None:
    assert integrity.is_present is present


def test_protection_is_applied_by_one_of_three() -> None:
    assert {owner.value for owner in ProtectionOwner} == {"engine", "adapter", "host"}
    with pytest.raises(ValueError, match="storage"):
        ProtectionOwner("storage")


def test_json_of_a_direct_result() -> None:
    direct = DirectResult(
        data=b"{}",
        row_count=0,
        integrity=ResultIntegrity(algorithm="SHA-256", digest="44"),
        completed_at=NOON,
        protection=ResultProtection(
            encrypted=True, applied_by=ProtectionOwner.ADAPTER, mode="AES-256-GCM"
        ),
    )
    state = ExecutionState(job_id="j", status=ExecutionStatus.COMPLETED, completed_at=NOON)
    result = ExtractionResult(state=state, direct=direct, row_counts={"x": 0})
    assert result.to_public_dict() == {
        "state": {"jobId": "j", "status": "completed", "completedAt": "2031-04-05T12:00:00Z"},
        "direct": {
            "data": "e30=",
            "format": "json",
            "rowCount": 0,
            "plaintextSize": 2,
            "integrity": {"algorithm": "SHA-256", "digest": "44"},
            "protection": {"encrypted": True, "mode": "AES-256-GCM", "appliedBy": "adapter"},
            "completedAt": "2031-04-05T12:00:00Z",
        },
        "rowCounts": {"x": 0},
    }


def test_json_of_a_reference() -> None:
    reference = ResultReference(path="results/j.ndjson", row_count=3, size_bytes=90)
    state = ExecutionState(job_id="j", status=ExecutionStatus.COMPLETED)
    public = ExtractionResult(
        state=state, reference=reference, row_counts={"x": 3}
    ).to_public_dict()
    assert public == {
        "state": {"jobId": "j", "status": "completed"},
        "reference": {
            "path": "results/j.ndjson",
            "format": "ndjson",
            "rowCount": 3,
            "sizeBytes": 90,
            "integrity": {},
        },
        "rowCounts": {"x": 3},
    }


def test_reference_names_no_backend() -> None:
    assert [field.name for field in dataclasses.fields(ResultReference)] == [
        "path",
        "format",
        "row_count",
        "size_bytes",
        "integrity",
        "protection",
        "completed_at",
    ]


@pytest.mark.parametrize("both", [True, False])
def test_result_is_either_direct_or_a_reference(both: bool) -> None:
    direct = DirectResult(data=b"", row_count=0, integrity=ResultIntegrity(), completed_at=NOON)
    reference = ResultReference(path="p")
    with pytest.raises(ValueError, match="either direct or a reference"):
        ExtractionResult(
            state=ExecutionState(),
            row_counts={},
            direct=direct if both else None,
            reference=reference if both else None,
        )


def test_chunks_of_a_direct_result_are_views_of_its_bytes() -> None:
    data = b"0123456789"
    direct = DirectResult(data=data, row_count=0, integrity=ResultIntegrity(), completed_at=NOON)
    chunks = list(direct.iter_chunks(4))
    assert [bytes(chunk) for chunk in chunks] == [b"0123", b"4567", b"89"]
    assert all(chunk.obj is data for chunk in chunks)


def test_snapshot_names_its_tables_in_order_and_finds_them_exactly() -> None:
    snapshot = SchemaSnapshot("c", (TableSnapshot("b", ()), TableSnapshot("a", ("x",))), NOON)
    assert snapshot.table_names() == ("a", "b")
    assert snapshot.has_table("a")
    assert not snapshot.has_table("A")
    assert snapshot.to_public_dict() == {
        "configName": "c",
        "tables": [{"name": "b", "fields": []}, {"name": "a", "fields": ["x"]}],
        "capturedAt": "2031-04-05T12:00:00Z",
    }
    assert SchemaSnapshot("").table_names() == ()
