"""Rows as pieces of JSON: by column where that can be, always with the bytes of one plain way."""

import base64
import json
import math
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetcher_engine import EngineError, RowEncoder

Rows = Sequence[Mapping[str, object]]


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Odd(StrEnum):
    """A member whose value is not the text that it is."""

    A = "a"

    def __new__(cls, text: str) -> "Odd":
        member = str.__new__(cls, text)
        member._value_ = f"value of {text}"
        return member


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Ratio(float):
    pass


class Moment(datetime):
    pass


class Key(UUID):
    pass


class Record(dict[str, object]):
    pass


Point = namedtuple("Point", ["x", "y"])


def plainly(value: Any) -> str:  # noqa: PLR0911 - one return a kind
    """What each value becomes, with no thought of speed."""
    if isinstance(value, Enum):
        return plainly(value.value)
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(Decimal(int(value)))
    if isinstance(value, float):
        return plain_float(float(value))
    if isinstance(value, Decimal):
        return '"NaN"' if value.is_nan() else f'"{plain_decimal(value)}"'
    if isinstance(value, datetime):
        naive = value.replace(tzinfo=None) - (value.utcoffset() or timedelta(0))
        fraction = f".{naive.microsecond:06}".rstrip("0").rstrip(".")
        return f'"{naive.year:04}-{naive:%m-%dT%H:%M:%S}{fraction}Z"'
    if isinstance(value, date):
        return f'"{value.isoformat()}T00:00:00Z"'
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"{base64.b64encode(bytes(value)).decode()}"'
    if isinstance(value, UUID):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{plainly(str(k))}:{plainly(v)}' for k, v in value.items())}}}"
    assert isinstance(value, list | tuple)
    return f"[{','.join(map(plainly, value))}]"


def plain_decimal(value: Decimal) -> str:
    return f"{value:f}" if abs(value.adjusted()) <= 10_000 else str(value)


def plain_float(value: float) -> str:
    if not math.isfinite(value):
        return f'"{Decimal(value)}"'
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(repr(value)):f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits, _, exponent = repr(value).partition("e")
    return f"{digits}e{int(exponent):+}"


def plain_rows(rows: Rows) -> bytes:
    return ",".join(
        f"{{{','.join(f'{plainly(name)}:{plainly(row[name])}' for name in sorted(row))}}}"
        for row in rows
    ).encode()


def encode(rows: Rows) -> bytes:
    pieces = list(RowEncoder(source="s", table="t").encode(rows))
    assert sum(count for _, count in pieces) == len(rows)
    assert all(count > 0 for _, count in pieces)
    return b",".join(data for data, _ in pieces)


