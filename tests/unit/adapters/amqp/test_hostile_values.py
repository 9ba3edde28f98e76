"""What a stranger may write into the properties of a message."""

import struct

import pytest
from pamqp import commands, encode

from fetcher.adapters.amqp.hostile_values import read_what_can_be_read

FLAGS = commands.Basic.Properties.flags


def nested(levels: int) -> bytes:
    inner = b""
    for _ in range(levels):
        inner = b"\x01nF" + struct.pack(">I", len(inner)) + inner
    return inner


def as_read(name: str, wire: bytes) -> commands.Basic.Properties:
    """The properties with this one, and a delivery mode behind it."""
    read_what_can_be_read()
    read_what_can_be_read()
    found = commands.Basic.Properties()
    order = list(found.__slots__)
    mode = bytes((2,))
    behind = order.index("delivery_mode") > order.index(name)
    flags = FLAGS[name] | FLAGS["delivery_mode"]
    found.unmarshal(flags, wire + mode if behind else mode + wire)
    assert found.delivery_mode == 2
    return found


@pytest.mark.parametrize(
    "entries",
    [
        nested(5000),
        b"\x02\xff\xfeS" + struct.pack(">I", 2) + b"ok",
        b"\x01tT" + struct.pack(">Q", 2**64 - 1),
        b"\x01t?",
        b"\xffshort",
    ],
)
def test_headers_that_cannot_be_read_are_none(entries: bytes) -> None:
    assert as_read("headers", struct.pack(">I", len(entries)) + entries).headers == {}


def test_headers_that_can_be_read_are_as_they_were() -> None:
    wire = encode.field_table({"a": "b", "n": {"m": [1, None]}, "x": bytearray(b"\xff")})
    assert as_read("headers", wire).headers == {
        "a": "b",
        "n": {"m": [1, None]},
        "x": bytearray(b"\xff"),
    }


def test_a_time_beyond_the_calendar_is_none() -> None:
    assert as_read("timestamp", struct.pack(">Q", 2**64 - 1)).timestamp is None
    assert as_read("timestamp", struct.pack(">Q", 0)).timestamp is not None


def test_a_text_that_is_no_utf_8_is_read_as_far_as_it_is() -> None:
    assert as_read("app_id", b"\x03a\xffb").app_id == "a\ufffdb"
    read_what_can_be_read()
    deliver = commands.Basic.Deliver()
    deliver.unmarshal(b"\x01c" + struct.pack(">Q", 7) + b"\x00" + b"\x00" + b"\x02\xffk")
    assert (deliver.delivery_tag, deliver.routing_key) == (7, "\ufffdk")
