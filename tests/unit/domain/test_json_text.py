"""JSON with every digit: RFC 8259, spec rest-api 5.1."""

import json
import tracemalloc
from collections.abc import Mapping
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.json_text import JsonTextError, dumps, parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).filter(
        # "0" alone would come back as an int
        lambda number: number.as_tuple().exponent != 0
    )
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def typed(value: object) -> object:
    """Equality that tells 1 from 1.0 and True, and -0 from 0."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return (type(value).__name__, str(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"5432", 5432),
        (b"5432.0", Decimal("5432.0")),
        (b"1e3", Decimal("1E+3")),
        (b"1.10", Decimal("1.10")),
        (b"9007199254740993", 9007199254740993),
        (b"0.1234567890123456789", Decimal("0.1234567890123456789")),
        (b"-0", Decimal("-0")),
        (b"0", 0),
        (b"1" * 1000, int("1" * 1000)),
        (b"1e9999", Decimal("1E+9999")),
        (b"1e-0009999", Decimal("1E-9999")),
        (b'"a"', "a"),
        (b" [ ] ", []),
        (b"null", None),
        (b"true", True),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\u00e9\\ud83d\\ude00\\u0000"', "é\U0001f600\x00"),
    ],
)
def test_values_are_read_exactly(text: bytes, expected: object) -> None:
    assert typed(parse(text)) == typed(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'"a\xffb"', "a\ufffdb"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"\\ud800"', "\ufffd"),
        (b'"\\udc00\\ud800"', "\ufffd\ufffd"),
        (b'{"\\udfff":["\\ud9ab"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_what_is_no_text_is_replaced(text: bytes, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "problem", "position"),
    [
        (b"", "malformed JSON", 0),
        (b"  ", "malformed JSON", 2),
        (b"{", "malformed JSON", 1),
        (b'{"a":1} x', "malformed JSON", 8),
        (b"[1 2]", "malformed JSON", 3),
        (b"01", "malformed JSON", 1),
        (b'"\x01"', "malformed JSON", 1),
        (b"\xef\xbb\xbf1", "malformed JSON", 0),
        (b"\xff", "malformed JSON", 0),
        (b'{"NaN":NaN}', "malformed JSON", 7),
        (b'["Infinity",-Infinity]', "malformed JSON", 12),
        (b'["1e99999",1e99999]', "number out of range", 11),
        (b"1e-10000", "number out of range", 0),
        (b"1.5E+99999999999999999999999", "number out of range", 0),
        (b"[1," + b"1" * 1001 + b"]", "number too long", 3),
        (b"0." + b"1" * 1000, "number too long", 0),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(
    text: bytes, problem: str, position: int
) -> None:
    with pytest.raises(JsonTextError) as refused:
        parse(text)
    assert (refused.value.problem, refused.value.position) == (problem, position)
    assert str(refused.value) == f"{problem} at character {position}"
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


@pytest.mark.parametrize("digits", [10**5, 4 * 10**6])
def test_numbers_without_end_cost_nothing(digits: int) -> None:
    with pytest.raises(JsonTextError, match="number too long"):
        parse(b"9" * digits)
    with pytest.raises(JsonTextError, match="number too long"):
        parse(b"[-" + b"9" * digits + b".5]")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":'])
def test_nesting_is_bounded(opening: bytes) -> None:
    closing = {b"[": b"]", b'{"a":': b"}", b'[{"a":': b"}]"}[opening]
    levels = 2 if opening == b'[{"a":' else 1

    def nested(depth: int) -> bytes:
        return opening * (depth // levels) + b"1" + closing * (depth // levels)

    assert parse(nested(64))
    with pytest.raises(JsonTextError, match="nested too deeply"):
        parse(nested(66))
    with pytest.raises(JsonTextError, match="nested too deeply"):
        parse(opening * 1_000_000)
    assert parse(nested(4), max_depth=4)
    with pytest.raises(JsonTextError, match="nested too deeply"):
        parse(nested(6), max_depth=4)


def test_brackets_in_texts_and_beside_each_other_are_no_depth() -> None:
    assert parse(json.dumps(["[" * 500, '\\"[{[{' * 40, "{" * 500]).encode())
    assert parse(b"[" + b"[],{}," * 500 + b"1]")


def test_a_text_that_does_not_end_costs_nothing() -> None:
    with pytest.raises(JsonTextError, match="malformed JSON"):
        parse(b"[" * 60 + b'"' + b'\\"[' * 1_000_000)


@given(VALUES)
def test_values_round_trip(value: object) -> None:
    assert typed(parse(dumps(value).encode())) == typed(value)
    assert typed(parse(dumps(value, escape_html=True).encode())) == typed(value)
    sorted_text = dumps(value, sort_keys=True)
    assert dumps(parse(sorted_text.encode()), sort_keys=True) == sorted_text


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = parse(data)
    except JsonTextError:
        return
    assert typed(parse(dumps(value).encode())) == typed(value)


def test_text_is_compact_and_in_order() -> None:
    value = {"b": [1, Decimal("1.50"), None, True, False], "a": {}, "ä": [], "c": {"x": "y"}}
    assert dumps(value) == '{"b":[1,1.50,null,true,false],"a":{},"ä":[],"c":{"x":"y"}}'
    assert dumps(value, sort_keys=True) == (
        '{"a":{},"b":[1,1.50,null,true,false],"c":{"x":"y"},"ä":[]}'
    )


def test_keys_sort_by_their_utf8_bytes() -> None:
    keys = ["\U0001f600", "\uffee", "z", "Z", "é"]
    assert list(json.loads(dumps(dict.fromkeys(keys), sort_keys=True))) == sorted(
        keys, key=str.encode
    )


def test_html_characters_are_escaped_on_demand() -> None:
    text = '<a href="x">&\u2028\u2029é\x00\x1f\x7f\b\f\n\r\t\\'
    assert dumps(text, escape_html=True) == (
        r'"\u003ca href=\"x\"\u003e\u0026\u2028\u2029é\u0000\u001f' + "\x7f" + r'\b\f\n\r\t\\"'
    )
    assert dumps("<>&\u2028") == '"<>&\u2028"'
    assert dumps({"<": 1}, escape_html=True) == '{"\\u003c":1}'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (10**400, "1" + "0" * 400),
        (Decimal("1E+3"), "1E+3"),
        (Decimal("-0"), "-0"),
        (Decimal("0E-8"), "0E-8"),
        (1.5, "1.5"),
        (1e22, "1E+22"),
        (5e-324, "5E-324"),
    ],
)
def test_numbers_are_written_exactly(number: object, text: str) -> None:
    assert dumps(number) == text


@pytest.mark.parametrize(
    "value",
    [
        Decimal("NaN"),
        Decimal("-Infinity"),
        float("nan"),
        float("inf"),
        pytest.param(10**100_000, id="100 000 digits"),
        "\ud800",
        {"\udfff": 1},
        {1: 2},
        b"bytes",
        {"a": object()},
        {1, 2},
    ],
)
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(JsonTextError) as refused:
        dumps(value)
    assert refused.value.position is None


def test_what_holds_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(JsonTextError, match="nested too deeply"):
        dumps(endless)


def test_large_texts_of_escapes_cost_little_memory() -> None:
    """A pattern keeps each repetition of a group that it may have to go back over."""
    text = '{"a":"' + '\\"' * 2_000_000 + '","b":[' + "{}," * 100 + "0]}"
    tracemalloc.start()
    try:
        value = parse(text.encode(), max_depth=64)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(value, Mapping)
    assert value["a"] == '"' * 2_000_000
    assert peak < 100 * 1024 * 1024
