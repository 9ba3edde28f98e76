"""One collection's rows over a cursor that is none: ends, cuts and what failures name."""

from collections.abc import Iterator
from typing import Any, cast

import bson
import pytest
from pymongo.errors import AutoReconnect, OperationFailure

from fetcher.datasources.mongodb.bson_json import BsonWriter
from fetcher.datasources.mongodb.query import CollectionQuery
from fetcher.datasources.mongodb.rows import CollectionRows
from fetcher.datasources.mongodb.schema import Source
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EncodedBatch, SourceFailure


class ACursor:
    """Gives batches, then raises or stops. ``cursor_id`` is 0 once the server has no more."""

    def __init__(self, *batches: bytes | Exception, cursor_id: int = 0) -> None:
        self._batches = iter(batches)
        self._batch_size = 0
        self.cursor_id = cursor_id

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        batch = next(self._batches)
        if isinstance(batch, Exception):
            raise batch
        return batch


class ASource:
    """A database whose collections all give this cursor."""

    def __init__(self, cursor: ACursor) -> None:
        self._cursor = cursor

    def __getitem__(self, name: str) -> "ASource":
        return self

    def find_raw_batches(self, *arguments: Any, **options: Any) -> ACursor:
        return self._cursor


def some_rows(cursor: ACursor, *, chunk_bytes: int = 1 << 20) -> CollectionRows:
    return CollectionRows(
        cast("Source", ASource(cursor)),
        CollectionQuery(name="t", collection="t", condition={}, projection=None),
        BsonWriter(JobOptions(), max_cell_bytes=1 << 24),
        session=None,
        statement_seconds=1,
        chunk_bytes=chunk_bytes,
    )


def next_batch(rows: CollectionRows) -> EncodedBatch | None:
    """As the connector does it, in one thread."""
    while rows.waits_for_server:
        rows.fetch()
    return rows.next_batch()


def documents(first: int, count: int) -> bytes:
    return b"".join(bson.encode({"_id": number}) for number in range(first, first + count))


def test_batches_are_cut_by_bytes_and_nothing_is_lost() -> None:
    rows = some_rows(ACursor(documents(0, 10), documents(10, 1)), chunk_bytes=60)
    rows.fetch()
    sizes, texts = [], []
    while (batch := next_batch(rows)) is not None:
        sizes.append(batch.row_count)
        texts.append(batch.data)
    assert sizes == [4, 4, 2, 1]  # 14 bytes each
    assert b",".join(texts) == b",".join(b'{"_id":%d}' % number for number in range(11))


def test_no_rows() -> None:
    rows = some_rows(ACursor())
    rows.fetch()
    assert next_batch(rows) is None


def test_a_cursor_that_was_given_up_is_no_end() -> None:
    rows = some_rows(ACursor(documents(0, 3), cursor_id=7))
    rows.fetch()
    assert next_batch(rows) is not None
    with pytest.raises(SourceFailure) as caught:
        next_batch(rows)
    assert (caught.value.stage, caught.value.reason) == ("rows", "reset")


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (AutoReconnect("secret"), "rows", "reset"),
        (OperationFailure("secret", 50), "rows", "timeout"),
        (OperationFailure("secret", 43), "rows", "reset"),
        (OperationFailure("secret", 13), "rows", "forbidden"),
        (OperationFailure("secret", 175), "schema", "schema changed"),
        (OperationFailure("secret", 4711), "rows", "unknown"),
    ],
)
def test_an_error_in_mid_read_is_a_failure(error: Exception, stage: str, reason: str) -> None:
    rows = some_rows(ACursor(documents(0, 3), error, cursor_id=7))
    rows.fetch()
    assert next_batch(rows) is not None
    with pytest.raises(SourceFailure) as caught:
        next_batch(rows)
    failure = caught.value
    assert (failure.stage, failure.reason, failure.table) == (stage, reason, "t")
    assert "secret" not in repr((failure, failure.__cause__, failure.__context__))


def test_before_the_first_row_a_refusal_is_the_querys() -> None:
    with pytest.raises(SourceFailure) as caught:
        some_rows(ACursor(OperationFailure("x", 51091))).fetch()
    assert (caught.value.stage, caught.value.reason) == ("query", "invalid_filter")
    with pytest.raises(SnapshotRefused):
        some_rows(ACursor(OperationFailure("x", 246))).fetch()


@pytest.mark.parametrize("broken", [b"\x05\0\0", documents(0, 2)[:-1]])
def test_a_batch_that_is_no_bson(broken: bytes) -> None:
    with pytest.raises(SourceFailure) as caught:
        some_rows(ACursor(broken)).fetch()
    assert caught.value.reason == "protocol"


def test_invalid_text_names_table_and_field() -> None:
    bad = bson.encode({"_id": 1, "note": "abcd"}).replace(b"abcd", b"ab\xf3d")
    rows = some_rows(ACursor(documents(0, 3) + bad))
    rows.fetch()
    with pytest.raises(SourceFailure) as caught:
        next_batch(rows)
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == ("invalid_text", "t", "note")
    assert "abcd" not in repr(failure.__context__)


@pytest.mark.parametrize(
    ("document_bytes", "documents", "asked"),
    [(200, 100, 1600), (2 * 1024, 100, 1024), (128 * 1024, 10, 16), (6 * 1024 * 1024, 1, 1)],
)
def test_as_many_documents_are_asked_for_as_2_mib_hold(
    document_bytes: int, documents: int, asked: int
) -> None:
    empty = len(bson.encode({"t": ""}))
    document = bson.encode({"t": "x" * (document_bytes - empty)})
    cursor = ACursor(document * documents, cursor_id=7)
    some_rows(cursor).fetch()
    assert cursor._batch_size == asked


def test_what_is_written_is_not_held_while_more_is_waited_for() -> None:
    held: list[object] = []

    class Watched(ACursor):
        def __next__(self) -> bytes:
            held.append(rows._raw)
            return super().__next__()

    rows = some_rows(Watched(bson.encode({"t": "x"}), bson.encode({"t": "y"}), cursor_id=7))
    for _ in range(2):
        assert next_batch(rows) is not None
    assert held == [b"", b""]
