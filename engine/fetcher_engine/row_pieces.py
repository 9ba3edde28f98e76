"""Encoded rows on their way to the result: one after another, or joined by commas already."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

_ROWS = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds where objects end. Numbers stay texts: their size costs nothing, and has no limit."""


class MalformedBatch(Exception):
    """A connector delivered bytes that are not the rows it says they are."""


class RowPiece(Protocol):
    """Rows of one table as compact JSON objects, at least one."""

    @property
    def row_count(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """The size of the rows with commas between them."""
        ...

    def joined(self) -> bytes:
        """The rows with commas between them, as a document has them."""
        ...

    def apart(self) -> Sequence[bytes]:
        """Each row on its own, without a line break in it; raise MalformedBatch."""
        ...


@dataclass(frozen=True, slots=True)
class SeparateRows:
    """What the Engine's encoder leaves. ``size_bytes`` is the size of the joined rows."""

    objects: Sequence[bytes] = field(repr=False)
    size_bytes: int

    @property
    def row_count(self) -> int:
        return len(self.objects)

    def joined(self) -> bytes:
        return b",".join(self.objects)

    def apart(self) -> Sequence[bytes]:
        return self.objects


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """What a database or a host's encoding rendered; looked into only where lines are asked for."""

    data: bytes = field(repr=False)
    row_count: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def joined(self) -> bytes:
        return self.data

    def apart(self) -> Sequence[bytes]:
        return split_objects(self.data, self.row_count)


def split_objects(data: bytes, count: int) -> list[bytes]:
    """The objects of comma-joined compact JSON; raise MalformedBatch when they are not ``count``.

    Where ``},{`` occurs as often as there are boundaries, each is one, and nothing is parsed. Else
    one of them lies within a string or an array, and Python's JSON scanner tells, in one pass.
    """
    if not (data.startswith(b"{") and data.endswith(b"}")) or b"\n" in data:
        raise MalformedBatch
    if data.count(b"},{") == count - 1:
        inner = data[1:-1].split(b"},{")
        return [b"{%b}" % each for each in inner]
    try:
        objects = _scan_objects(data.decode(), count)
    except (ValueError, RecursionError):
        # not raised from here: a decoder's error holds the whole text
        objects = None
    if objects is None:
        raise MalformedBatch
    return objects


def _scan_objects(text: str, count: int) -> list[bytes] | None:
    """None where these are not ``count`` objects; raise ValueError where it is no JSON."""
    objects: list[bytes] = []
    end = -1
    while len(objects) < count and text.startswith("{", start := end + 1):
        _, end = _ROWS.raw_decode(text, start)
        objects.append(text[start:end].encode())
        if not text.startswith(",", end):
            break
    return objects if len(objects) == count and end == len(text) else None
