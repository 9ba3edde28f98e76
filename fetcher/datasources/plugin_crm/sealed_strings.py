"""Strings at some paths of a raw BSON document, replaced by others.

What a document holds otherwise is copied as it is, byte by byte: no value is decoded and encoded
again, so none can change on the way.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from fetcher.datasources.mongodb.bson_walk import MalformedBson
from fetcher.datasources.mongodb.types import INT32

Replace: TypeAlias = Callable[[str, bytes], bytes]
"""From a path and the string that lies there, which is not empty, to what it becomes."""

_PACK: Final = INT32.pack
_UNPACK: Final = INT32.unpack_from

_STRING: Final = 0x02
_DOCUMENT: Final = 0x03
_REGEX: Final = 0x0B
_DB_POINTER: Final = 0x0C

_FIXED: Final[Mapping[int, int]] = {
    **dict.fromkeys((0x06, 0x0A, 0x7F, 0xFF), 0),
    **dict.fromkeys((0x01, 0x09, 0x11, 0x12), 8),
    0x07: 12,
    0x08: 1,
    0x10: 4,
    0x13: 16,
}
"""Sizes of the types that have one; see bsonspec.org."""

_BEFORE_CONTENT: Final[Mapping[int, int]] = {
    **dict.fromkeys((0x02, 0x0D, 0x0E), 4),
    **dict.fromkeys((0x03, 0x04, 0x0F), 0),
    0x05: 5,
    _DB_POINTER: 16,
}
"""Of the types that begin with a size: what it does not count."""


class PathTree:
    """Paths by their first names."""

    __slots__ = ("below", "leaves")

    def __init__(self, paths: Iterable[str], *, parent: str = "") -> None:
        self.leaves: dict[bytes, str] = {}
        self.below: dict[bytes, PathTree] = {}
        inner: dict[str, list[str]] = {}
        for path in paths:
            name, dot, rest = path.partition(".")
            if dot:
                inner.setdefault(name, []).append(rest)
            else:
                self.leaves[name.encode()] = f"{parent}{name}"
        for name, rests in inner.items():
            self.below[name.encode()] = PathTree(rests, parent=f"{parent}{name}.")


def with_strings(document: bytes, tree: PathTree, replace: Replace) -> bytes:
    """The document with its non-empty strings at the tree's paths replaced.

    A value of another type stays, and so does all inside of an array. Raise MalformedBson for what
    is no document, and whatever ``replace`` raises.
    """
    try:
        return _replaced(document, 0, tree, replace) or document
    except (IndexError, KeyError, ValueError):
        pass
    raise MalformedBson


def _replaced(data: bytes, start: int, tree: PathTree, replace: Replace) -> bytes | None:
    """The document that begins at ``start``; None where it stays as it is."""
    last = start + _size(data, start) - 1
    if not start + 4 <= last < len(data) or data[last]:
        raise MalformedBson
    pieces: list[bytes] = []
    copied = at = start + 4
    leaves, below, find = tree.leaves, tree.below, data.index
    while at < last:
        kind = data[at]
        stop = find(0, at + 1, last)
        name = data[at + 1 : stop]
        value = stop + 1
        at = _end_of(data, kind, value, last)
        new: bytes | None = None
        if kind == _STRING:
            if name in leaves:
                new = _string(data[value + 4 : at - 1], leaves[name], replace)
        elif kind == _DOCUMENT and name in below:
            new = _replaced(data, value, below[name], replace)
        if new is not None:
            pieces += (data[copied:value], new)
            copied = at
    if not pieces:
        return None
    body = b"".join((*pieces, data[copied : last + 1]))
    return _PACK(len(body) + 4) + body


def _string(text: bytes, path: str, replace: Replace) -> bytes | None:
    if not text:
        return None
    new = replace(path, text)
    return _PACK(len(new) + 1) + new + b"\0"


def _end_of(data: bytes, kind: int, at: int, last: int) -> int:
    """Where a value ends that begins at ``at``: at the latest where its document does."""
    size = _FIXED.get(kind)
    if size is not None:
        end = at + size
    elif kind == _REGEX:
        end = data.index(0, data.index(0, at, last) + 1, last) + 1
    else:
        end = at + _BEFORE_CONTENT[kind] + _size(data, at)
    if at <= end <= last:
        return end
    raise MalformedBson


def _size(data: bytes, at: int) -> int:
    try:
        return int(_UNPACK(data, at)[0])
    except struct.error:
        pass
    raise MalformedBson
