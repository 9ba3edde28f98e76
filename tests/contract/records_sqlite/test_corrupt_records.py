"""A record that cannot be read names its column, and nothing of what stands in it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from fetcher.adapters.sqlite import SqliteRecordStore
from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import RecordCorrupt
from tests.contract.records.builders import (
    a_connection,
    completed,
    ended,
    failed,
    inserted,
)


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
    [("metadata", "canary{"), ("metadata", "[]"), ("tls", '{"canary":1}'), ("type", "canary")],
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
    """It makes way for the others: a batch that it fills is another one the next time."""
    corrupt, sound = [await ended(store, completed()) for _ in range(2)]
    for job in (corrupt, sound):
        await store.cleanup.note(job.id, [f"{job.id}.json"])
    change(
        path, "UPDATE job SET cleanup_due = 1, cleanup_keys = '{}' WHERE id = ?", corrupt.id.bytes
    )
    assert await store.cleanup.find_due(limit=1) == []
    assert await store.cleanup.find_due(limit=1) == [(sound.id, (f"{sound.id}.json",))]


async def test_unreadable_jobs_make_way_for_others_in_the_search_for_expired_ones(
    store: SqliteRecordStore, path: Path
) -> None:
    corrupt, sound = await inserted(store), await inserted(store)
    change(path, "UPDATE job SET status = 'processing', lease_until = ?", 2)
    change(path, "UPDATE job SET filters = '[1]', lease_until = 1 WHERE id = ?", corrupt.id.bytes)
    assert await store.expired.find_expired(limit=1) == []
    assert [job.id for job in await store.expired.find_expired(limit=1)] == [sound.id]


def change(path: Path, statement: str, value: str | int | bytes) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement, (value,))
