"""A file of an earlier version is brought to the present one, with all its records."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fetcher.adapters.sqlite import SqliteRecordStore, open_sqlite_records, rows, schema
from fetcher.adapters.sqlite.audit import page_statement
from fetcher.adapters.sqlite.job_lists import list_statement
from fetcher.adapters.sqlite.jobs import LATEST_FAILED, WITH_KEY
from fetcher.domain.audit import AuditAction, AuditCursor, AuditQuery
from fetcher.domain.errors import DuplicateIdempotencyKey, StartRefused
from fetcher.domain.job_store import JobCursor, JobQuery
from fetcher.domain.jobs import Job, JobStatus
from tests.contract.records.builders import a_connection, a_job, ago, completed, failed, inserted
from tests.contract.records.test_audit_trail import an_entry

NEW_COLUMNS = {"progress", "result_deleted_at", "source_notes", "traceparent", "tracestate"}


def columns_of_version_1(values: rows.Values) -> rows.Values:
    return {name: value for name, value in values.items() if name not in NEW_COLUMNS}


def make_version_1(path: Path, *jobs: Job) -> None:
    with closing(sqlite3.connect(path)) as old:
        schema.STEPS[0](old)
        old.execute("PRAGMA user_version = 1")
        for job in jobs:
            values = columns_of_version_1(rows.request_values(job) | rows.state_values(job))
            old.execute(rows.insert_statement("job", values), values)
        values = rows.connection_values(a_connection(config_name="sales_db"))
        old.execute(rows.insert_statement("connection", values), values)
        old.commit()


def shape_of(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall()
        columns = [
            (name, *column[1:])
            for (name,) in tables
            for column in file.execute(f"PRAGMA table_xinfo({name})")
        ]
        version = file.execute("PRAGMA user_version").fetchone()
        return [version, *tables, *columns]


async def test_first_version_is_brought_up_with_its_records(path: Path) -> None:
    jobs = [
        a_job(
            trace=None, created_at=ago(20), mapped_fields={"sales_db": {"t": ("x",)}, "b_db": {}}
        ),
        a_job(trace=None, created_at=ago(10), idempotency_key="k", mapped_fields={"sales_db": {}}),
    ]
    make_version_1(path, *jobs)
    async with open_sqlite_records(path) as store:
        page = await store.jobs.list_page(JobQuery(config_name="sales_db", ascending=True))
        assert page.items == tuple(jobs)
        assert await store.jobs.is_in_use("b_db")
        assert await store.jobs.find_by_idempotency_key("k") == jobs[1]
        with pytest.raises(DuplicateIdempotencyKey):
            await store.jobs.insert(a_job(idempotency_key="k"))
        assert len(await store.connections.find_by_config_names(["sales_db"])) == 1
        after = await inserted(store, mapped_fields={"b_db": {}})
        page = await store.jobs.list_page(JobQuery(config_name="b_db", ascending=True))
        assert page.items == (jobs[0], after)
    async with open_sqlite_records(path) as store:
        assert (await store.jobs.list_page(JobQuery())).items == (after, *reversed(jobs))


async def test_file_that_was_brought_up_looks_like_a_new_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_version_1(old)
    for path in (old, new):
        async with open_sqlite_records(path):
            pass
    assert shape_of(old) == shape_of(new)
    assert shape_of(new)[0] == (schema.VERSION,)


async def test_version_8_is_brought_up_with_its_audit_trail_failed_jobs_and_keys(
    path: Path,
) -> None:
    async with open_sqlite_records(path) as store:
        job = await inserted(store, idempotency_key="first")
        claim = await store.leases.claim(job.id, owner="w", lease_seconds=60)
        assert not isinstance(claim, str)
        await store.leases.finish(claim.lease, failed())
        entry = an_entry(actor="acme/jane")
        await store.audit.append(entry)
    with closing(sqlite3.connect(path)) as old:
        for index in ("job_failed", "audit_actor", "audit_action"):
            old.execute(f"DROP INDEX {index}")
        old.execute("DROP TABLE job_key")
        old.execute("PRAGMA user_version = 8")
        old.commit()
    async with open_sqlite_records(path) as store:
        assert [each.id for each in await store.jobs.latest_failed(limit=9)] == [job.id]
        assert (await store.audit.list_page(AuditQuery(actor="acme/jane"))).items == (entry,)
        assert await store.jobs.give_idempotency_key(job.id, "second")
        found = await store.jobs.find_by_idempotency_key("second")
        assert found == await store.jobs.find_by_idempotency_key("first")
    assert shape_of(path)[0] == (schema.VERSION,)


async def test_unreadable_job_does_not_stop_the_step(path: Path) -> None:
    job = a_job()
    make_version_1(path, job)
    with closing(sqlite3.connect(path)) as old:
        old.execute("UPDATE job SET mapped_fields = 'canary{'")
        old.commit()
    async with open_sqlite_records(path) as store:
        assert not await store.jobs.is_in_use("sales_db")
        page = await store.jobs.list_page(JobQuery())
        assert (page.items, page.next) == ((), None)


async def test_step_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    make_version_1(path, a_job(idempotency_key="k"), a_job(idempotency_key="k"))
    before = shape_of(path)
    with pytest.raises(StartRefused, match="SQLITE_CONSTRAINT"):
        async with open_sqlite_records(path):
            pass
    assert shape_of(path) == before


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "job_created"),
        ({"statuses": frozenset({JobStatus.FAILED})}, "job_created"),
        ({"product_name": "p"}, "job_created_of_product"),
        ({"product_name": "p", "created_from": ago(9)}, "job_created_of_product"),
        ({"config_name": "sales_db"}, "PRIMARY KEY"),
        ({"config_name": "sales_db", "created_until": ago(9)}, "PRIMARY KEY"),
    ],
)
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
async def test_each_list_is_read_in_its_order(
    store: SqliteRecordStore,
    path: Path,
    query: dict[str, Any],
    index: str,
    ascending: bool,
    goes_on: bool,
) -> None:
    job = await inserted(store)
    after = JobCursor(created_at=job.created_at, job_id=job.id) if goes_on else None
    statement, values = list_statement(JobQuery(ascending=ascending, after=after, **query))
    with closing(sqlite3.connect(path)) as other:
        found = other.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        plan = " | ".join(row[3] for row in found)
    assert index in plan
    assert "TEMP B-TREE" not in plan


async def test_keys_are_looked_up_by_their_indexes(store: SqliteRecordStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        found = other.execute(f"EXPLAIN QUERY PLAN {WITH_KEY}", {"key": "k"})
        plan = " | ".join(row[3] for row in found)
    assert "job_idempotency_key" in plan
    assert "SCAN" not in plan


async def test_failed_jobs_are_read_in_the_order_of_their_ends(
    store: SqliteRecordStore, path: Path
) -> None:
    values = {"time": 2**63 - 1, "id": b"", "limit": 20}
    with closing(sqlite3.connect(path)) as other:
        found = other.execute(f"EXPLAIN QUERY PLAN {LATEST_FAILED}", values)
        plan = " | ".join(row[3] for row in found)
    assert "job_failed" in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "audit_time"),
        ({"actor": "a"}, "audit_actor"),
        ({"action": AuditAction.JOB_CREATED}, "audit_action"),
        ({"target": "t"}, "audit_target"),
    ],
)
@pytest.mark.parametrize("before", [None, AuditCursor(time=ago(9), id=UUID(int=7))])
async def test_each_list_of_audit_entries_is_read_in_its_order(
    store: SqliteRecordStore,
    path: Path,
    filters: dict[str, Any],
    index: str,
    before: AuditCursor | None,
) -> None:
    statement, values = page_statement(AuditQuery(before=before, **filters))
    with closing(sqlite3.connect(path)) as other:
        found = other.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        plan = " | ".join(row[3] for row in found)
    assert index in plan
    assert "TEMP B-TREE" not in plan


async def test_unreadable_entry_of_the_audit_trail_ends_no_list(
    store: SqliteRecordStore, path: Path
) -> None:
    entries = [an_entry(time=ago(n)) for n in range(3)]
    for entry in entries:
        await store.audit.append(entry)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE audit SET action = 'of.later' WHERE id = ?", (entries[0].id.bytes,))
        other.commit()
    first = await store.audit.list_page(AuditQuery(limit=1))
    assert first.items == ()
    rest = await store.audit.list_page(AuditQuery(before=first.next))
    assert (list(rest.items), rest.next) == (entries[1:], None)


async def test_ended_job_stays_in_the_list_of_its_connection(store: SqliteRecordStore) -> None:
    job = await inserted(store)
    claim = await store.leases.claim(job.id, owner="w", lease_seconds=60)
    assert not isinstance(claim, str)
    await store.leases.finish(claim.lease, completed())
    page = await store.jobs.list_page(JobQuery(config_name="sales_db"))
    assert [found.id for found in page.items] == [job.id]
