"""The first rows of a document, byte by byte as they were stored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.result_rows import DocumentMalformed, TableHead, head_of_tables

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=4), max_size=5)
DOCUMENTS = st.dictionaries(
    st.text(max_size=6), st.dictionaries(st.text(max_size=6), ROWS, max_size=3), max_size=3
)


def compact(value: object, *, escaped: bool = False) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=escaped).encode("utf-8", "replace")


@given(document=DOCUMENTS, rows=st.integers(1, 4), escaped=st.booleans())
def test_rows_are_those_of_a_parser(
    document: dict[str, dict[str, list[object]]], rows: int, escaped: bool
) -> None:
    found = head_of_tables(compact(document, escaped=escaped), rows=rows)
    assert {
        config: {
            table: ([json.loads(row) for row in head.rows], head.row_count)
            for table, head in tables.items()
        }
        for config, tables in found.items()
    } == {
        config: {table: (kept[:rows], len(kept)) for table, kept in tables.items()}
        for config, tables in json.loads(compact(document, escaped=escaped)).items()
    }


def test_numbers_and_escapes_stay_as_they_were_stored() -> None:
    row = rb'{"n":1234567890123456789012345.10,"e":1e400,"t":"\u00e9\"}\\","j":{"a":[{"b":"]"}]}}'
    found = head_of_tables(b'{"db":{"t":[' + row + b"," + row + b"]}}", rows=1)
    assert found == {"db": {"t": TableHead((row,), 2)}}


LONG_TEXTS = {
    "plain": "x" * 1_000_000,
    "escapes": "\\n" * 300_000,
    "backslashes": "\\\\" * 300_000,
    "a backslash across windows": "x" + "\\\\" * 300_000,
    "quotes": '\\"' * 300_000,
    "brackets": "]}" * 300_000,
    "wide": "ü" * 1_001,
    "short": '\\"' * 501,
    "mixed": "{" * 999 + '\\"' + "\\\\",
    "empty": "",
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
@pytest.mark.parametrize("place", ['{{"t":"{}"}}', '{{"j":{{"a":["{}",{{"b":1}}]}},"c":[]}}'])
def test_long_texts_end_where_they_end(place: str, text: str) -> None:
    row = place.format(text).encode()
    document = b'{"db":{"t":[' + row + b',{"z":0},' + row + b"]}}"
    head = head_of_tables(document, rows=2)["db"]["t"]
    assert (head.rows, head.row_count) == ((row, b'{"z":0}'), 3)


@pytest.mark.parametrize("depth", [100, 50_000])
def test_depth_of_a_nested_value_costs_no_stack(depth: int) -> None:
    row = b'{"j":' + b"[" * depth + b"]" * depth + b"}"
    assert head_of_tables(b'{"db":{"t":[' + row + b"]}}", rows=1)["db"]["t"].rows == (row,)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"[]",
        b'{"db":[]}',
        b'{"db":{"t":{}}}',
        b'{"db":{"t":[1]}}',
        b'{"db":{"t":[{}{}]}}',
        b'{"db":{"t":[{},]}}',
        b'{"db":{"t":[{"a":[}]}}',
        b'{"db":{"t":[{"a":"]}}',
        b'{"db":{"t":[]}} ',
        b'{"db":{"t":[]}}{}',
        b'{db:{"t":[]}}',
    ],
)
def test_what_is_no_result_document_is_refused(document: bytes) -> None:
    with pytest.raises(DocumentMalformed):
        head_of_tables(document, rows=1)
