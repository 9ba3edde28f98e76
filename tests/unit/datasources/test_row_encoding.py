"""Rows by orjson: the bytes of the Engine's own way, or none at all."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher.datasources.row_encoding import OrjsonRowEncoding
from fetcher_engine import EngineError, RowEncoder


class Colour(Enum):
    RED = "red"


class Code(StrEnum):
    A = "a"


class Size(IntEnum):
    BIG = 3


class Text(str):
    __slots__ = ()


class Ratio(float):
    pass


class Record(dict[str, object]):
    pass


@dataclass
class Point:
    x: int


def by_engine(rows: list[Any]) -> bytes:
    return b",".join(data for data, _ in RowEncoder(source="s", table="t").encode(rows))


def by_orjson(rows: list[Any]) -> bytes | None:
    """As the Engine calls it: whatever is raised is a refusal."""
    try:
        return OrjsonRowEncoding().encode(rows)
    except Exception:  # noqa: BLE001 - the port's contract
        return None


MOMENT = datetime(2031, 4, 5, 6, 7, 8, 120_000)  # noqa: DTZ001 - counts as UTC
LONG = "long enough for orjson to be worth it " * 20
PLUS_TWO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "rows",
    [
        [{"b": 1, "a": "x"}, {"b": None, "a": True}],
        [{"b": 1, "a": 2}, {"a": 3, "b": 4}],
        [{"b": 1}, {}, {"c": [], "a": {}}, {"b": 2, "a": LONG}],
        [{"a": 1, "b": 2}, {"a": 1, "c": 2}],
        [{}],
        [{"z": {"b": 1, "a": {"d": 1, "c": [{"y": None, "x": False}]}}}],
        [{"a": 2**64 - 1, "b": -(2**63), "c": 2**53 + 1}],
        [{"a": 100.0, "b": 0.1, "c": 0.0, "d": -0.001, "e": 123456789012345.6, "f": [12.5]}],
        [
            {
                "a": MOMENT,
                "b": MOMENT.replace(tzinfo=UTC),
                "c": MOMENT.replace(tzinfo=PLUS_TWO),
                "d": LONG,
            }
        ],
        [
            {
                "a": date(2031, 4, 5),
                "b": UUID(int=7),
                "c": (1, (2,)),
                "d": [Decimal("-0.0")],
                "e": LONG,
            }
        ],
        [{"a": Decimal("12.50"), "b": Decimal("NaN"), "c": Decimal("1E+999999"), "d": LONG}],
        [{"a": b"\x00\x01", "b": b"", "c": bytearray(b"\xff"), "d": LONG}],
        [{'"\\\x1f\x7f': 'é\U0001f600\u2028<&>"\\/\b\f\n\r\t\x00', "\uffff": 1, "\U0001f600": 2}],
    ],
)
def test_what_it_writes_are_the_bytes_of_the_engine(rows: list[dict[str, Any]]) -> None:
    assert by_orjson(rows) == by_engine(rows)


def nested(depth: int, branches: int = 1) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] * branches
    return value


def cyclic(branches: int) -> Any:
    value: list[Any] = []
    value.extend([value] * branches)
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), [[{"x": float("-inf")}]], 2**64, -(2**63) - 1, 10**5000),
        # floats that orjson writes otherwise: `1e-7` and `100` are the Engine's
        *(1e-7, 1e15, 1e21, -0.0, [100.0], {"x": 0.0}),
        *("\ud800", {"\udfff": 1}, {7: 1}, {None: 1}, time(1, 2), timedelta(1), 1j, {1}, object()),
        *(Colour.RED, Code.A, Size.BIG, [Colour.RED], Text("x"), Ratio(1.5), Record(a=1), Point(1)),
        *(OrderedDict(a=1), MappingProxyType({"a": 1}), memoryview(b"x"), nested(100)),
        *(cyclic(1), cyclic(10), nested(19, 2), datetime.max.replace(tzinfo=timezone.min)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_it_could_not_write_exactly_it_refuses(value: object) -> None:
    assert by_orjson([{"a": 1, "b": value}]) is None


@pytest.mark.parametrize("row", [Record(a=1), OrderedDict(a=1), MappingProxyType({"a": 1})])
def test_rows_that_are_no_plain_dictionaries_are_left_to_the_engine(row: Any) -> None:
    assert by_orjson([{"a": 1}, row]) is None


FLOATS = (
    st.floats()
    | st.floats(-1e16, 1e16)
    | st.floats(-1, 1)
    | st.integers(-(2**60), 2**60).map(float)
    | st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**65), 2**65),
    FLOATS,
    st.text(max_size=5) | st.just(LONG),
    st.decimals(),
    st.datetimes(timezones=st.sampled_from([None, UTC, PLUS_TWO])),
    st.dates(),
    st.times(),
    st.binary(max_size=5),
    st.uuids(),
    st.sampled_from([Colour.RED, Code.A, Size.BIG, Text("x"), Ratio(1.5), Record(a=1), 1e16]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2) | st.sampled_from([1, Text("t")]), inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS_OF_FLOATS = st.lists(st.fixed_dictionaries({"b": FLOATS, "a": FLOATS}), min_size=1, max_size=3)
NAMES = st.sampled_from(["b", "a", "é", "\uffff", "\U0001f600", "\ud800", Text("b"), Text("c")])


@settings(max_examples=500, deadline=None)
@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=5))
def test_any_rows_have_the_bytes_of_the_engine_or_are_refused(rows: list[dict[str, Any]]) -> None:
    data = by_orjson(rows)
    try:
        expected = by_engine(rows)
    except EngineError:
        assert data is None
    else:
        assert data in (None, expected)


@settings(max_examples=1000, deadline=None)
@given(ROWS_OF_FLOATS)
def test_floats_have_the_bytes_of_the_engine_or_are_refused(rows: list[dict[str, float]]) -> None:
    assert by_orjson(rows) in (None, by_engine(rows))


def test_rows_of_little_but_what_orjson_asks_back_for_are_left_to_the_engine() -> None:
    row = {"a": Decimal("12.50"), "b": MOMENT, "c": 1, "d": "x"}
    assert by_orjson([row]) is None
    assert by_orjson([row | {"e": 1, "f": 2, "g": 3, "h": 4}]) is not None
    assert by_orjson([row | {"d": "x" * 200}]) is not None


@pytest.mark.parametrize(
    "rows",
    [
        [{"b": 1}, {}, {"c": [], "a": {}}, {"b": 2, "a": 3}],
        [{"a": "x" * 44}, {"a": "x" * 45, "b": 1}],
        [{"a": 1}, *[{"a": 1, "b": 2}] * 15, {"a": LONG}],
    ],
)
def test_rows_of_changing_shape_without_long_texts_are_left_to_the_engine(rows: list[Any]) -> None:
    assert by_orjson(rows) is None
    long = [{"a": LONG * 2}, *rows]
    assert by_orjson(long) == by_engine(long)


def test_the_rows_themselves_stay_as_they_are() -> None:
    rows: list[dict[str, object]] = [{"b": 1.0, "a": 2}]
    assert by_orjson(rows) == b'{"a":2,"b":1}'
    assert str(rows) == "[{'b': 1.0, 'a': 2}]"
