"""A host's faster way to write rows (port ``RowEncoding``), beside the Engine's own."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher_engine import EngineError, RowEncoder, encode_value

Rows = Sequence[Mapping[str, object]]


class Orjson:
    """Any rows of JSON values, by orjson; whatever it does not know it leaves to the Engine."""

    def encode(self, rows: Rows) -> bytes | None:
        columns = [{name: row[name] for name in sorted(row)} for row in rows]
        if not all(map(is_finite, columns)):
            return None
        options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
        return orjson.dumps(columns, lambda value: encode_value(value)[1:-1], options)[1:-1]


def is_finite(value: object) -> bool:
    if isinstance(value, dict | list):
        return all(map(is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


class Answering:
    """Answers with what it was told to, and keeps what it was offered."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.offered: list[Rows] = []

    def encode(self, rows: Rows) -> bytes | None:
        self.offered.append(rows)
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: bytes | None = self.answer(rows) if callable(self.answer) else self.answer
        return answer


def pieces_of(rows: Rows, encoding: Any = None) -> list[tuple[bytes, int]]:
    return list(RowEncoder(source="s", table="t", encoding=encoding).encode(rows))


def joined(pieces: list[tuple[bytes, int]]) -> bytes:
    return b",".join(data for data, _ in pieces)


def tokens_of(data: bytes) -> Any:
    """The rows with members as stored, whole numbers apart from floats, floats by their bits."""

    def number(text: str) -> tuple[str, str]:
        return "number", float(text).hex()

    def integer(text: str) -> tuple[str, str]:
        return "integer", text

    return json.loads(
        b"[" + data + b"]",
        parse_float=number,
        parse_int=integer,
        object_pairs_hook=lambda pairs: ("object", pairs),
    )


def with_floats_alike(tokens: Any, rows: Any) -> Any:
    """``100`` stands for the float 100.0 where a float was asked to be written."""
    if isinstance(rows, float) and isinstance(tokens, tuple) and tokens[0] == "integer":
        return "number", float(tokens[1]).hex()
    if isinstance(rows, dict):
        names = sorted(rows) if tokens[0] == "row" else list(rows)
        pairs = zip(names, tokens[1], strict=True)
        return [(name, with_floats_alike(pair[1], rows[name])) for name, pair in pairs]
    if isinstance(rows, list):
        return [with_floats_alike(t, r) for t, r in zip(tokens, rows, strict=True)]
    return tokens


def values_of(data: bytes, rows: list[dict[str, Any]]) -> Any:
    found = [("row", pairs) for _, pairs in tokens_of(data)]
    return with_floats_alike(found, rows)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FLOATS = st.floats() | st.sampled_from(
    [1e-7, 1e16, 1e21, 100.0, -0.0, 5e-324, math.nextafter(1, 2)]
)
OTHERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([2**53 + 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1]),
    TEXTS,
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.datetimes(timezones=st.none() | st.just(UTC)),
    st.dates(),
    st.binary(max_size=5),
    st.uuids(),
)
NAMES = st.sampled_from(["b", "a", "é", "\uffff", "\U0001f600", ""])


def rows_of(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    )
    return st.lists(st.dictionaries(NAMES, values, max_size=4), min_size=1, max_size=6)


@settings(max_examples=400, deadline=None)
@given(rows_of(FLOATS | OTHERS))
def test_both_encoders_give_the_same_bytes_but_for_the_notation_of_floats(
    rows: list[dict[str, Any]],
) -> None:
    own, other = joined(pieces_of(rows)), joined(pieces_of(rows, Orjson()))
    assert values_of(other, rows) == values_of(own, rows)


@settings(max_examples=200, deadline=None)
@given(rows_of(OTHERS))
def test_rows_without_floats_have_equal_bytes(rows: list[dict[str, Any]]) -> None:
    assert joined(pieces_of(rows, Orjson())) == joined(pieces_of(rows))


