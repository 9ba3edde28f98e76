"""Rows cut out of the bytes of a result, however the network splits them.

A row of an extraction is a packet with one text: ``length[3] number[1] text``, where the text has
its own length before it. Nothing is made of it but that text. Every length and every packet's
number is checked, so that what is lost or out of step on the way fails, and is never a shorter
result.
"""

import struct
from typing import Final

from pymysql.err import OperationalError  # type: ignore[import-untyped] # stubs: no dependency

_SPLIT: Final = 0xFFFFFF
"""A packet of this length goes on in the next one."""

_NULL, _SHORT, _END, _ERROR = 0xFB, 0xFC, 0xFE, 0xFF
_LENGTH_BYTES: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""How many bytes a text's length has after the byte that says so; a small one is that byte."""

NUMBERS: Final = 256
"""Of packets: they begin anew then."""

_SMALLEST_ERROR: Final = 3
_SMALLEST_END, _SMALLEST_LONG_ROW = 5, 9
"""A packet that begins with ``0xFE`` is the end, or a row of 16 MiB and more."""
_MORE_RESULTS: Final = 0x0008

_BEGINNING: Final = struct.Struct("<IBH")
"""The packet's length and number, the first byte of its text and two more."""
_HEADER_BYTES: Final = 4
_PADDING: Final = bytes(_BEGINNING.size - _HEADER_BYTES)


class MalformedPacket(Exception):
    """What came is not what the protocol has in that place. It says nothing of the content."""


class RowPackets:
    """One result's rows. To be fed until :attr:`ended`, which is the protocol's end alone."""

    def __init__(self, number: int) -> None:
        """``number`` is that of the first row's packet."""
        self._number = number
        self._pieces: list[bytes] = []
        self._missing = _HEADER_BYTES
        self._whole: bytearray | None = None
        self.ended = False

    @property
    def _is_within_row(self) -> bool:
        """Whether a row has begun whose packets have not all come."""
        return self._whole is not None

    def feed(self, received: bytes, rows: list[bytes | None]) -> None:
        """Append the rows that are whole by now; None is a row that is NULL.

        Raise the driver's error for one that the server sends amid the rows, else MalformedPacket.
        """
        self._pieces.append(received)
        self._missing -= len(received)
        if self._missing > 0:
            return
        buffer = b"".join(self._pieces)
        position = self._cut(buffer, rows)
        rest = buffer[position:]
        if self.ended and rest:
            raise MalformedPacket
        self._pieces = [rest] if rest else []
        expected = _HEADER_BYTES
        if len(rest) >= _HEADER_BYTES:
            expected += int.from_bytes(rest[:3], "little")
        self._missing = expected - len(rest)

    def _cut(self, buffer: bytes, rows: list[bytes | None]) -> int:
        """Where the first packet begins that is not whole."""
        beginning, append = _BEGINNING.unpack_from, rows.append
        position, number = 0, self._number
        there = len(buffer)
        # of a packet of few bytes, what stands behind it is looked at too, and never fits
        padded = buffer + _PADDING
        while position + _HEADER_BYTES <= there and not self.ended:
            header, first, size = beginning(padded, position)
            length = header & _SPLIT
            following = position + _HEADER_BYTES + length
            if following > there:
                break
            if header >> 24 != number:
                raise self._out_of_step(header, buffer[position + _HEADER_BYTES : following])
            number = (number + 1) % NUMBERS
            if self._whole is not None or length == _SPLIT:
                self._gather(buffer[position + _HEADER_BYTES : following], rows)
            elif first == _SHORT and size + 3 == length:
                append(buffer[position + 7 : following])
            elif first < _NULL and first + 1 == length:
                append(buffer[position + 5 : following])
            else:
                self._take(buffer[position + _HEADER_BYTES : following], rows)
            position = following
        self._number = number
        return position

    def _take(self, packet: bytes, rows: list[bytes | None]) -> None:
        """What is no row of the usual lengths."""
        first = packet[0] if packet else _ERROR
        if first == _ERROR:
            raise _error(packet)
        if first == _END and len(packet) < _SMALLEST_LONG_ROW:
            if len(packet) < _SMALLEST_END or packet[3] & _MORE_RESULTS:
                raise MalformedPacket
            self.ended = True
        elif packet == bytes([_NULL]):
            rows.append(None)
        else:
            rows.append(_text(packet))

    def _gather(self, part: bytes, rows: list[bytes | None]) -> None:
        """A row that comes in several packets: the last is shorter, perhaps empty."""
        if self._whole is None:
            self._whole = bytearray()
        self._whole += part
        if len(part) < _SPLIT:
            whole, self._whole = bytes(self._whole), None
            rows.append(_text(whole))

    def _out_of_step(self, header: int, packet: bytes) -> Exception:
        """A server that shuts down, or is told to end the session, counts from 0 again."""
        if header >> 24 == 0 and self._whole is None and packet[:1] == bytes([_ERROR]):
            return _error(packet)
        return MalformedPacket()


def header(size: int, number: int) -> bytes:
    """What stands before a text of this size; nothing, for one that fills a packet."""
    if size < _NULL:
        text = bytes([size])
    else:
        first, width = next(each for each in _LENGTH_BYTES.items() if size < 1 << 8 * each[1])
        text = bytes([first]) + size.to_bytes(width, "little")
    length = len(text) + size
    if length >= _SPLIT:
        return b""
    return length.to_bytes(3, "little") + bytes([number % NUMBERS]) + text


def _text(packet: bytes) -> bytes:
    width = _LENGTH_BYTES.get(packet[0], 0)
    size = int.from_bytes(packet[1 : 1 + width], "little") if width else packet[0]
    if packet[0] in (_NULL, _ERROR) or len(packet) != 1 + width + size:
        raise MalformedPacket
    return packet[1 + width :]


def _error(packet: bytes) -> Exception:
    """As the driver has it, but for the server's text."""
    if len(packet) < _SMALLEST_ERROR:
        return MalformedPacket()
    failure: Exception = OperationalError(int.from_bytes(packet[1:3], "little"), "")
    return failure
