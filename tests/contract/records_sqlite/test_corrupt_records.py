"""A record that cannot be read names its column, and nothing of what stands in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from fetcher.adapters.sqlite import SqliteRecordStore, open_sqlite_records
from fetcher.domain.audit import AuditQuery
from fetcher.domain.breakers import FAILURES_TO_OPEN
from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import RecordCorrupt, StartRefused
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobQuery
from fetcher.domain.jobs import Job
from fetcher.queries.ended_jobs import cursor_of
from tests.contract.records.builders import (
    a_connection,
    ago,
    completed,
    ended,
    failed,
    inserted,
)
from tests.contract.records.test_audit_trail import an_entry
from tests.contract.records.test_connection_breakers import fails

ABSURD = 9_000_000_000_000_000_000
"""Milliseconds beyond the year 9999."""


@pytest.mark.parametrize("text", ["canary{", "[]", "5", '"canary"', '{"canary": 1}', "[1]"])
@pytest.mark.parametrize(
    "column", ["mapped_fields", "filters", "options", "attempts", "failure", "progress"]
)
async def test_unreadable_column_of_a_job(
    store: SqliteRecordStore, path: Path, column: str, text: str
) -> None:
    job = await ended(store, failed())
    change(path, f"UPDATE job SET {column} = ?", text)
    if (column, text) == ("attempts", "[]"):
        assert (await store.jobs.get(job.id)) is not None
        return
    with pytest.raises(RecordCorrupt) as corrupt:
        await store.jobs.get(job.id)
    assert str(corrupt.value) == f"the column {column} holds something else"
    assert corrupt.value.__cause__ is None
    assert corrupt.value.__context__ is None


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("mapped_fields", '{"a":{"b":[1]}}'),
        ("options", '{"values":1,"bigint":"a","decimals":"a","limits":{}}'),
        ("options", '{"values":"a","bigint":"a","decimals":"a","limits":{"a":"canary"}}'),
        ("attempts", '[{"attempt":"1","owner":"w","started_at":1,"ended_at":null,"code":null}]'),
        ("attempts", '[{"attempt":1,"owner":"w","started_at":1,"ended_at":"1","code":null}]'),
        ("attempts", '[{"attempt":1,"owner":"w","started_at":1,"ended_at":null,"code":7}]'),
        ("failure", '{"message":"m","code":7}'),
        ("failure", '{"message":"m","code":"c","source":["canary"]}'),
        ("progress", '{"a":{"b":{"rows":"canary","bytes":1}}}'),
        ("progress", '{"a":{"b":{"rows":true,"bytes":1}}}'),
    ],
)
async def test_member_of_another_type_is_found_when_it_is_read(
    store: SqliteRecordStore, path: Path, column: str, text: str
) -> None:
    """Else every list that the job is in would fail."""
    job = await ended(store, failed())
    change(path, f"UPDATE job SET {column} = ?", text)
    with pytest.raises(RecordCorrupt) as corrupt:
        await store.jobs.get(job.id)
    assert str(corrupt.value) == f"the column {column} holds something else"


@pytest.mark.parametrize(
    "text",
    ["canary{", "[]", '{"a": 1}', '{"a": {"canary": 1}}', '{"a": {"replaced_characters": -1}}'],
)
async def test_unreadable_notes_on_sources(store: SqliteRecordStore, path: Path, text: str) -> None:
    job = await ended(store, completed())
    change(path, "UPDATE job SET source_notes = ?", text)
    with pytest.raises(RecordCorrupt) as corrupt:
        await store.jobs.get(job.id)
    assert str(corrupt.value) == "the column source_notes holds something else"


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("metadata", "canary{"),
        ("metadata", "[]"),
        ("tls", '{"canary":1}'),
        ("tls", '{"mode":7}'),
        ("type", "canary"),
    ],
)
async def test_unreadable_column_of_a_connection(
    store: SqliteRecordStore, path: Path, column: str, text: str
) -> None:
    connection = a_connection()
    await store.connections.insert(connection)
    change(path, f"UPDATE connection SET {column} = ?", text)
    with pytest.raises(RecordCorrupt) as corrupt:
        await store.connections.get(connection.id)
    assert str(corrupt.value) == f"the column {column} holds something else"


async def test_unreadable_connection_is_left_out_of_lists_and_told(
    store: SqliteRecordStore, path: Path
) -> None:
    corrupt, sound = a_connection(), a_connection()
    for connection in (corrupt, sound):
        await store.connections.insert(connection)
    change(path, "UPDATE connection SET type = 'canary' WHERE id = ?", corrupt.id.bytes)
    with structlog.testing.capture_logs() as records:
        page = await store.connections.list_page(ConnectionQuery())
    assert (page.items, page.total) == ((sound,), 2)
    assert [(r["event"], r["what"], r["record_id"]) for r in records] == [
        ("record_corrupt", "the column type holds something else", corrupt.id.hex)
    ]


async def test_unreadable_metadata_matches_no_filter(store: SqliteRecordStore, path: Path) -> None:
    await store.connections.insert(a_connection(metadata={"team": "x"}))
    change(path, "UPDATE connection SET metadata = ?", "canary{")
    page = await store.connections.list_page(ConnectionQuery(metadata={"team": "x"}))
    assert (page.items, page.total) == ((), 0)


async def test_an_unreadable_job_stops_neither_dispatch_nor_reaping_nor_the_order_of_ends(
    store: SqliteRecordStore, path: Path
) -> None:
    """Each sweep takes the oldest first: the corrupt one stands before the other."""
    corrupt, sound = await inserted(store), await inserted(store)
    change(path, "UPDATE job SET filters = '[1]' WHERE id = ?", corrupt.id.bytes)

    claims = await store.dispatch.claim_due(limit=9, lease_seconds=15)
    assert [claim.job.id for claim in claims] == [sound.id]

    change(path, "UPDATE job SET status = 'processing', lease_until = ?", 1)
    assert [job.id for job in await store.expired.find_expired(limit=9)] == [sound.id]

    change(path, "UPDATE job SET status = 'failed', completed_at = ?", 1)
    assert [job.id for job in await store.jobs.list_ended(after=None, limit=9)] == [sound.id]
    with pytest.raises(RecordCorrupt):
        await store.jobs.get(corrupt.id)


async def test_unreadable_note_of_left_objects(store: SqliteRecordStore, path: Path) -> None:
    """It makes way for the others, although it fills the batch."""
    corrupt, sound = [await ended(store, completed()) for _ in range(2)]
    for job in (corrupt, sound):
        await store.cleanup.note(job.id, [f"{job.id}.json"])
    change(
        path, "UPDATE job SET cleanup_due = 1, cleanup_keys = '{}' WHERE id = ?", corrupt.id.bytes
    )
    assert await store.cleanup.find_due(limit=1) == [(sound.id, (f"{sound.id}.json",))]


async def test_unreadable_jobs_make_way_for_others_in_the_search_for_expired_ones(
    store: SqliteRecordStore, path: Path
) -> None:
    corrupt, sound = await inserted(store), await inserted(store)
    change(path, "UPDATE job SET status = 'processing', lease_until = ?", 2)
    change(path, "UPDATE job SET filters = '[1]', lease_until = 1 WHERE id = ?", corrupt.id.bytes)
    assert [job.id for job in await store.expired.find_expired(limit=1)] == [sound.id]


@pytest.mark.parametrize("limit", [1, 2, 9])
async def test_unreadable_jobs_take_nobodys_place_in_a_batch_to_dispatch(
    store: SqliteRecordStore, path: Path, limit: int
) -> None:
    corrupt = [await inserted(store) for _ in range(5)]
    sound = [await inserted(store) for _ in range(3)]
    for job in corrupt:
        change(path, "UPDATE job SET filters = '[1]' WHERE id = ?", job.id.bytes)

    async def claimed(*hints: Job) -> list[JobId]:
        claims = await store.dispatch.claim_due(
            limit=limit, lease_seconds=15, job_ids=[job.id for job in hints] or None
        )
        return [claim.job.id for claim in claims]

    assert await claimed(*corrupt, sound[2]) == [sound[2].id]
    in_order = [job.id for job in sorted(sound[:2], key=lambda job: (job.created_at, job.id))]
    assert await claimed() == in_order[:limit]
    assert await claimed() == in_order[limit:]
    # For longer than a lease, so that they are no part of every sweep.
    with closing(sqlite3.connect(path)) as other:
        aside, leased = (
            other.execute(
                "SELECT max(dispatch_lease_until) FROM job WHERE filters = '[1]' = ?", (is_corrupt,)
            ).fetchone()[0]
            for is_corrupt in (1, 0)
        )
    assert aside > leased + 30_000


async def test_unreadable_jobs_end_no_list_of_ended_ones(
    store: SqliteRecordStore, path: Path
) -> None:
    """A page that is not full is the last one: who follows the order would never come further."""
    corrupt = [await ended(store, failed()) for _ in range(5)]
    sound = [await ended(store, failed()) for _ in range(2)]
    for job in corrupt:
        change(path, "UPDATE job SET filters = '[1]' WHERE id = ?", job.id.bytes)
    for product in (None, sound[0].product_name):
        page = await store.jobs.list_ended(after=None, limit=2, product_name=product)
        assert [job.id for job in page] == [job.id for job in sound]
    assert await store.jobs.list_ended(after=cursor_of(sound[1]), limit=2) == []


async def test_unreadable_jobs_take_nobodys_place_among_the_failed_ones(
    store: SqliteRecordStore, path: Path
) -> None:
    sound = [await ended(store, failed()) for _ in range(2)]
    corrupt = [await ended(store, failed()) for _ in range(5)]
    for job in corrupt:
        change(path, "UPDATE job SET filters = '[1]' WHERE id = ?", job.id.bytes)
    for limit in (2, 9):
        page = await store.jobs.latest_failed(limit=limit)
        assert [job.id for job in page] == [job.id for job in reversed(sound)]


@pytest.mark.parametrize("time", [ABSURD, -ABSURD])
@pytest.mark.parametrize("column", ["completed_at", "created_at", "started_at", "due_at"])
async def test_a_time_that_no_clock_told_is_unreadable_and_keeps_nobody_from_ending(
    store: SqliteRecordStore, path: Path, column: str, time: int
) -> None:
    corrupt = await ended(store, completed())
    change(path, f"UPDATE job SET {column} = ?", time)
    with pytest.raises(RecordCorrupt) as told:
        await store.jobs.get(corrupt.id)
    assert str(told.value) == f"the column {column} holds something else"
    assert told.value.__context__ is None
    sound = await ended(store, completed())
    assert await store.jobs.list_ended(after=None, limit=9) == [sound]
    assert await store.jobs.latest_ended() == cursor_of(sound)
    page = await store.jobs.list_page(JobQuery(limit=1))
    following = await store.jobs.list_page(JobQuery(limit=9, after=page.next))
    assert [*page.items, *following.items] == [sound]
    assert sum(each.jobs for each in await store.statistics.ended_by_minute(since=ago(600))) >= 1
    assert (await store.retention.find_results(older_than_seconds=-60, after=None, limit=9))[
        -1
    ].place == cursor_of(sound)


async def test_an_unreadable_event_time_keeps_no_event_back(
    store: SqliteRecordStore, path: Path
) -> None:
    corrupt, sound = await ended(store, failed()), await ended(store, failed())
    change(path, f"UPDATE job SET event_time = {ABSURD} WHERE id = ?", corrupt.id.bytes)
    claims = await store.events.claim_due(limit=1, lease_seconds=30.0)
    assert [claim.job_id for claim in claims] == [sound.id]
    assert await store.events.claim_due(limit=1, lease_seconds=30.0) == []


async def test_an_unreadable_time_of_the_audit_trail_takes_its_own_entry_only(
    store: SqliteRecordStore, path: Path
) -> None:
    entries = [an_entry() for _ in range(3)]
    for entry in entries:
        await store.audit.append(entry)
    change(path, f"UPDATE audit SET time = {ABSURD} WHERE id = ?", entries[0].id.bytes)
    first = await store.audit.list_page(AuditQuery(limit=1))
    others = await store.audit.list_page(AuditQuery(limit=9, before=first.next))
    assert {each.id for each in (*first.items, *others.items)} == {each.id for each in entries[1:]}


async def test_an_unreadable_breaker_holds_nobody_back(
    store: SqliteRecordStore, path: Path
) -> None:
    connection = a_connection()
    await fails(store, connection, FAILURES_TO_OPEN)
    change(path, "UPDATE connection_breaker SET version = ?", ABSURD)
    assert await store.breakers.find([connection.id]) == {}
    assert await store.breakers.list_open(limit=9) == []
    again = await fails(store, connection)
    assert await store.breakers.find([connection.id]) == {connection.id: again.after}


def change(path: Path, statement: str, value: str | int | bytes) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement, (value,))


async def test_store_whose_schema_is_no_text_is_refused_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "fetcher.db"
    async with open_sqlite_records(path):
        pass
    whole = path.read_bytes()
    assert b"CREATE TABLE audit (" in whole
    path.write_bytes(whole.replace(b"CREATE TABLE audit (", b"CREATE TABLE audi\xff'("))
    with pytest.raises(StartRefused) as refused:
        async with open_sqlite_records(path):
            pass
    assert refused.value.problems[0].startswith(
        "FETCHER_DATA_DIR: the record store fetcher.db cannot be opened ("
    )


@pytest.mark.parametrize("column", ["request_hash", "metadata", "request_id", "product"])
async def test_bytes_that_are_no_text_keep_nobody_from_the_others(
    store: SqliteRecordStore, path: Path, column: str
) -> None:
    corrupt = await inserted(store)
    change(path, f"UPDATE job SET {column} = CAST(? AS TEXT)", b"can\xff")
    sound = await inserted(store)
    with pytest.raises(RecordCorrupt) as told:
        await store.jobs.get(corrupt.id)
    assert str(told.value) == f"the column {column} holds something else"
    assert told.value.__context__ is None
    page = await store.jobs.list_page(JobQuery(limit=9))
    assert [job.id for job in page.items] == [sound.id]
    claims = await store.dispatch.claim_due(limit=9, lease_seconds=15)
    assert [claim.job.id for claim in claims] == [sound.id]


@pytest.mark.parametrize("column", ["config_name", "host", "password_encrypted", "metadata"])
async def test_connections_with_bytes_that_are_no_text_keep_nobody_from_the_others(
    store: SqliteRecordStore, path: Path, column: str
) -> None:
    corrupt, sound = (
        a_connection(config_name=name, metadata={"team": "x"}) for name in ("corrupt", "sound")
    )
    for each in (corrupt, sound):
        await store.connections.insert(each)
    statement = f"UPDATE connection SET {column} = CAST(? AS TEXT) WHERE config_name = 'corrupt'"
    change(path, statement, b"can\xff")
    with pytest.raises(RecordCorrupt) as told:
        await store.connections.get(corrupt.id)
    assert str(told.value) == f"the column {column} holds something else"
    page = await store.connections.list_page(ConnectionQuery(limit=9))
    assert [each.id for each in page.items] == [sound.id]
    page = await store.connections.list_page(ConnectionQuery(metadata={"team": "x"}, limit=9))
    assert [each.id for each in page.items] == [sound.id]


async def test_a_job_of_no_known_status_is_unreadable(store: SqliteRecordStore, path: Path) -> None:
    job = await inserted(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute("UPDATE job SET status = 'pendhng'")
    with pytest.raises(RecordCorrupt) as told:
        await store.jobs.get(job.id)
    assert str(told.value) == "the column status holds something else"
