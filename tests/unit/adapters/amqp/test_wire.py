"""Properties on the Wire (spec worker-and-events 2.1, 2.3, 8.2), byte by byte."""

from datetime import UTC, datetime

import pytest
from aiormq import spec
from pamqp import decode, frame
from pamqp.header import ContentHeader

from fetcher.adapters.amqp.wire import WireProperties, encode_headers


def test_strings_are_long_strings_integers_32_bit_and_bytearrays_byte_arrays() -> None:
    encoded = encode_headers({"x-retry-count": 0, "t": "17", "ce-id": bytearray(b"a")})
    assert encoded == (
        b"\x00\x00\x00\x28"
        b"\x05ce-idx\x00\x00\x00\x01a"
        b"\x01tS\x00\x00\x00\x0217"
        b"\x0dx-retry-countI\x00\x00\x00\x00"
    )


@pytest.mark.parametrize("value", [0, 1, -1, 127, 128, 65535, 2**31 - 1, -(2**31)])
def test_every_32_bit_integer_is_of_type_i(value: int) -> None:
    encoded = encode_headers({"n": value})
    assert encoded[6:7] == b"I"
    assert decode.field_table(encoded)[1] == {"n": value}


def test_foreign_values_keep_their_types() -> None:
    headers = {
        "flag": True,
        "far": 2**40,
        "list": ["a", 1],
        "table": {"k": "v"},
        "none": None,
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "no-text": b"\xff",
    }
    decoded = decode.field_table(encode_headers(headers))[1]
    assert decoded == headers | {"no-text": bytearray(b"\xff")}


def test_only_content_type_headers_and_delivery_mode_are_set() -> None:
    properties = WireProperties({"jobId": "x"}, message_id="ours")
    assert properties.message_id == "ours"
    marshalled = frame.marshal(ContentHeader(body_size=2, properties=properties), 1)
    header = frame.unmarshal(marshalled)[2]
    assert isinstance(header, ContentHeader)
    received = {name: value for name, value in header.properties if value}
    assert received == {
        "content_type": "application/json",
        "headers": {"jobId": "x"},
        "delivery_mode": 2,
    }
    assert spec.Basic.Properties.flags["message_id"] == 128
