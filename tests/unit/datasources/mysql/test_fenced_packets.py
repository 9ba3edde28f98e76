"""Rows cut at their fences: the same rows as packet by packet, whatever stands in them."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st
from pymysql.err import OperationalError  # type: ignore[import-untyped] # its stubs are no dependency

from fetcher.datasources.mysql.fenced_packets import FENCE, CutRows, FencedPackets
from fetcher.datasources.mysql.packets import MalformedPacket, RowPackets
from tests.unit.datasources.mysql.test_packets import SPLIT, packets, result, text

CELLS = st.sampled_from([b"", b"1", b"x" * 100, b"y" * 240, b"z" * 300, b"w" * 70_000])
EVIL = st.sampled_from([FENCE, FENCE[:3], FENCE[1:], b"\xff", b"\x00", text(b"{}"), b"\xfc"])


def row(*parts: bytes) -> bytes:
    return FENCE.join([b"", *parts, b""])


def read(
    data: bytes, *cuts: int, fences: int, number: int = 0
) -> tuple[list[bytes | None], int, bool]:
    """The rows with their fences, how many of them were cut at these, and whether all have come."""
    rows: list[bytes | None] = []
    cut_at_fences = 0
    reader = FencedPackets(number, fences)
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(data)]):
        some = reader.cut(data[start:stop])
        put_together = _rows(some, fences)
        assert some.count == len(put_together)
        rows += put_together
        cut_at_fences += some.count - len(some.whole)
    return rows, cut_at_fences, reader.ended


def _rows(some: CutRows, fences: int) -> list[bytes | None]:
    starts = range(0, len(some.parts), fences)
    assert all(some.parts[start] == b"," for start in starts)
    return [*(row(*some.parts[start + 1 : start + fences]) for start in starts), *some.whole]


@hypothesis.given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=20),
    data=st.data(),
    number=st.integers(0, 255),
)
def test_any_split_gives_the_same_rows(
    rows: list[tuple[bytes, ...]], data: st.DataObject, number: int
) -> None:
    fenced: list[bytes | None] = [row(*each) for each in rows]
    whole = result(*fenced, number=number)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=10))
    found = read(whole, *cuts, fences=4, number=number)
    assert found == (fenced, len(fenced), True)


@pytest.mark.parametrize("size", [0, 100, 242, 243, 246, 300, 65_000, 65_524, 65_530, 70_000])
def test_headers_of_every_length_that_fits_a_packet(size: int) -> None:
    fenced: list[bytes | None] = [row(b"x" * (size + more)) for more in (0, 1, 0, 2, 3) * 100]
    assert read(result(*fenced), fences=2) == (fenced, 500, True)


@hypothesis.given(
    rows=st.lists(st.lists(CELLS | EVIL, max_size=8).map(b"".join), min_size=1, max_size=8),
    fences=st.sampled_from([2, 4]),
    forged=st.integers(0, 255),
    data=st.data(),
)
def test_rows_are_those_of_their_packets_whatever_is_in_them(
    rows: list[bytes], fences: int, forged: int, data: st.DataObject
) -> None:
    """Fences too, and headers that fit behind them."""
    inner = row(*[b"x"] * (fences - 1))
    forgery = b"y" + FENCE + packets(text(inner), number=forged)[:5] + inner
    at = data.draw(st.integers(0, len(rows) - 1))
    rows[at] += forgery if data.draw(st.booleans()) else b""
    fenced: list[bytes | None] = [row(each, *[b"z"] * (fences - 2)) for each in rows]
    whole = result(*fenced)
    expected: list[bytes | None] = []
    RowPackets(0).feed(whole, expected)
    assert read(whole, fences=fences)[0] == expected == fenced


def test_forged_row_in_a_cell_is_part_of_the_cell() -> None:
    """It has the next number, and takes the next packet's place and length."""
    second = row(b'{"j":', b"2", b"}")
    forged = b"1" + FENCE + b"}" + FENCE + packets(text(second), number=1)[:5] + second[:-4]
    fenced: list[bytes | None] = [row(b'{"j":', forged, b"}"), second]
    assert read(result(*fenced), fences=4) == (fenced, 0, True)


@hypothesis.given(
    rows=st.lists(CELLS.filter(lambda cell: len(cell) < 1000), min_size=1, max_size=20),
    data=st.data(),
)
def test_a_changed_or_lost_byte_is_never_another_row(
    rows: list[bytes], data: st.DataObject
) -> None:
    fenced: list[bytes | None] = [row(each) for each in rows]
    whole = bytearray(result(*fenced))
    begins = list(itertools.accumulate((len(packets(text(row(each)))) for each in rows), initial=0))
    at = data.draw(st.sampled_from(begins)) + data.draw(st.sampled_from([0, 1, 2, 3]))
    if data.draw(st.booleans()):
        whole[at] ^= data.draw(st.integers(1, 255))
    else:
        del whole[at]
    try:
        found, _, ended = read(bytes(whole), fences=2)
    except (MalformedPacket, OperationalError):
        return
    assert not ended
    assert found == fenced[: len(found)]


def test_rows_without_fences_come_whole_in_their_order() -> None:
    before: list[bytes | None] = [row(b"1"), row(b"2")]
    marker = b"\x01!5,2000,30"
    assert read(result(*before, marker, None), fences=2) == ([*before, marker, None], 2, True)
    data = result(marker, *before)
    assert read(data, fences=2) == ([marker, *before], 0, True)
    cut = len(packets(text(marker)))
    assert read(data, cut, fences=2) == ([marker, *before], 2, True)


def test_long_rows_come_whole() -> None:
    fenced: list[bytes | None] = [row(b"a"), row(b"x" * SPLIT), row(b"b")]
    whole = result(*fenced)
    cuts = range(0, len(whole), 500_000)
    assert read(whole, *cuts, fences=2) == (fenced, 1, True)


def test_error_amid_the_rows_is_the_servers() -> None:
    data = packets(text(row(b"a")), text(row(b"b")), b"\xff\xb1\x07#70100canary")
    with pytest.raises(OperationalError) as caught:
        FencedPackets(0, 2).cut(data)
    assert caught.value.args == (1969, "")
