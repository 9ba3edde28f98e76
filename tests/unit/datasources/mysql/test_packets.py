"""Rows out of a result's bytes: any split, long rows, errors, ends, and what is malformed."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st
from pymysql.err import OperationalError  # type: ignore[import-untyped] # its stubs are no dependency

from fetcher.datasources.mysql.errors import statement_failure
from fetcher.datasources.mysql.packets import MalformedPacket, RowPackets
from fetcher_engine import Stage

SPLIT = 0xFFFFFF
EOF = b"\xfe\x00\x00\x02\x00"
OK_END = b"\xfe\x00\x00\x02\x00\x00\x00"


def text(row: bytes) -> bytes:
    """With its length before it."""
    if len(row) < 0xFB:
        return bytes([len(row)]) + row
    for first, width in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if len(row) < 1 << 8 * width:
            return bytes([first]) + len(row).to_bytes(width, "little") + row
    raise AssertionError


def packets(*payloads: bytes, number: int = 0) -> bytes:
    """As a server writes them: long ones in several."""
    parts = []
    for payload in payloads:
        for start in range(0, len(payload) + 1, SPLIT):
            part = payload[start : start + SPLIT]
            parts.append(len(part).to_bytes(3, "little") + bytes([number]) + part)
            number = (number + 1) % 256
    return b"".join(parts)


def result(*rows: bytes | None, end: bytes = EOF, number: int = 0) -> bytes:
    payloads = [b"\xfb" if row is None else text(row) for row in rows]
    return packets(*payloads, end, number=number)


def read(data: bytes, *cuts: int, number: int = 0) -> tuple[list[bytes | None], bool]:
    """The rows, and whether the result was told to end."""
    rows: list[bytes | None] = []
    reader = RowPackets(number)
    places = [0, *sorted(cuts), len(data)]
    for start, stop in itertools.pairwise(places):
        reader.feed(data[start:stop], rows)
    return rows, reader.ended


ROWS = st.lists(
    st.none() | st.binary(max_size=8) | st.integers(240, 260).map(lambda size: b"x" * size),
    max_size=20,
)


@hypothesis.given(rows=ROWS, data=st.data(), number=st.integers(0, 255))
def test_any_split_gives_the_same_rows(
    rows: list[bytes | None], data: st.DataObject, number: int
) -> None:
    whole = result(*rows, number=number)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=30))
    assert read(whole, *cuts, number=number) == (rows, True)


@hypothesis.given(rows=ROWS.filter(bool), data=st.data())
def test_every_byte_alone_gives_the_same_rows(
    rows: list[bytes | None], data: st.DataObject
) -> None:
    whole = result(*rows)
    assert read(whole, *range(1, len(whole))) == (rows, True)


@hypothesis.given(rows=ROWS, data=st.data())
def test_what_is_cut_off_never_ends(rows: list[bytes | None], data: st.DataObject) -> None:
    whole = result(*rows)
    there = data.draw(st.integers(0, len(whole) - 1))
    found, ended = read(whole[:there])
    assert not ended
    assert found == rows[: len(found)]


@hypothesis.given(rows=ROWS.filter(bool), data=st.data())
def test_a_lost_packet_is_never_a_shorter_result(
    rows: list[bytes | None], data: st.DataObject
) -> None:
    lost = data.draw(st.integers(0, len(rows) - 1))
    payloads = [b"\xfb" if row is None else text(row) for row in rows]
    before = packets(*payloads[:lost])
    after = packets(*payloads[lost + 1 :], EOF, number=lost + 1)
    with pytest.raises(MalformedPacket):
        read(before + after)


@hypothesis.given(rows=ROWS.filter(bool), data=st.data())
def test_a_changed_length_is_never_another_row(
    rows: list[bytes | None], data: st.DataObject
) -> None:
    """Of a packet, or of the text in it; but nothing else tells NULL from an empty text."""
    whole = bytearray(result(*rows))
    at = data.draw(st.sampled_from([0, 1, 2, 4]))
    change = data.draw(st.integers(1, 255))
    hypothesis.assume(at != 4 or {whole[at], whole[at] ^ change} != {0x00, 0xFB})
    whole[at] ^= change
    reader, found = RowPackets(0), list[bytes | None]()
    try:
        reader.feed(bytes(whole), found)
    except (MalformedPacket, OperationalError):
        return
    assert not reader.ended or found == rows


@pytest.mark.parametrize(
    "size", [0xFA, 0xFB, 0xFFFF, 0x10000, SPLIT - 5, SPLIT - 4, SPLIT - 3, SPLIT, 2 * SPLIT - 9]
)
def test_long_rows_come_whole_and_so_do_those_behind(size: int) -> None:
    row = b"{" * size
    whole = result(b"before", row, b"behind")
    cuts = range(100_000, len(whole), 100_000)
    assert read(whole, *cuts) == ([b"before", row, b"behind"], True)


def test_row_that_fills_its_packets_is_closed_by_an_empty_one() -> None:
    row = b"x" * (SPLIT - 4)
    assert len(text(row)) == SPLIT
    assert read(result(row)) == ([row], True)
    assert read(packets(text(row))[:-4]) == ([], False)


def test_part_of_a_long_row_is_data_whatever_it_begins_with() -> None:
    for first in (EOF, b"\xff\x51\x05#70100", b"\xfb"):
        row = b"x" * (SPLIT - 4) + first
        assert read(result(row, b"next")) == ([row, b"next"], True)


@pytest.mark.parametrize("end", [EOF, OK_END])
def test_both_forms_of_the_end(end: bytes) -> None:
    assert read(result(b"a", end=end)) == ([b"a"], True)


def test_error_amid_the_rows_is_the_servers() -> None:
    rows: list[bytes | None] = []
    data = packets(text(b"a"), text(b"b"), b"\xff\xb1\x07#70100canary")
    with pytest.raises(OperationalError) as caught:
        RowPackets(0).feed(data, rows)
    assert caught.value.args == (1969, "")
    assert rows == [b"a", b"b"]


def test_server_that_shuts_down_counts_from_0_again() -> None:
    data = packets(text(b"a"), number=7) + packets(b"\xff\x1d\x04#08S01bye")
    with pytest.raises(OperationalError) as caught:
        RowPackets(7).feed(data, [])
    assert caught.value.args == (1053, "")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"\xff\x51",
        b"\xfe",
        b"\xfe\x00\x00\x02",
        b"\xfe\x00\x00\x0a\x00",
        b"\xfb\x00",
        b"\x05four",
        b"\x03four",
        b"\xfc\x05",
        b"\xfc\x05\x00four",
        b"\xfc\x03\x00four",
        b"\xfd\x05\x00\x00four",
        b"\xfe\x05\x00\x00\x00\x00\x00\x00\x00four",
    ],
)
def test_malformed_packets_are_refused(payload: bytes) -> None:
    rows: list[bytes | None] = []
    with pytest.raises(MalformedPacket) as caught:
        RowPackets(0).feed(packets(text(b"a"), payload, EOF), rows)
    assert rows == [b"a"]
    failure = statement_failure(Stage.ROWS, caught.value, table="t")
    assert (failure.stage, failure.reason, failure.table) == ("rows", "protocol", "t")


def test_short_packets_wait_for_nothing_behind_them() -> None:
    assert read(packets(b"\xfb")) == ([None], False)
    assert read(packets(text(b""))) == ([b""], False)
    with pytest.raises(MalformedPacket):
        read(packets(b"\xfe"))


def test_long_row_with_a_wrong_length_is_refused() -> None:
    row = text(b"x" * SPLIT)
    with pytest.raises(MalformedPacket):
        read(packets(row + b"more", EOF))


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(MalformedPacket):
        read(result(b"a") + b"\x00")


def test_long_rows_cost_no_more_than_their_size() -> None:
    """A row is put together once, not anew with each piece that comes."""
    reader = RowPackets(0)
    whole = result(b"x" * 1_000_000)
    for start in range(0, 900_000, 1_000):
        reader.feed(whole[start : start + 1_000], [])
    assert len(reader._pieces) == 900
