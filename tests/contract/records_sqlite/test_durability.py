"""What was answered survives the process (design section 4: nothing is ever lost)."""

import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import trio

from fetcher.adapters.sqlite import SqliteRecordStore, open_sqlite_records
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import JobStatus
from tests.contract.records.builders import (
    RESULT,
    a_connection,
    claimed,
    completed,
    ended,
    inserted,
)

TOLD = 60
"""Answers to wait for before the writer is killed in the middle of its next write."""


async def test_every_answered_write_is_there_after_kill_9(path: Path) -> None:
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "tests.contract.records_sqlite.writer_process", str(path)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    told = b""
    try:
        with trio.fail_after(60):
            while told.count(b"\n") < TOLD:
                told += await process.stdout.receive_some()
    finally:
        process.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(10):
            await process.wait()
            async for rest in process.stdout:
                told += rest
            await process.stdout.aclose()
    assert process.returncode == -signal.SIGKILL
    async with open_sqlite_records(path) as store:
        lines = [line.split() for line in told.decode().splitlines()]
        assert len(lines) >= TOLD
        for status, job_id in lines:
            job = await store.jobs.get(JobId(UUID(job_id)))
            assert job is not None
            assert job.status == status
            if job.status is JobStatus.COMPLETED:
                assert job.result == RESULT
                assert job.event_pending


async def test_records_are_the_same_after_closing_and_opening(path: Path) -> None:
    connection = a_connection()
    async with open_sqlite_records(path) as store:
        await store.connections.insert(connection)
        pending = await inserted(store)
        running = (await claimed(store, await inserted(store))).job
        done = await ended(store, completed())
    async with open_sqlite_records(path) as store:
        assert await store.connections.get(connection.id) == connection
        for job in (pending, running, done):
            assert await store.jobs.get(job.id) == job
        (event,) = await store.events.claim_due(limit=9, lease_seconds=0)
        assert event.job_id == done.id


async def test_commits_reach_the_disk_before_they_are_answered(store: SqliteRecordStore) -> None:
    """``FULL`` is 2: with less, a power cut takes back what a caller was told."""
    database = store.jobs._database  # type: ignore[attr-defined]  # the adapter's own
    assert database._writer.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert database._writer.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