def test_every_kind_of_value_is_the_same_by_both() -> None:
    rows: list[dict[str, object]] = [
        {"z": 2**64 - 1, "a": Decimal("12.50"), "d": date(2031, 4, 5), "u": UUID(int=7)},
        {"b": b"\x00\x01", "t": datetime(2031, 4, 5, 6, 7, 8, 120_000, UTC), "x": {"b": 1, "a": 2}},
    ]
    encoding = Answering(Orjson().encode)
    assert joined(pieces_of(rows, encoding)) == joined(pieces_of(rows))
    assert encoding.offered == [rows]


@pytest.mark.parametrize(
    "answer", [None, b"", "text", bytearray(b"{}"), RuntimeError("secret"), KeyError("a")]
)
def test_rows_that_the_host_does_not_write_are_written_by_the_engine(answer: Any) -> None:
    rows: list[dict[str, object]] = [{"b": 1, "a": None}, {"b": 2, "a": "x"}]
    encoding = Answering(answer)
    assert pieces_of(rows, encoding) == [(b'{"a":null,"b":1},{"a":"x","b":2}', 2)]
    assert encoding.offered == [rows]


def test_the_engine_says_what_neither_can_write() -> None:
    rows: list[dict[str, object]] = [{"a": 1, "b": 2}, {"a": 1, "b": "\ud800"}]
    with pytest.raises(EngineError) as caught:
        pieces_of(rows, Orjson())
    assert (caught.value.column, caught.value.reason) == ("b", "invalid_text")
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "value", [float("nan"), float("-inf"), 2**64, -(2**63) - 1, {7: 1}, [[float("nan")]]]
)
def test_values_beyond_a_hosts_encoder_are_not_changed(value: object) -> None:
    rows = [{"a": value}]
    assert pieces_of(rows, Orjson()) == [(f'{{"a":{encode_value(value)}}}'.encode(), 1)]


def test_after_refusals_fewer_slices_are_offered_until_one_is_taken() -> None:
    encoding = Answering(None)
    rows = [{"a": n} for n in range(32 + 512 * 200)]
    encoder = RowEncoder(source="s", table="t", encoding=encoding)
    assert b",".join(data for data, _ in encoder.encode(rows)) == joined(pieces_of(rows))
    firsts = [offered[0]["a"] for offered in encoding.offered]
    slices = [0] + [32 + 512 * (at - 1) for at in (2, 6, 14, 30, 62, 94, 126, 158, 190)]
    assert firsts == slices
    encoding.answer, encoding.offered = Orjson().encode, []
    assert b",".join(data for data, _ in encoder.encode(rows)) == joined(pieces_of(rows))
    assert len(encoding.offered) == 180


def test_no_rows_are_not_offered() -> None:
    encoding = Answering(b"{}")
    assert pieces_of([], encoding) == []
    assert encoding.offered == []


def test_slices_offered_make_pieces_of_256_kib() -> None:
    encoding = Answering(Orjson().encode)
    rows = [{"x": "y" * 5_000}] * 500
    pieces = pieces_of(rows, encoding)
    assert joined(pieces) == joined(pieces_of(rows))
    assert sum(count for _, count in pieces) == 500
    assert max(len(data) for data, _ in pieces) <= 256 * 1024
    assert max(map(len, encoding.offered)) == 256 * 1024 // 5_008


def test_slices_shrink_at_once_when_rows_grow() -> None:
    encoding = Answering(Orjson().encode)
    rows = [{"x": ""}] * 1000 + [{"x": "y" * 100_000}] * 20
    pieces = pieces_of(rows, encoding)
    assert joined(pieces) == joined(pieces_of(rows))
    assert max(len(data) for data, _ in pieces) <= 2 * 256 * 1024
    assert max(map(len, encoding.offered)) == 512


def test_a_row_larger_than_a_piece_is_one_piece() -> None:
    rows = [{"x": "y" * 1_000_000}] * 3
    assert [count for _, count in pieces_of(rows, Orjson())] == [1, 1, 1]
