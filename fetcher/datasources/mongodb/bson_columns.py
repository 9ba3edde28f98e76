"""Many values of one BSON type at once: a column of raw bytes to a column of JSON texts.

Each column is a few loops in C. The texts are those of :mod:`types`, which a test holds them to.
"""

import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Final, TypeAlias

import orjson

from fetcher.datasources.mongodb.bson_walk import LARGEST_SAFE, BsonWalker
from fetcher.datasources.mongodb.types import binary_text, date_texts
from fetcher_engine import encode_text, encode_value

Column: TypeAlias = Sequence[bytes]
Converter: TypeAlias = Callable[[Column], list[str]]

_TRUTHS: Final = {b"\0": "false", b"\1": "true"}
_CONTROLS: Final = bytes(range(1, 32))
_EXPONENT_SHIFT: Final = 49
_ZERO_EXPONENT: Final = 6176


class NotAsLearned(Exception):
    """A value is not what its bytes looked like: the walker reads it."""


def strings(lengths: Column, contents: Column) -> list[str]:
    """Strings, by their length prefixes and their bytes with the first NUL, as JSON strings.

    Raise NotAsLearned for a string with a NUL inside, and for one that is not UTF-8.
    """
    if struct.unpack(f"<{len(lengths)}i", b"".join(lengths)) != tuple(map(len, contents)):
        raise NotAsLearned
    joined = b"".join(contents)[:-1]
    try:
        text = joined.decode()
    except UnicodeDecodeError:
        text = None
    if text is None:
        raise NotAsLearned
    if b'"' in joined or b"\\" in joined or len(joined.translate(None, _CONTROLS)) < len(joined):
        return list(map(encode_text, text.split("\0")))
    return ('"' + text.replace("\0", '"\0"') + '"').split("\0")


def _integers(values: Sequence[int]) -> list[str]:
    return orjson.dumps(values)[1:-1].decode().split(",")


def int32s(column: Column) -> list[str]:
    return _integers(struct.unpack(f"<{len(column)}i", b"".join(column)))


def doubles(column: Column) -> list[str]:
    """orjson has the Engine's digits but for the ``.0`` of whole numbers, for exponents, and for
    what is no number (decision 019)."""
    values = struct.unpack(f"<{len(column)}d", b"".join(column))
    written = orjson.dumps(values)[1:-1]
    if b"e" in written or b"n" in written:
        return list(map(encode_value, values))
    return written.replace(b".0,", b",").decode().removesuffix(".0").split(",")


def dates(column: Column) -> list[str]:
    return date_texts(struct.unpack(f"<{len(column)}q", b"".join(column)))


def object_ids(column: Column) -> list[str]:
    separated = b"".join(column).hex(",", 12).replace(",", '","')
    return f'"{separated}"'.split(",")


def booleans(column: Column) -> list[str]:
    return list(map(_TRUTHS.__getitem__, column))


def binaries(column: Column) -> list[str]:
    """They are all of one size."""
    size = len(column[0])
    if size != 16:
        return list(map(binary_text, column))
    texts = b"".join(column).hex(",", size).split(",")
    return [f'"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}"' for t in texts]


class Converters:
    """The converters that depend on one request's options."""

    def __init__(self, walker: BsonWalker) -> None:
        self._walker = walker
        self._forms = {
            (_ZERO_EXPONENT - scale) << _EXPONENT_SHIFT: (walker.decimal_template(scale), 10**scale)
            for scale in range(1, 7)
        }
        """By a decimal's upper half: how what is below 2**64 with so many places is written."""

    def int64s(self, column: Column) -> list[str]:
        values = struct.unpack(f"<{len(column)}q", b"".join(column))
        if self._walker.writes_bigint_as_text and (
            max(values) > LARGEST_SAFE or min(values) < -LARGEST_SAFE
        ):
            return list(map(self._walker.int64_text, values))
        return _integers(values)

    def decimals(self, column: Column) -> list[str]:
        """Amounts mostly have few digits behind the point, and are not negative."""
        halves = struct.unpack(f"<{2 * len(column)}Q", b"".join(column))
        low, high = halves[::2], halves[1::2]
        forms = self._forms
        if not forms.keys() >= set(high):
            return list(map(self._walker.decimal_cell, low, high))
        if high.count(high[0]) == len(high):
            template, power = forms[high[0]]
            return list(map(template.__mod__, map(divmod, low, repeat(power))))
        return [
            template % divmod(digits, power)
            for digits, (template, power) in zip(low, map(forms.__getitem__, high), strict=True)
        ]
