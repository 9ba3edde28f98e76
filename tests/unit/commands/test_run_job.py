"""One attempt at a job: what it stores, and how it ends."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from fetcher.commands.run_job import RunJob
from fetcher.crypto.opener import open_result
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortUnavailable, RecordCorrupt
from fetcher.domain.job_store import Claimed, Lease
from fetcher.domain.jobs import JobStatus, TableProgress, TerminalOutcome
from fetcher.domain.tenants import Tenant
from fetcher.domain.terminal_event import JOB_CANCELLED, failed_mark
from fetcher_engine import (
    SourceFailure,
    SourceNotes,
    Stage,
)
from tests.unit.commands.job_bench import (
    HMAC_KEY,
    NOW,
    STORAGE_KEY,
    Bench,
    MemoryObjects,
    MemoryUpload,
    a_connection,
)


@pytest.fixture
async def bench() -> Bench:
    bench = Bench()
    await bench.records.connections.insert(a_connection())
    return bench


async def test_a_job_becomes_one_sealed_object_whose_facts_open_it(bench: Bench) -> None:
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.COMPLETED
    facts = outcome.result
    assert facts is not None
    assert facts.path == f"results/external-data/{claim.job.id}.json"
    assert (facts.row_count, facts.key_version) == (2, "7")
    with open_result(
        bench.objects.objects[facts.path],
        storage_key=STORAGE_KEY,
        hmac_key=HMAC_KEY,
        expected_hmac=facts.hmac,
        expected_size=facts.size_bytes,
    ) as opened:
        plain = opened.read()
    assert (
        plain
        == (
            '{"sales_db":{"orders":[{"id":9007199254740993,"note":"größe"},{"id":2,"note":null}]}}'
        ).encode()
    )
    event = json.loads(outcome.event.payload)
    assert event["result"]["path"] == facts.path
    assert event["metadata"] == {"source": "Acme-Reports"}
    assert event["completedAt"] == "2026-03-14T09:26:54.312Z"
    assert bench.objects.open_uploads == 0


async def test_what_the_source_told_of_its_reading_stays_with_the_result(bench: Bench) -> None:
    bench.source.notes = SourceNotes(has_snapshot=False, replaced_characters=3)
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.result is not None
    assert outcome.result.source_notes == {"sales_db": bench.source.notes}
    assert "replacedCharacters" not in outcome.event.payload, "the event's form is agreed"


async def test_what_was_read_of_each_table_stands_in_the_outcome(bench: Bench) -> None:
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    read = '{"id":9007199254740993,"note":"größe"},{"id":2,"note":null}'
    assert outcome.progress == {
        "sales_db": {"orders": TableProgress(rows=2, bytes=len(read.encode()))}
    }
    assert (bench.observed.rows, bench.observed.bytes) == (2, len(read.encode()))


async def test_each_stage_of_an_attempt_is_timed_as_far_as_it_came(bench: Bench) -> None:
    await bench.outcome(await bench.claimed())
    assert [stage for stage, _ in bench.observed.stages] == ["connect", "store", "read"]
    bench.observed.stages.clear()
    bench.objects.down = True
    await bench.outcome(await bench.claimed(request_hash="second"))
    assert [stage for stage, _ in bench.observed.stages] == ["connect", "store", "read"]
    bench.observed.stages.clear()
    gone = {"sales_db": {"gone": ("id",)}}
    await bench.outcome(await bench.claimed(request_hash="third", mapped_fields=gone))
    assert [stage for stage, _ in bench.observed.stages] == ["connect"]


async def test_a_later_attempt_writes_a_key_of_its_own(bench: Bench) -> None:
    claim = await bench.claimed()
    lease = replace(claim.lease, attempt=3)
    outcome = await bench.outcome(replace(claim, lease=lease))
    assert outcome.result is not None
    assert outcome.result.path == f"results/external-data/{claim.job.id}.3.json"


async def test_a_tenants_job_reads_as_its_tenant_and_lies_in_its_tenants_folder() -> None:
    """The memory sources know their connections under one tenant alone."""
    bench = Bench(tenant=Tenant("t1"))
    await bench.records.connections.insert(a_connection())
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.result is not None
    assert outcome.result.path == f"results/t1/external-data/{claim.job.id}.json"
    assert list(bench.objects.objects) == [outcome.result.path]
    assert bench.run_job.keys(claim.job) == [outcome.result.path]
    await bench.run_job.tidy(claim.job, keep_attempt=None)
    assert bench.objects.objects == {}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"config_name": "other_db"}, "not_found", "no connection is configured for sales_db"),
        (
            {"product_name": "somebody-else"},
            "forbidden",
            "sales_db: the connection belongs to another product",
        ),
    ],
)
async def test_a_connection_that_is_gone_or_reassigned_fails_the_job(
    changes: dict[str, object], code: str, message: str
) -> None:
    bench = Bench()
    await bench.records.connections.insert(a_connection(**changes))
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.FAILED
    assert outcome.failure is not None
    assert (outcome.failure.code, outcome.failure.message) == (code, message)
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == message
    assert bench.objects.objects == {}


async def test_a_source_that_fails_names_source_stage_and_reason_and_leaves_no_object(
    bench: Bench,
) -> None:
    bench.source.stream_error = SourceFailure(
        Stage.ROWS, "invalid_text", table="orders", column="note"
    )
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    failure = outcome.failure
    assert failure is not None
    assert (failure.code, failure.source, failure.stage, failure.reason) == (
        "unavailable",
        "sales_db",
        "rows",
        "invalid_text",
    )
    assert failure.message == "sales_db: rows failed: invalid text (orders.note)"
    assert bench.objects.objects == {}
    assert bench.objects.open_uploads == 0


async def test_a_missing_field_is_named(bench: Bench) -> None:
    claim = await bench.claimed(mapped_fields={"sales_db": {"orders": ("id", "totl")}})
    outcome = await bench.outcome(claim)
    assert outcome.failure is not None
    assert outcome.failure.code == "validation"
    assert outcome.failure.message.endswith("schema mismatch: missing fields orders.totl")


async def test_an_unknown_table_fails_the_job_by_name(bench: Bench) -> None:
    claim = await bench.claimed(mapped_fields={"sales_db": {"ordres": ("id",)}})
    outcome = await bench.outcome(claim)
    assert (outcome.status, outcome.event.status) == (JobStatus.FAILED, "failed")
    assert outcome.failure is not None
    assert outcome.failure.message == "sales_db: schema mismatch: missing tables ordres"


async def test_a_storage_failure_is_told_from_a_source_failure(bench: Bench) -> None:
    bench.objects.down = True
    claim = await bench.claimed()
    outcome = await bench.outcome(claim)
    assert outcome.failure is not None
    assert outcome.failure.code == "storage_unavailable"
    assert outcome.failure.message == "saving external data to storage failed"


async def test_a_job_that_was_asked_to_stop_is_never_made_visible(bench: Bench) -> None:
    claim = await bench.claimed()
    mark = failed_mark(claim.job, JOB_CANCELLED, at=NOW)
    await bench.records.jobs.request_cancel(claim.job.id, mark)
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.CANCELLED
    assert json.loads(outcome.event.payload)["metadata"]["error"]["message"] == "job cancelled"
    assert bench.objects.objects == {}


async def test_the_objects_of_lost_attempts_are_deleted_and_the_winners_kept(
    bench: Bench,
) -> None:
    claim = await bench.claimed()
    job = replace(claim.job, attempt=3)
    keys = [f"results/external-data/{job.id}{n}.json" for n in ("", ".2", ".3")]
    bench.objects.objects = dict.fromkeys(keys, b"x")
    await bench.run_job.tidy(job, keep_attempt=3)
    assert list(bench.objects.objects) == [keys[2]]
    await bench.run_job.tidy(job, keep_attempt=None)
    assert bench.objects.objects == {}


async def test_a_later_attempt_notes_at_its_start_what_the_lost_ones_may_have_left(
    bench: Bench,
) -> None:
    """Whatever kills it afterwards, the reaper deletes them; the first attempt writes nothing."""
    claim = await bench.claimed()
    await bench.run_job.run(claim.job, claim.lease)
    assert await bench.records.cleanup.find_due(limit=5) == []
    third = replace(claim.lease, attempt=3)
    await bench.run_job.run(replace(claim.job, attempt=3), third)
    [(job_id, keys)] = await bench.records.cleanup.find_due(limit=5)
    assert job_id == claim.job.id
    assert sorted(keys) == [f"results/external-data/{claim.job.id}{n}.json" for n in (".2", "")]


async def test_what_cannot_be_deleted_is_noted_for_the_reaper(bench: Bench) -> None:
    claim = await bench.claimed()
    bench.objects.down = True
    await bench.run_job.discard(claim.job, claim.lease)
    assert await bench.records.cleanup.find_due(limit=5) == [
        (claim.job.id, (f"results/external-data/{claim.job.id}.json",))
    ]


async def test_an_attempt_without_its_lease_makes_nothing_visible(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    """A worker that was frozen wakes up after another one has claimed its job."""
    claim = await bench.claimed()
    assert await bench.records.leases.renew(claim.lease, lease_seconds=-1)
    other = await bench.records.leases.claim(claim.job.id, owner="w2", lease_seconds=60)
    assert isinstance(other, Claimed)
    with trio.move_on_after(10) as until_the_keeper_ends_it:
        await bench.run_job.run(claim.job, claim.lease)
    assert until_the_keeper_ends_it.cancelled_caught
    assert bench.objects.objects == {}
    assert bench.objects.open_uploads == 0


async def test_a_cancelled_attempt_leaves_no_upload(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    class Stalled(MemoryUpload):
        async def write(self, chunk: bytes | bytearray | memoryview) -> None:
            await trio.sleep_forever()

    class StalledObjects(MemoryObjects):
        @asynccontextmanager
        async def upload(self, key: str) -> AsyncIterator[MemoryUpload]:
            self.open_uploads += 1
            try:
                yield Stalled(self, key)
            finally:
                self.open_uploads -= 1

    objects = StalledObjects()
    parts = replace(bench.run_job._parts, objects=objects)  # type: ignore[arg-type] # as above
    claim = await bench.claimed()
    with trio.move_on_after(1) as scope:
        await RunJob(parts).run(claim.job, Lease(job_id=claim.job.id, token=b"", attempt=1))
    assert scope.cancelled_caught
    assert objects.open_uploads == 0


async def test_an_attempt_that_is_stopped_once_its_object_is_visible_tells_of_it(
    bench: Bench,
) -> None:
    """Else the job would be pending beside a result that nobody knows of."""
    claim = await bench.claimed()
    outcomes: list[TerminalOutcome] = []
    with trio.CancelScope() as stopped:
        bench.objects.when_visible = stopped.cancel
        outcomes.append(await bench.outcome(claim))
    [outcome] = outcomes
    assert outcome.status is JobStatus.COMPLETED
    assert outcome.result is not None
    assert list(bench.objects.objects) == [outcome.result.path]


async def test_a_connection_record_that_cannot_be_read_fails_the_job_and_crashes_nobody(
    bench: Bench,
) -> None:
    async def corrupt(names: Sequence[str]) -> list[Connection]:
        await trio.lowlevel.checkpoint()
        raise RecordCorrupt("connection record: type")

    claim = await bench.claimed()
    bench.records.connections.find_by_config_names = corrupt  # type: ignore[method-assign] # a fault
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.FAILED
    assert outcome.failure is not None
    assert outcome.failure.code == "record_corrupt"


async def test_a_record_store_that_is_away_for_a_while_does_not_fail_the_job(
    autojump_clock: trio.testing.MockClock, bench: Bench
) -> None:
    claim = await bench.claimed()
    find = bench.records.connections.find_by_config_names

    async def away_at_first(names: Sequence[str]) -> list[Connection]:
        await trio.lowlevel.checkpoint()
        if trio.current_time() < 45:
            raise PortUnavailable("away")
        return await find(names)

    bench.records.connections.find_by_config_names = away_at_first  # type: ignore[method-assign] # a fault
    outcome = await bench.outcome(claim)
    assert outcome.status is JobStatus.COMPLETED
    assert 45 <= trio.current_time() <= 53
