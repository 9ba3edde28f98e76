"""Rows that the statement has fenced, cut all at once.

A row is ``header FENCE text FENCE json FENCE text FENCE``, so one split at the fences gives headers
and parts. They count only if the headers are, to the byte, those of packets with texts of just the
sizes of the parts: else, a fence within a value say, packet by packet as :mod:`packets` has it.
"""

from dataclasses import dataclass
from operator import add
from typing import Final

from fetcher.datasources.mysql.packets import NUMBERS, RowPackets, header

FENCE: Final = b"\xff\xfe\xfd\xfc"
"""No text has any of its bytes, no header all of them.

Four are found faster than two. No end of it is a beginning of it: what stands before or behind a
fence never makes it be found elsewhere.
"""

_KEPT_SIZES: Final = 16 * 1024
"""Headers of smaller texts are made once."""
_NUMBERS: Final = bytes(range(NUMBERS))
_COMMA: Final = b","


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRows:
    """Rows that came one after the other, the cut ones first.

    ``parts`` are for each of them a comma and what stood between its fences; ``whole`` are rows as
    they came, fences and all, None for NULL.
    """

    parts: list[bytes]
    whole: list[bytes | None]
    count: int


class FencedPackets(RowPackets):
    """One result's rows, of ``fences`` fences each. To be fed until :attr:`ended`."""

    def __init__(self, number: int, fences: int) -> None:
        super().__init__(number)
        self._fences = fences
        self._headers = _Headers(fences)
        self._parts: list[bytes] = []

    def cut(self, received: bytes) -> CutRows:
        """The rows that are whole by now; raise as :meth:`feed` does."""
        self._parts = []
        rows: list[bytes | None] = []
        self.feed(received, rows)
        count = len(self._parts) // self._fences + len(rows)
        return CutRows(parts=self._parts, whole=rows, count=count)

    def _cut(self, buffer: bytes, rows: list[bytes | None]) -> int:
        if self._is_within_row:
            return super()._cut(buffer, rows)
        parts = buffer.split(FENCE)
        count = (len(parts) - 1) // self._fences
        rest = FENCE.join(parts[count * self._fences :])
        del parts[count * self._fences :]
        if not count or not self._are_rows(parts, count):
            return super()._cut(buffer, rows)
        self._number = (self._number + count) % NUMBERS
        parts[:: self._fences] = [_COMMA] * count
        self._parts = parts
        return len(buffer) - len(rest) + super()._cut(rest, rows)

    def _are_rows(self, parts: list[bytes], count: int) -> bool:
        """The first header is in its place; each that is right puts the next one there too."""
        fences, headers = self._fences, b"".join(parts[:: self._fences])
        sizes = list(map(len, parts[1::fences]))
        for place in range(2, fences):
            sizes = list(map(add, sizes, map(len, parts[place::fences])))
        widths = set(map(len, parts[::fences]))
        if len(widths) > 1:
            each = map(self._headers.numbered, sizes, range(self._number, self._number + count))
            return headers == b"".join(each)
        found = bytearray(headers)
        width = widths.pop() or 1
        numbers = _NUMBERS * (count // NUMBERS + 2)
        if found[3::width] != numbers[self._number : self._number + count]:
            return False
        del found[3::width]
        return found == b"".join(map(self._headers.__getitem__, sizes))


class _Headers(dict[int, bytes]):
    """By what stands between the outer fences: of its packet, without a number."""

    def __init__(self, fences: int) -> None:
        super().__init__()
        self._fence_bytes = fences * len(FENCE)

    def __missing__(self, size: int) -> bytes:
        whole = header(size + self._fence_bytes, 0)
        without = whole[:3] + whole[4:]
        if size < _KEPT_SIZES:
            self[size] = without
        return without

    def numbered(self, size: int, number: int) -> bytes:
        return header(size + self._fence_bytes, number)
