"""Values as JSON (spec 21.13, as amended by the design, sections 5 and 6)."""

import json
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher_engine import NotEncodable, RowEncoder, encode_value

PLUS_TWO = timezone(timedelta(hours=2))


class NoOffset(tzinfo):
    """A zone that cannot tell: its times are naive by Python's definition."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Text(str):
    __slots__ = ()


class Number(int):
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        (2**64, "18446744073709551616"),
        (100.0, "100"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1e21, "1e+21"),
        (2.5e30, "2.5e+30"),
        (-0.0, "-0"),
        (0.0, "0"),
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (123456.789, "123456.789"),
        (12345678901234567168.0, "12345678901234567000"),
        (5e-324, "5e-324"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        # no HTML escaping (design section 5): `<` and U+2028 are written as they are
        ("a<b>&", '"a<b>&"'),
        ("\u2028\u2029", '"\u2028\u2029"'),
        ("\x1f", '"\\u001f"'),
        ("\x7f", '"\x7f"'),
        ("é\U0001f600", '"é\U0001f600"'),
        ('"\\/\b\f\n\r\t', '"\\"\\\\/\\b\\f\\n\\r\\t"'),
        ("", '""'),
        (b"\x00\x01", '"AAE="'),
        (bytearray(b"\x00\x01"), '"AAE="'),
        (memoryview(b"\x00\x01"), '"AAE="'),
        (b"", '""'),
        (datetime(2031, 4, 5, 6, 7, 8, 120_000, UTC), '"2031-04-05T06:07:08.12Z"'),
        (datetime(2031, 4, 5, 6, 7, 8, 1, UTC), '"2031-04-05T06:07:08.000001Z"'),
        (datetime(2031, 4, 5, 6, 7, 8), '"2031-04-05T06:07:08Z"'),  # noqa: DTZ001 - counts as UTC
        # with Z, whatever the offset (design section 6 replaces spec 21.13)
        (datetime(2031, 4, 5, 6, 7, 8, tzinfo=PLUS_TWO), '"2031-04-05T04:07:08Z"'),
        (datetime(2031, 4, 5, 6, 7, 8, tzinfo=NoOffset()), '"2031-04-05T06:07:08Z"'),
        (datetime(31, 4, 5, tzinfo=UTC), '"0031-04-05T00:00:00Z"'),
        (date(2031, 4, 5), '"2031-04-05T00:00:00Z"'),
        (Decimal("12.50"), '"12.50"'),
        (Decimal("1E+3"), '"1000"'),
        (Decimal("1E-7"), '"0.0000001"'),
        (Decimal("-0.0"), '"-0.0"'),
        (Decimal("NaN"), '"NaN"'),
        (Decimal("sNaN"), '"NaN"'),
        (Decimal("-NaN123"), '"NaN"'),
        (Decimal("Infinity"), '"Infinity"'),
        (Decimal("-Infinity"), '"-Infinity"'),
        (Decimal("1E+999999"), '"1E+999999"'),
        (UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        ({}, "{}"),
        ([], "[]"),
        ((), "[]"),
        ([1, "a", None], '[1,"a",null]'),
        # nested keys as stored (design section 5 replaces spec 21.13, where they were sorted)
        ({"b": 1, "a": {"d": 1, "c": 2}}, '{"b":1,"a":{"d":1,"c":2}}'),
        ({7: 1}, '{"7":1}'),
        (OrderedDict(a=[{"b": ()}]), '{"a":[{"b":[]}]}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (Colour.RED, '"red"'),
        (Size.BIG, "3"),
        (Text("é"), '"é"'),
        (Number(5), "5"),
    ],
)
def test_value(value: object, text: str) -> None:
    assert encode_value(value) == text


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_bounded() -> None:
    assert encode_value(nested(200)) == "[" * 200 + "1" + "]" * 200
    with pytest.raises(NotEncodable):
        encode_value(nested(202))


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
@pytest.mark.parametrize("zone", [None, NoOffset(), UTC])
def test_the_machines_own_zone_changes_no_time(zone: tzinfo | None) -> None:
    assert time.localtime(0).tm_hour == 9
    moment = datetime(2031, 4, 5, 6, 7, 8, tzinfo=zone)
    assert encode_value(moment) == '"2031-04-05T06:07:08Z"'
    [(data, _)] = RowEncoder(source="s", table="t").encode([{"a": moment}])
    assert data == b'{"a":"2031-04-05T06:07:08Z"}'


@pytest.mark.parametrize(
    "value",
    [object(), lambda: 1, {1, 2}, iter([]), {None: 1}, {b"a": 1}, {True: 1}, 1j, timedelta(1)],
)
def test_value_without_a_form(value: object) -> None:
    with pytest.raises(NotEncodable) as caught:
        encode_value(value)
    assert str(caught.value) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_values_survive_as_they_are(value: object) -> None:
    assert json.loads(encode_value(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive_exactly(value: float) -> None:
    assert float(encode_value(value)).hex() == value.hex()


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=6), min_size=1, max_size=8))
def test_rows_are_compact_objects_with_sorted_columns(rows: list[dict[str, Any]]) -> None:
    pieces = list(RowEncoder(source="s", table="t").encode(rows))
    document = b"[" + b",".join(data for data, _ in pieces) + b"]"
    assert sum(count for _, count in pieces) == len(rows)
    decoded = json.loads(document)
    assert decoded == rows
    assert [list(row) for row in decoded] == [sorted(row) for row in rows]


def test_integers_are_not_bounded_by_the_interpreters_guard() -> None:
    assert sys.get_int_max_str_digits() < 5000
    assert encode_value(10**5000) == "1" + "0" * 5000
    assert encode_value(-(10**5000) - 1) == "-1" + "0" * 4999 + "1"
