"""What becomes of rows that a server sent without looking at their text."""

from typing import cast

import pytest

from fetcher.datasources.postgresql.query import TableQuery
from fetcher.datasources.postgresql.rows import CopyReader
from fetcher.datasources.postgresql.session import Session
from fetcher.datasources.texts import Texts
from fetcher_engine import SourceFailure

ROWS = [b'{"id":1,"a":"h\xc3\xa9","b":"x"}', b'{"id":2,"a":"y","b":"\xe9\xf3\\""}']


def a_reader(texts: Texts, codec: str = "utf-8") -> CopyReader:
    session = cast("Session", None)
    stored = None if codec == "utf-8" else b""
    query = TableQuery(
        name="t", fields=("id", "a", "b"), copy=b"", stored=stored, codec=codec, suspect=None
    )
    return CopyReader(session, query, max_batch_bytes=1024, texts=texts)


def test_damaged_text_of_a_utf8_database_names_its_column() -> None:
    """Where both sides say UTF-8 the server converts nothing, and so checks nothing."""
    with pytest.raises(SourceFailure) as caught:
        a_reader(Texts())._joined(ROWS)
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == ("invalid_text", "t", "b")


def test_damaged_text_is_replaced_where_wanted() -> None:
    texts = Texts(replaces=True)
    assert a_reader(texts)._joined(ROWS).decode() == (
        '{"id":1,"a":"h\u00e9","b":"x"},{"id":2,"a":"y","b":"\ufffd\ufffd\\""}'
    )
    assert texts.take_replaced() == 2


def test_text_in_the_databases_encoding_becomes_utf8() -> None:
    texts = Texts(replaces=True)
    row = b'{"a":"\x80\xe9\x81"}'
    assert a_reader(texts, "cp1252")._joined([row]).decode() == '{"a":"\u20ac\u00e9\ufffd"}'
    assert texts.take_replaced() == 1


@pytest.mark.parametrize(
    ("sizes", "reason", "column"),
    [
        (b"5,2000,30", "cell_too_large", "a"),
        (b"5,2000", "protocol", None),
        (b"5,2000,30,9999", "protocol", None),
        (b"5,,30", "protocol", None),
        (b"5,-1,30", "protocol", None),
        (b"5,2000,3" + b"0" * 5000, "protocol", None),
        (b"", "protocol", None),
    ],
)
def test_row_that_is_too_large_is_named_by_its_largest_column(
    sizes: bytes, reason: str, column: str | None
) -> None:
    with pytest.raises(SourceFailure) as caught:
        a_reader(Texts())._joined([b"\x01!" + sizes])
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == (reason, "t", column)


def test_damaged_row_that_cannot_be_taken_apart_names_no_column() -> None:
    for row in (b"\xff", b'{"a":' + b"[" * 9_000 + b"\xff"):
        with pytest.raises(SourceFailure) as caught:
            a_reader(Texts())._joined([row])
        assert (caught.value.reason, caught.value.column) == ("invalid_text", None)
