"""The file: who may read it, which files are refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from fetcher.adapters.sqlite import SqliteRecordStore, open_sqlite_records, schema
from fetcher.adapters.sqlite.retention import JOBS, RESULTS
from fetcher.domain.errors import StartRefused
from tests.contract.records.builders import inserted


async def mode_of(file: Path | trio.Path) -> str:
    return oct((await trio.Path(file).stat()).st_mode & 0o777)


async def test_only_the_owner_may_read_the_file_and_its_companions(
    store: SqliteRecordStore, path: Path
) -> None:
    await inserted(store)
    modes = {file.name: await mode_of(file) for file in await trio.Path(path.parent).iterdir()}
    assert modes == {
        "fetcher.db": "0o600",
        "fetcher.db-wal": "0o600",
        "fetcher.db-shm": "0o600",
    }


async def test_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    async with open_sqlite_records(path):
        pass
    await trio.Path(path).chmod(0o644)
    async with open_sqlite_records(path):
        assert await mode_of(path) == "0o600"


async def test_file_of_a_newer_version_is_refused_and_left_as_it_is(path: Path) -> None:
    newer = schema.VERSION + 1
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE job (id)")
        other.execute(f"PRAGMA user_version = {newer}")
    before = await trio.Path(path).read_bytes()
    with pytest.raises(StartRefused) as refused:
        async with open_sqlite_records(path):
            pass
    assert refused.value.problems == (
        f"FETCHER_DATA_DIR: the record store fetcher.db has schema {newer},"
        f" newer than the {schema.VERSION} that is known here",
    )
    assert await trio.Path(path).read_bytes() == before


async def test_database_of_something_else_is_refused_and_left_as_it_is(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE shop (id)")
    before = await trio.Path(path).read_bytes()
    with pytest.raises(StartRefused, match="is a database of something else"):
        async with open_sqlite_records(path):
            pass
    assert await trio.Path(path).read_bytes() == before


async def test_file_that_is_no_database_is_refused(path: Path) -> None:
    await trio.Path(path).write_bytes(b"no database at all " * 100)
    with pytest.raises(StartRefused, match="SQLITE_NOTADB") as refused:
        async with open_sqlite_records(path):
            pass
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


async def test_missing_folder_and_a_folder_in_the_files_place_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "fetcher.db", tmp_path):
        with pytest.raises(StartRefused, match="cannot be opened"):
            async with open_sqlite_records(path):
                pass


async def test_file_that_another_process_holds_is_refused_in_time(path: Path) -> None:
    async with open_sqlite_records(path):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("PRAGMA user_version = 1")
        with pytest.raises(StartRefused, match="SQLITE_BUSY"):
            async with open_sqlite_records(path, busy_seconds=0.01):
                pass


async def test_opening_twice_keeps_the_records(path: Path) -> None:
    async with open_sqlite_records(path) as store:
        job = await inserted(store)
    async with open_sqlite_records(path) as store:
        assert await store.jobs.get(job.id) == job


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (
            "SELECT * FROM job WHERE status = 'pending' AND dispatched_at IS NULL"
            " AND (due_at IS NULL OR due_at <= 1) ORDER BY created_at, id LIMIT 5",
            "job_undispatched",
        ),
        (
            "SELECT id FROM job WHERE status = 'pending' AND dispatched_at <= 1"
            " ORDER BY dispatched_at, id LIMIT 5",
            "job_dispatched",
        ),
        (
            "SELECT * FROM job WHERE status = 'processing' AND lease_until <= 1"
            " ORDER BY lease_until, id LIMIT 5",
            "job_leased",
        ),
        (
            "SELECT * FROM job WHERE completed_at IS NOT NULL AND (completed_at, id) > (1, x'00')"
            " ORDER BY completed_at, id LIMIT 5",
            "job_ended",
        ),
        (
            "SELECT * FROM job WHERE product = 'p' AND completed_at IS NOT NULL"
            " AND (completed_at, id) > (1, x'00') ORDER BY completed_at, id LIMIT 5",
            "job_ended_of_product",
        ),
        (
            "SELECT id FROM job WHERE event_pending = 1 AND event_due_at <= 1"
            " ORDER BY event_due_at, id LIMIT 5",
            "job_event_due",
        ),
        (
            "SELECT id FROM job WHERE cleanup_due <= 1 ORDER BY cleanup_due, id LIMIT 5",
            "job_cleanup_due",
        ),
        (RESULTS, "job_kept_result"),
        (JOBS, "job_ended"),
        (
            "SELECT * FROM job WHERE request_hash = 'h' AND created_at >= 1"
            " ORDER BY created_at DESC, id DESC LIMIT 1",
            "job_hash_created",
        ),
        (
            "SELECT * FROM job WHERE request_hash = 'h' AND status IN ('pending', 'processing')",
            "job_active_hash",
        ),
        (
            "SELECT * FROM connection WHERE deleted_at IS NULL"
            " ORDER BY created_at DESC, id DESC LIMIT 1",
            "connection_live_created",
        ),
    ],
    ids=lambda text: text if " " not in text else "",
)
async def test_each_sweep_reads_its_own_index_in_order(
    store: SqliteRecordStore, path: Path, statement: str, index: str
) -> None:
    values = {"until": 1, "time": 1, "id": b"", "limit": 5}
    with closing(sqlite3.connect(path)) as other:
        found = other.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        plan = " | ".join(row[3] for row in found)
    assert f"INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan
