"""BSON to JSON: the table of types, the shapes, and both ways against a plain reference."""

import json
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import bson
import pytest
from bson import (
    Binary,
    Code,
    DatetimeMS,
    DBRef,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from hypothesis import given
from hypothesis import strategies as st

from fetcher.datasources.mongodb.bson_decoded import BsonDecoder
from fetcher.datasources.mongodb.bson_json import BsonWriter, CellTooLarge, document_starts
from fetcher.datasources.mongodb.bson_walk import BsonWalker, InvalidText, MalformedBson
from fetcher.domain.jobs import JobOptions
from tests.unit.datasources.mongodb.golden import GOLDEN
from tests.unit.datasources.mongodb.reference import reference


def written(
    *documents: bytes, options: JobOptions | None = None, max_cell_bytes: int = 1 << 24
) -> list[str]:
    """All at once: by walking and learning, then by what was learned, and without a shape."""
    options = options or JobOptions()
    writer = BsonWriter(options, max_cell_bytes=max_cell_bytes)
    data = b"".join(documents)
    first = ",".join(writer.rows(data, document_starts(data)))
    assert ",".join(writer.rows(data, document_starts(data))) == first
    hopeless = BsonWriter(options, max_cell_bytes=max_cell_bytes)
    hopeless._shapeless = 99
    assert ",".join(hopeless.rows(data, document_starts(data))) == first
    return apart(first)


def apart(joined: str) -> list[str]:
    """The objects of a text that has commas between them."""
    scan = json.JSONDecoder().raw_decode
    rows, at = [], 0
    while at < len(joined):
        _, end = scan(joined, at)
        rows.append(joined[at:end])
        assert joined[end : end + 1] in ("", ",")
        at = end + 1
    return rows


def encoded(document: dict[str, Any]) -> bytes:
    return bson.encode(document)


@pytest.mark.parametrize(("value", "text"), [(case.value, case.json) for case in GOLDEN])
def test_each_type_as_the_table_says(value: object, text: str) -> None:
    for document in ({"v": value}, {"v": {"w": value}}, {"v": [value]}, {"v": [{"w": value}]}):
        (row,) = written(encoded(document))
        inner = row.removeprefix('{"v":').removesuffix("}")
        nested = inner.removeprefix("[").removesuffix("]")
        assert text in (inner, nested, nested.removeprefix('{"w":').removesuffix("}"))


def test_types_that_drivers_no_longer_write() -> None:
    def raw(kind: int, value: bytes) -> bytes:
        body = bytes([kind]) + b"v\0" + value + b"\0"
        return struct.pack("<i", len(body) + 4) + body

    oid = bytes(range(12))
    assert written(raw(0x06, b"")) == ['{"v":null}']
    assert written(raw(0x0E, b"\x04\0\0\0abc\0")) == ['{"v":"abc"}']
    assert written(raw(0x0C, b"\x02\0\0\0x\0" + oid)) == [
        f'{{"v":{{"DB":"x","Pointer":"{oid.hex()}"}}}}'
    ]
    assert written(raw(0x0B, b"^a\0xi\0")) == ['{"v":{"Pattern":"^a","Options":"xi"}}']
    assert written(raw(0x05, b"\x07\0\0\0\x02\x03\0\0\0\xab\xcd\xef")) == ['{"v":"abcdef"}']


def test_options_change_large_integers_and_decimals() -> None:
    document = encoded(
        {
            "big": [Int64(2**53), Int64(2**53 + 1), Int64(-(2**53) - 1)],
            "one": Int64(-(2**63)),
            "price": Decimal128("12.50"),
            "odd": [Decimal128("NaN"), Decimal128("-Infinity"), Decimal128("1E+3")],
        }
    )
    (row,) = written(document, options=JobOptions(bigint="string", decimals="number"))
    assert row == (
        '{"big":[9007199254740992,"9007199254740993","-9007199254740993"],'
        '"odd":["NaN","-Infinity",1E+3],"one":"-9223372036854775808","price":12.50}'
    )


def test_top_level_in_byte_order_nested_as_stored() -> None:
    (row,) = written(encoded({"b": 1, "é": 1, "_id": 2, "Z": {"b": 1, "a": 2}, "a%s": 3}))
    assert row == '{"Z":{"b":1,"a":2},"_id":2,"a%s":3,"b":1,"é":1}'


def test_a_name_that_begins_another_stands_before_it() -> None:
    """Whatever follows it: what sorts before a quotation mark too, and what JSON escapes."""
    document = {"a": 1, "a b": 2, "a!": 3, "\n": 4, "1": 5, 'q"': 6, "q#": 7, "é\t": 8, "é ": 9}
    assert written(encoded(document), encoded(document)) == [reference(document)] * 2


def test_arrays_are_told_apart_however_a_driver_numbers_their_elements() -> None:
    """Servers store arrays as they come, and these may well be numbered 0, 0 and then 1."""

    two = encoded({"a": [5, 6]})
    alike, single = two.replace(b"\x101\0", b"\x100\0"), encoded({"a": [7]})
    later = single.replace(b"\x100\0", b"\x101\0")
    assert written(two, alike, later) == ['{"a":[5,6]}', '{"a":[5,6]}', '{"a":[7]}']


def test_documents_of_several_shapes_stay_in_their_order() -> None:
    documents: list[dict[str, Any]] = [
        {"_id": 1, "a": "x", "n": 1},
        {"_id": 2, "n": 1.5},
        {"_id": 3, "a": None, "n": Int64(7), "tags": []},
        {"_id": 4, "a": "", "tags": ["x", 'q"'], "zz": {}},
        {"n": 1, "a": "order", "_id": 5},
        {"_id": 6, "a": 'x\0y"', "n": 1, "items": [{"k": 1}, {"k": 2, "l": None}]},
        {},
        {"_id": 7, "items": [{"l": True}]},
    ]
    assert written(*map(encoded, documents)) == list(map(reference, documents))


def test_the_last_of_two_values_of_one_key_counts() -> None:
    twice = b"\x10a\0\x01\0\0\0\x10a\0\x02\0\0\0"
    inner = struct.pack("<i", len(twice) + 5) + twice + b"\0"
    body = twice + b"\x03d\0" + inner
    document = struct.pack("<i", len(body) + 5) + body + b"\0"
    assert written(document) == ['{"a":2,"d":{"a":2}}']


@pytest.mark.parametrize("learned", [False, True])
def test_invalid_text_names_the_field(*, learned: bool) -> None:
    good = encoded({"_id": 1, "note": "abcd"})
    bad = good.replace(b"abcd", b"ab\xf3d")
    nested = encoded({"deep": {"x": ["abcd"]}}).replace(b"abcd", b"\xff\xfe\xfd\xfc")
    for document, column in ((bad, "note"), (nested, "deep")):
        documents = [good, good, good, document] if learned else [document]
        with pytest.raises(InvalidText) as caught:
            written(*documents)
        assert caught.value.args == (column,)


def test_a_cell_that_is_too_large_names_the_field() -> None:
    small, large = encoded({"a": "x" * 60}), encoded({"a": "x", "b": ["\x01" * 60]})
    assert len(written(small, max_cell_bytes=62)) == 1
    with pytest.raises(CellTooLarge) as caught:
        written(small, small, large, max_cell_bytes=62)
    assert caught.value.args == ("b",)


def test_a_string_that_hides_elements_is_one_string() -> None:
    """What follows a NUL inside of a string looks like the rest of the shape."""
    plain = encoded({"_id": 1, "a": "x", "b": 7})
    hiding = encoded({"_id": 1, "a": "x\0\x10b\0\x01\0\0\0", "b": 9})
    assert written(plain, plain, hiding, plain)[2] == reference(bson.decode(hiding))


@pytest.mark.parametrize(
    "broken",
    [
        b"\x05\0\0\0",
        b"\x0c\0\0\0\x10a\0\x01\0\0\0\x01",
        b"\x0c\0\0\0\x20a\0\x01\0\0\0\0",
        b"\x0e\0\0\0\x02a\0\xff\0\0\0x\0\0",
        b"\x0d\0\0\0\x03a\0\xff\0\0\0\0",
        b"\x09\0\0\0\x10a\0\x01\0",
    ],
)
def test_broken_bson_is_refused(broken: bytes) -> None:
    with pytest.raises(MalformedBson):
        written(broken)


# --- properties -----------------------------------------------------------------------------

_NAMES = st.sampled_from(["_id", "a", "a b", "b", "c", "Z", "é", "x%y", 'q"', "\n"])
_TEXTS = st.text(max_size=8) | st.sampled_from(["", "\0", "\\", '"', "\n", "\x7f"])
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    st.floats(-1e6, 1e6).map(lambda value: round(value, 2)),
    _TEXTS,
    st.binary(max_size=20),
    st.uuids().map(lambda value: Binary(value.bytes, 4)),
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.integers(-(2**62), 2**62).map(DatetimeMS),
    st.integers(0, 4 * 10**12).map(DatetimeMS),
    st.decimals(allow_nan=False, places=2, min_value=-(10**9), max_value=10**9).map(Decimal128),
    st.sampled_from(["NaN", "Infinity", "0E+3", "1E-7", "-0.000", "1E+6144"]).map(Decimal128),
    st.builds(Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.sampled_from([MinKey(), MaxKey(), Code("x"), Regex("^a", "i")]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_DOCUMENTS = st.lists(st.dictionaries(_NAMES, _VALUES, max_size=6), min_size=1, max_size=12)
_ALIKE = st.lists(
    st.fixed_dictionaries(
        {"_id": st.binary(min_size=12, max_size=12).map(ObjectId), "n": st.integers(0, 9)},
        optional={
            "text": _TEXTS,
            "amount": st.floats() | st.integers(-9, 9) | st.none(),
            "price": st.integers(0, 10**6).map(lambda cents: Decimal128(Decimal(cents) / 100)),
            "tags": st.lists(_TEXTS, max_size=3),
            "items": st.lists(
                st.fixed_dictionaries({"k": _TEXTS}, optional={"q": st.none() | st.floats()}),
                max_size=3,
            ),
            "at": st.integers(0, 4 * 10**12).map(DatetimeMS),
        },
    ),
    min_size=1,
    max_size=20,
)


@given(_DOCUMENTS | _ALIKE)
def test_the_writer_equals_the_plain_reference(documents: list[dict[str, Any]]) -> None:
    assert written(*map(encoded, documents)) == list(map(reference, documents))


@given(st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=6), st.data())
def test_decoding_says_what_the_walker_says_or_nothing(
    document: dict[str, Any], data: st.DataObject
) -> None:
    """Also of bytes that no server sends: a decoder must not take what the walker refuses."""
    options = data.draw(
        st.sampled_from([JobOptions(), JobOptions(bigint="string", decimals="number")])
    )
    raw = bytearray(encoded(document))
    if data.draw(st.booleans()):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    walker = BsonWalker(options)
    decoded = BsonDecoder(walker).rows(bytes(raw))
    if decoded is not None:
        assert decoded == walker.document(bytes(raw))


def test_what_decoding_would_change_is_left_to_the_walker() -> None:
    decoder = BsonDecoder(BsonWalker(JobOptions()))
    for value in (Regex("^a", "i"), DBRef("c", 1), Code("f()", {"x": 1}), {"$id": 1, "$ref": "c"}):
        assert decoder.rows(encoded({"v": value})) is None
        assert decoder.rows(encoded({"v": [{"w": value}]})) is None


def test_a_collection_without_shapes_gives_them_up_and_stays_exact() -> None:
    writer = BsonWriter(JobOptions(), max_cell_bytes=1 << 24)
    for chunk in range(5):
        documents: list[dict[str, Any]] = [
            {"_id": n, f"k{chunk}_{n}": 1.0, "a": {"z": n, "b": [{"y": n, "x": Int64(n)}]}}
            for n in range(60)
        ]
        data = b"".join(map(encoded, documents))
        found = apart(",".join(writer.rows(data, document_starts(data))))
        assert found == list(map(reference, documents))
    assert writer._shapeless == 3


def test_what_the_reference_cannot_have() -> None:
    """Documents that a driver turns into something else."""
    assert written(encoded({"r": DBRef("c", 1, "d", more=2)})) == [
        '{"r":{"$ref":"c","$id":1,"$db":"d","more":2}}'
    ]
    moment = datetime(2031, 4, 5, 6, 7, 8, 120_000, tzinfo=UTC)
    assert written(encoded({"t": moment, "u": Binary.from_uuid(UUID(int=1))})) == [
        '{"t":"2031-04-05T06:07:08.12Z","u":"00000000-0000-0000-0000-000000000001"}'
    ]
