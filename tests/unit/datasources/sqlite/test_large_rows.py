"""Rows with large cells are written in pieces: the same rows."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from fetcher.datasources.sqlite.query import TableQuery
from fetcher.datasources.sqlite.rows import LARGE_BYTES, TableRows
from fetcher.datasources.sqlite.types import ValueRenderer
from fetcher.domain.jobs import JobOptions
from fetcher_engine import SourceFailure

FIELDS = ("a%s", "b", "n")
LARGE_TEXT = 'ü€"\\\n😀' + "x" * LARGE_BYTES
LARGE_BLOB = bytes(range(256)) * (LARGE_BYTES // 256) + b"end"
ROWS = [
    ("small", b"1", 1),
    (LARGE_TEXT, b"2", None),
    ("between", None, 2.5),
    ("", LARGE_BLOB, 3),
    (LARGE_TEXT, LARGE_BLOB, 4),
    ("last", b"", 5),
]


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE t ("a%s" TEXT, b BLOB, n)')
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
        yield connection


def rows_of(*, max_cell_bytes: int = 64 * 1024 * 1024) -> TableRows:
    query = TableQuery(name="t", fields=FIELDS, statement="SELECT * FROM t", values=())
    return TableRows(
        query,
        ValueRenderer(JobOptions()),
        batch_bytes=256 * 1024,
        max_cell_bytes=max_cell_bytes,
    )


def test_a_large_row_is_the_same_json_as_a_small_one(database: sqlite3.Connection) -> None:
    rows = rows_of()
    renderer = ValueRenderer(JobOptions())
    template = renderer.row_template(FIELDS)
    expected = [template % renderer.cells(row) for row in ROWS]
    counts, texts = [], []
    while (batch := rows.next_batch(database)) is not None:
        counts.append(batch.row_count)
        texts.append(batch.data.decode())
    assert ",".join(texts) == ",".join(expected)
    assert counts == [2, 2, 1, 1]
    assert json.loads(f"[{texts[0]}]")[1] == {"a%s": LARGE_TEXT, "b": "Mg==", "n": None}


def test_a_cell_above_the_limit_is_refused_by_name(database: sqlite3.Connection) -> None:
    with pytest.raises(SourceFailure) as refused:
        rows_of(max_cell_bytes=LARGE_BYTES // 2).next_batch(database)
    assert (refused.value.reason, refused.value.column) == ("cell_too_large", "a%s")
