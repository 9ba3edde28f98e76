"""Strings inside of raw BSON, replaced: what else a document holds stays byte for byte."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.codec_options import CodecOptions
from hypothesis import given
from hypothesis import strategies as st

from fetcher.datasources.mongodb.bson_walk import MalformedBson
from fetcher.datasources.plugin_crm.sealed_strings import PathTree, with_strings

PATHS = ("a", "b.c", "b.d.e", "b.d.f")
TREE = PathTree(PATHS)


def marked(path: str, text: bytes) -> bytes:
    return b"<%b|%b>" % (path.encode(), text)


def changed(document: Mapping[str, Any]) -> dict[str, Any]:
    return bson.decode(with_strings(bson.encode(document), TREE, marked))


def test_strings_at_the_paths_are_replaced_and_told_their_path() -> None:
    assert changed({"x": "a", "a": "1", "b": {"c": "é", "d": {"f": "3", "e": "", "g": "4"}}}) == {
        "x": "a",
        "a": "<a|1>",
        "b": {"c": "<b.c|é>", "d": {"f": "<b.d.f|3>", "e": "", "g": "4"}},
    }


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": 1, "b": "text"},
        {"a": None, "b": None},
        {"a": {"a": "inside"}, "b": {"c": {"c": "x"}, "d": ["e"]}},
        {"a": ["x"], "b": [{"c": "x"}]},
        {"a": Code("x"), "b": {"c": Binary(b"x")}},
        {"a.b": "x", "b.c": "x"},
        {"": "x", "A": "x"},
    ],
)
def test_other_types_and_other_places_stay(document: dict[str, Any]) -> None:
    """Rows of 19.11: number, null, map, empty text; containers that are texts; arrays."""
    data = bson.encode(document)
    assert with_strings(data, TREE, marked) is data


EVERY_TYPE: dict[str, Any] = {
    "double": 1.5,
    "string": "x\0y",
    "document": {"a": "not this"},
    "array": [1, "a", {"a": "x"}],
    "binary": Binary(b"abc", 4),
    "old_binary": Binary(b"abc", 2),
    "id": ObjectId("64b7f0c2a1d3e4f5a6b7c8d9"),
    "yes": True,
    "at": datetime(2031, 1, 1, tzinfo=UTC),
    "nothing": None,
    "regex": Regex("^a", "im"),
    "code": Code("f()"),
    "scoped": Code("f()", {"a": "x"}),
    "int": 7,
    "stamp": Timestamp(1, 2),
    "long": Int64(2**60),
    "decimal": Decimal128("1.50"),
    "least": MinKey(),
    "most": MaxKey(),
    "far": DatetimeMS(2**60),
}
LENIENT: CodecOptions[dict[str, Any]] = CodecOptions(
    datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_MS
)


@pytest.mark.parametrize("name", list(EVERY_TYPE))
def test_every_type_is_stepped_over(name: str) -> None:
    document = {name: EVERY_TYPE[name], "a": "1", "b": {"x": EVERY_TYPE[name], "c": "2"}}
    data = bson.encode(document)
    expected = {**document, "a": "<a|1>", "b": {"x": EVERY_TYPE[name], "c": "<b.c|2>"}}
    assert with_strings(data, TREE, marked) == bson.encode(expected)


def test_types_that_no_driver_writes_any_more() -> None:
    undefined = b"\x06u\0"
    pointer = b"\x0cp\0\x05\0\0\0db.c\0" + bytes(12)
    symbol = b"\x0es\0\x02\0\0\0x\0"
    after = b"\x02a\0\x02\0\0\x001\0"
    body = undefined + pointer + symbol + after + b"\0"
    data = (len(body) + 4).to_bytes(4, "little") + body
    found = with_strings(data, TREE, marked)
    assert found.startswith(data[4 : 4 + len(body) - len(after) - 1], 4)
    assert found.endswith(b"\x02a\0\x06\0\0\0<a|1>\0\0")
    assert int.from_bytes(found[:4], "little") == len(found)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def expected_of(value: Any, tree: PathTree) -> Any:
    """The same over decoded documents."""
    return {
        name: marked(tree.leaves[name.encode()], each.encode()).decode()
        if isinstance(each, str) and each and name.encode() in tree.leaves
        else expected_of(each, tree.below[name.encode()])
        if isinstance(each, dict) and name.encode() in tree.below
        else each
        for name, each in value.items()
    }


@given(st.dictionaries(st.sampled_from(["a", "b", "x", "y"]), VALUES))
def test_it_does_what_decoding_and_encoding_would_do(document: dict[str, Any]) -> None:
    data = bson.encode(document)
    assert with_strings(data, TREE, marked) == bson.encode(
        expected_of(bson.decode(data, LENIENT), TREE)
    )


@given(st.binary(max_size=40), st.integers(0, 60), st.integers(0, 255))
def test_what_is_no_bson_is_refused_or_stays_bson(tail: bytes, at: int, byte: int) -> None:
    """No other exception, and nothing that does not end."""
    data = bytearray(bson.encode({"x": 1, "a": "1", "b": {"c": "2", "d": {"e": "3"}}}))
    if at < len(data):
        data[at] = byte
    else:
        data += tail
    try:
        found = with_strings(bytes(data), TREE, marked)
    except MalformedBson:
        return
    assert int.from_bytes(found[:4], "little") <= len(found)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x05\0\0",
        b"\x06\0\0\0\0",
        b"\x05\0\0\0\x01",
        b"\x0c\0\0\0\x02a\0\xff\xff\xff\x7f\0",
        b"\x0e\0\0\0\x02a\0\x01\0\0\0\0\x01\0"[:-2],
        b"\x0c\0\0\0\x44a\0\0\0\0\0\0",
        b"\x0a\0\0\0\x02aaaa\0",
    ],
)
def test_cut_and_overlong_documents_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedBson):
        with_strings(data, TREE, marked)
