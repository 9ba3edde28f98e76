"""BSON scalars as JSON texts, one at a time (spec datasources 10.6).

Where the table says "string" the quotes belong to the text.
"""

import struct
from collections.abc import Sequence
from datetime import date
from functools import cache, lru_cache
from typing import Final

from fetcher_engine import encode_text

DOUBLE: Final = struct.Struct("<d")
INT32: Final = struct.Struct("<i")
INT64: Final = struct.Struct("<q")
DECIMAL128: Final = struct.Struct("<QQ")
TIMESTAMP: Final = struct.Struct("<II")

_DAY_MS: Final = 86_400_000
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_FIRST_MS: Final = (1 - _EPOCH_DAY) * _DAY_MS
_END_MS: Final = (date.max.toordinal() + 1 - _EPOCH_DAY) * _DAY_MS
_FRACTIONS: Final = ["", *(f".{ms:03}".rstrip("0") for ms in range(1, 1000))]

_COEFFICIENT_BITS: Final = 0x1FFFFFFFFFFFF
_SIGN: Final = 1 << 63
_BIAS: Final = 6176
_MAX_COEFFICIENT: Final = 10**34 - 1


@lru_cache(maxsize=4096)
def _day(number: int) -> str:
    return date.fromordinal(number + _EPOCH_DAY).isoformat()


@lru_cache(maxsize=8192)
def _minute(number: int) -> str:
    """The text of a moment up to its minute; ``number`` counts from 1970."""
    day, minute = divmod(number, 1440)
    return f'"{_day(day)}T{minute // 60:02}:{minute % 60:02}:'


@cache
def _ends_of_minutes() -> list[str]:
    """The rest of the text for every millisecond of a minute."""
    return [f'{second:02}{fraction}Z"' for second in range(60) for fraction in _FRACTIONS]


def date_text(ms: int) -> str:
    """RFC 3339 in UTC; outside of the years 1 to 9999 its milliseconds, as a string."""
    if not _FIRST_MS <= ms < _END_MS:
        return f'"{ms}"'
    return _minute(ms // 60_000) + _ends_of_minutes()[ms % 60_000]


def date_texts(values: Sequence[int]) -> list[str]:
    """:func:`date_text` of each."""
    if not _FIRST_MS <= min(values) <= max(values) < _END_MS:
        return list(map(date_text, values))
    ends = _ends_of_minutes()
    return [_minute(ms // 60_000) + ends[ms % 60_000] for ms in values]


def decimal_text(low: int, high: int) -> str:
    """Decimal128's own text, every digit and the scale kept, without quotes.

    By the rules of the decimal specification (to-scientific-string), as MongoDB shows it.
    """
    sign = "-" if high & _SIGN else ""
    if (high >> 61) & 3 == 3:
        kind = (high >> 58) & 31
        if kind == 30:
            return f"{sign}Infinity"
        if kind == 31:
            return "NaN"
        # a coefficient that is too large counts as zero
        exponent, coefficient = ((high >> 47) & 0x3FFF) - _BIAS, 0
    else:
        exponent = ((high >> 49) & 0x3FFF) - _BIAS
        coefficient = (high & _COEFFICIENT_BITS) << 64 | low
        if coefficient > _MAX_COEFFICIENT:
            coefficient = 0
    digits = str(coefficient)
    point = len(digits) + exponent
    if exponent > 0 or point < -5:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}E{point - 1:+d}"
    if exponent == 0:
        return sign + digits
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def binary_text(data: bytes) -> str:
    """16 bytes of whatever subtype are a UUID, in the order as stored; others lower-case hex."""
    text = data.hex()
    if len(data) == 16:
        return f'"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"'
    return f'"{text}"'


def regex_text(pattern: str, options: str) -> str:
    return f'{{"Pattern":{encode_text(pattern)},"Options":{encode_text(options)}}}'


def timestamp_text(increment: int, seconds: int) -> str:
    return f'{{"T":{seconds},"I":{increment}}}'