ZONES = [None, UTC, timezone(timedelta(0)), timezone(timedelta(hours=2)), timezone.min]
FIRST, LAST = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001 - the zone is drawn
MOMENTS = st.datetimes(FIRST, LAST, timezones=st.sampled_from(ZONES))
DECIMALS = st.decimals() | st.sampled_from(
    [Decimal("1E+3"), Decimal("1E-7"), Decimal("-0.0"), Decimal("1E+20000"), Decimal("sNaN")]
)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e16, 1e21, 1e-6, 1e-7, 100.0, 12.05])
SUBCLASSED = st.sampled_from(
    [
        *(Colour.RED, Size.BIG, Odd.A, Text("é"), Number(5), Ratio(1e-7)),
        *(Moment(2031, 4, 5, tzinfo=UTC), Key(int=7), Record(b=1, a=2), Point(1, "y")),
        *(OrderedDict(b=1, a=[2]), MappingProxyType({"b": 1}), defaultdict(int, b=1)),
        *(UserDict(b=1), bytearray(b"\x00"), memoryview(b"\x01"), (), [], {}, {7: 1}),
        *({Text("k"): 1}, {Colour.RED: 1}, (1, (2, ())), [[], [None]]),
    ]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
KINDS = [
    *(st.none(), st.booleans(), st.integers(), FLOATS, TEXTS, DECIMALS, MOMENTS, st.dates()),
    *(st.binary(max_size=6), st.uuids(), SUBCLASSED),
]
SCALARS = st.one_of(KINDS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("ab") | TEXTS | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(["a", "b", "_id", "B", "é", "", 'q"', "\U0001f600", "\uffff", "a{}", "%s"])
SHAPES = [dict, Record, OrderedDict, MappingProxyType, UserDict]


@st.composite
def columns_of_one_kind(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Enough rows of one shape, with columns of one kind, with or without None and gaps."""
    count = draw(st.integers(1, 12))
    of_shape = st.dictionaries(st.sampled_from("cab"), st.sampled_from(KINDS), min_size=1)
    kinds = draw(of_shape)
    nested = {name: draw(st.integers(0, 3)) for name in kinds}
    options = {name: draw(st.sampled_from(["full", "null", "absent"])) for name in kinds}

    def one(name: str) -> Any:
        kind = kinds[name]
        if nested[name] == 1:
            kind = st.lists(kind, max_size=3)
        if nested[name] == 2:
            kind = st.fixed_dictionaries({"y": kind, "x": st.integers()})
        if nested[name] == 3:
            kind = st.dictionaries(st.sampled_from("yx"), kind)
        return draw(st.none() | kind if options[name] == "null" else kind)

    return [
        {name: one(name) for name in kinds if options[name] != "absent" or draw(st.booleans())}
        for _ in range(count)
    ]


@settings(max_examples=300, deadline=None)
@given(columns_of_one_kind(), st.sampled_from(SHAPES))
def test_columns_of_any_kind_have_the_bytes_of_the_plain_way(
    rows: list[dict[str, Any]], shape: Any
) -> None:
    assert encode([shape(row) for row in rows]) == plain_rows(rows)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.dictionaries(NAMES, VALUES, max_size=6), max_size=8),
    st.lists(st.integers(0, 7), max_size=12),
    st.data(),
)
def test_rows_of_any_shapes_have_the_bytes_of_the_plain_way(
    different: list[dict[str, Any]], repeated: list[int], drawn: st.DataObject
) -> None:
    rows = different + [different[at] for at in repeated if at < len(different)]
    rows = [dict(drawn.draw(st.permutations(list(row.items())))) for row in rows]
    shapes = drawn.draw(st.lists(st.sampled_from(SHAPES), min_size=len(rows), max_size=len(rows)))
    assert encode([shape(row) for shape, row in zip(shapes, rows, strict=True)]) == plain_rows(rows)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=2), st.text(max_size=3), max_size=4), min_size=1))
def test_a_text_is_written_as_it_is_or_named_as_invalid(rows: list[dict[str, str]]) -> None:
    try:
        expected = plain_rows(rows)
    except UnicodeEncodeError:
        with pytest.raises(EngineError) as caught:
            encode(rows)
        assert caught.value.reason == "invalid_text"
    else:
        assert encode(rows) == expected


def test_names_with_percent_signs_braces_and_quotes() -> None:
    assert encode([{'%s"': "%d", "%%": 1, "{}": 2}]) == b'{"%%":1,"%s\\"":"%d","{}":2}'


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        ([{}], b"{}"),
        ([{}, {}], b"{},{}"),
        ([{}, {"a": 1}], b'{},{"a":1}'),
        (
            [{"b": 1, "a": 2}, {}, {"a": 3}, {"a": 4, "b": 5}],
            b'{"a":2,"b":1},{},{"a":3},{"a":4,"b":5}',
        ),
        ([{"a": 1}, {"b": 2}], b'{"a":1},{"b":2}'),
        ([{"a": 1, "b": 2}, {"a": 3, "c": 4}], b'{"a":1,"b":2},{"a":3,"c":4}'),
        # in the order of UTF-8's bytes, which is that of code points, not of UTF-16
        ([{"\U0001f600": 1, "\uffff": 2}], '{"\uffff":2,"\U0001f600":1}'.encode()),
    ],
)
def test_rows_of_changing_shape(rows: list[dict[str, object]], data: bytes) -> None:
    assert encode(rows) == data


def test_rows_that_share_hardly_a_column_are_written_one_by_one() -> None:
    rows = [{f"column {n}": n} for n in range(300)]
    assert encode(rows) == plain_rows(rows)


def test_integers_beyond_the_interpreters_guard_stand_in_any_column() -> None:
    rows = [{"a": 10**5000, "b": [Number(-(10**4400))], "c": 1} for _ in range(5)]
    assert encode(rows) == plain_rows(rows)
    assert encode([*rows, {"a": 1}]) == plain_rows([*rows, {"a": 1}])


def test_arrays_too_long_to_lie_side_by_side() -> None:
    rows = [{"a": list(range(20_000))} for _ in range(5)]
    assert encode(rows) == plain_rows(rows)


def test_rows_are_cut_into_pieces_at_256_kib() -> None:
    pieces = list(RowEncoder(source="s", table="t").encode([{"x": "y" * 100_000}] * 10))
    assert [count for _, count in pieces] == [3, 3, 3, 1]
    assert {len(data) for data, _ in pieces} == {3 * 100_008 + 2, 100_008}


@pytest.mark.parametrize("size", [1, 2, 16, 17, 40])
def test_arrays_of_one_size_are_laid_side_by_side(size: int) -> None:
    items: list[Any] = [None, {"b": None, "a": [1.0, "x"]}, {}, [[], [None, "é"]], 'q"']
    for item in items:
        row = {"id": 1, "list": [item] * size, "rest": [[item, 2]] * size}
        rows = [row | {"id": n} for n in range(8)]
        assert encode(rows) == plain_rows(rows)


@pytest.mark.parametrize(
    "odd", ['"', "\\", "\n", "\x1f", "\x7f", "\xa0", "\u2028", "\U0001f600", ""]
)
def test_one_text_of_a_column_has_something_to_escape(odd: str) -> None:
    texts = [*(["plain", "straße", "東京"] * 5), f"a{odd}b", "after"]
    rows = [{"t": text, "nested": {"k": text, "more": [text, "x"]}} for text in texts]
    assert encode(rows) == plain_rows(rows)
    sparse = [row if n % 3 else {"nested": row["nested"]} for n, row in enumerate(rows)]
    assert encode(sparse) == plain_rows(sparse)


def test_pieces_stay_bounded_when_rows_grow() -> None:
    rows = [{"x": "y" * (n * n // 10)} for n in range(1000)]
    pieces = list(RowEncoder(source="s", table="t").encode(rows))
    assert b",".join(data for data, _ in pieces) == plain_rows(rows)
    assert max(len(data) for data, _ in pieces) <= 256 * 1024 + 100_000
