"""Rows that are encoded already, apart and joined."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher_engine import RowEncoder, row_pieces
from fetcher_engine.row_pieces import JoinedRows, MalformedBatch, split_objects

TEXTS = st.sampled_from(["", "},{", '"', "\\", '\\"},{', "{", "}", "[", ",", "é\u2028", "\n"])
VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), min_size=1, max_size=8))
def test_joined_rows_come_apart_where_they_were_joined(rows: list[dict[str, Any]]) -> None:
    objects = list(map(compact, rows))
    assert split_objects(b",".join(objects), len(rows)) == objects


@pytest.mark.parametrize("encoding", [None, "host"])
def test_a_piece_of_the_encoder_knows_its_rows_and_its_size(encoding: str | None) -> None:
    class Host:
        def encode(self, rows: Any) -> bytes:
            return compact(list(rows))[1:-1]

    rows = [{"a": [{"b": n}, {"b": "},{"}]} for n in range(100)]
    encoders = [
        RowEncoder(source="s", table="t", encoding=Host() if encoding else None) for _ in range(2)
    ]
    pieces = list(encoders[0].pieces(rows))
    assert [row for piece in pieces for row in piece.apart()] == list(map(compact, rows))
    assert [(piece.joined(), piece.row_count) for piece in pieces] == list(encoders[1].encode(rows))
    assert [piece.row_count for piece in pieces] == [32, 68]
    assert [piece.size_bytes for piece in pieces] == [len(piece.joined()) for piece in pieces]


def test_rows_of_the_engines_encoder_are_not_joined_to_be_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_pieces, "split_objects", None)
    pieces = RowEncoder(source="s", table="t").pieces([{"a": [{}, {}]}, {"a": 300_000 * "y"}])
    assert [len(row) for piece in pieces for row in piece.apart()] == [13, 300_008]


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"x", 1),
        (b"{", 1),
        (b"}", 1),
        (b"1", 1),
        (b"[{},{}]", 2),
        (b'{"a":1},{"b":2}', 1),
        (b'{"a":1},{"b":2}', 3),
        (b'{"a":"},{"}', 3),
        (b'{"a":"},{"},{"b":1}', 1),
        (b'{"a":"},{},{"}{"b":1}', 2),
        (b'{"a":"},{},{"},,{"b":1}', 2),
        (b'{"a":"},{},{"},1,{"b":1}', 2),
        (b'{"a":"},{},{"},{"b":1},', 2),
        (b'{"a":"},{},{"},{"b":1', 2),
        (b'{"a":"},{},{"},{"b":{}', 2),
        (b'{"a":"},{},{"},{"b":1}}', 2),
        (b'{"a":"},{},{"} ,{"b":1}', 2),
        (b'{"a":"},{},{"}, {"b":1}', 2),
        (b' {"a":1}', 1),
        (b'{"a":1} ', 1),
        (b'{"a":1}\n', 1),
        (b'{"a":1},\n{"b":2}', 2),
        (b'{"a":\n1}', 1),
        (b'{"a":"\n"}', 1),
        (b'{"a":"},{},{"},{"b":"\xff"}', 2),
        (b'{"a":"},{","b":' + b"[" * 100_000 + b"}", 1),
        (b'{"a":"},{","b":"}', 1),
    ],
)
def test_what_is_not_so_many_objects_is_malformed(data: bytes, count: int) -> None:
    with pytest.raises(MalformedBatch) as caught:
        split_objects(data, count)
    assert caught.value.args == ()
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_numbers_of_any_size_stay_as_they_are() -> None:
    objects = [b'{"a":"},{","b":' + b"9" * 100_000 + b"}", b'{"b":-1.50e+999}']
    assert split_objects(b",".join(objects), 2) == objects


class Counting:
    """Keeps where each object was looked for: each look reads on from there, up to its end."""

    def __init__(self) -> None:
        self.starts: list[int] = []

    def raw_decode(self, text: str, start: int) -> tuple[Any, int]:
        self.starts.append(start)
        return json.JSONDecoder().raw_decode(text, start)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(row_pieces, "_ROWS", counting)
    return counting


def test_each_row_is_gone_over_once(counting: Counting) -> None:
    row = b'{"a":["},{",{"b":1},{"c":"\\""}]}'
    assert split_objects(b",".join([row] * 1000), 1000) == [row] * 1000
    assert counting.starts == [n * (len(row) + 1) for n in range(1000)]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":"' + b'\\"' * 1_000_000 + b"}",
        b'{"a":"' + b"\\" * 1_000_000 + b"}",
        b'{"a":' * 100_000 + b"}",
        b'{"a":"},{"},' + b"{" * 1_000_000 + b"}",
        b'{"a":"},{"}' + b"},{" * 1_000_000 + b"}",
    ],
)
def test_no_byte_of_what_is_no_row_is_gone_over_twice(data: bytes, counting: Counting) -> None:
    with pytest.raises(MalformedBatch):
        split_objects(data, 2)
    assert counting.starts in ([0], [0, 12])


def test_rows_beyond_their_count_are_not_gone_over(counting: Counting) -> None:
    with pytest.raises(MalformedBatch):
        split_objects(b",".join([b'{"a":"},{"}'] * 1000), 2)
    assert counting.starts == [0, 12]


def test_rows_that_are_joined_already_are_passed_on_uncopied() -> None:
    data = b'{"a":1},{"a":2}'
    piece = JoinedRows(data, 2)
    assert piece.joined() is data
    assert piece.size_bytes == len(data)
    assert "1" not in repr(piece)
    assert list(piece.apart()) == [b'{"a":1}', b'{"a":2}']
