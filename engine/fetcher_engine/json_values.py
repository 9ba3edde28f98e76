"""One value as compact JSON (spec 11.3 and 19.6, as amended by the design, sections 5 and 6).

No whitespace, no HTML escaping, nested keys as stored.
"""

import base64
import json.encoder
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from fetcher_engine.timestamps import rfc3339

MAX_DEPTH = 200
"""Deeper data counts as cyclic.

Called from hundreds of frames deep, Python's own limit comes first: a RecursionError, which the
row encoder reports like any other value that it cannot write.
"""

_MAX_FIXED_EXPONENT = 10_000
"""A decimal beyond it is written with its exponent: all its zeros would fill the memory."""

encode_text: Callable[[str], str] = json.encoder.encode_basestring
"""A JSON string: quotes, backslashes and control characters escaped, all else as it is."""


class NotEncodable(Exception):
    """A value that has no JSON form. It says nothing about the value."""


def encode_value(value: object, depth: int = 0) -> str:
    """The value as compact JSON; raise NotEncodable for what has no form here.

    Deeply nested values may raise RecursionError where the stack is deep already.
    A lone surrogate stays in the text: it fails when the text becomes UTF-8.
    """
    encode = BY_TYPE.get(type(value))
    return encode(value) if encode is not None else encode_other(value, depth)


def encode_other(value: object, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        raise NotEncodable
    if isinstance(value, list | tuple):
        return f"[{','.join([encode_value(item, depth + 1) for item in value])}]"
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 - the quick question first
        members = [f"{_key(k)}:{encode_value(v, depth + 1)}" for k, v in value.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(value, Enum) and isinstance(value, int | str):
        return encode_value(value.value, depth)
    for kind in _SUBCLASSED:
        if isinstance(value, kind):
            return BY_TYPE[kind](value)
    raise NotEncodable


def _key(key: object) -> str:
    if isinstance(key, str):
        return encode_text(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return f'"{_encode_int(key)}"'
    raise NotEncodable


def _encode_int(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:
        # Python's guard against quadratic conversions (4300 digits); Decimal's has no such limit.
        # Integers of any size are asked for: one of 200 000 digits takes most of a second
        return str(Decimal(value))


def _encode_float(value: float) -> str:
    """Shortest round-trip digits; plain from 1e-6 to 1e21, else with an unpadded exponent."""
    text = float.__repr__(value)
    if "n" in text:
        return _NOT_FINITE[text]
    if text.endswith(".0"):
        return text[:-2]
    if "e" not in text:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent):+d}"


_NOT_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def _encode_decimal(value: Decimal) -> str:
    """With its own scale, as a string: a JSON reader's double would change it."""
    plain = -_MAX_FIXED_EXPONENT <= value.adjusted() <= _MAX_FIXED_EXPONENT
    text = format(value, "f") if plain else str(value)
    return '"NaN"' if "N" in text else f'"{text}"'


def _encode_datetime(value: datetime) -> str:
    return f'"{rfc3339(value)}"'


def _encode_date(value: date) -> str:
    return f'"{value.isoformat()}T00:00:00Z"'


def _encode_bytes(value: bytes | bytearray | memoryview) -> str:
    return f'"{base64.b64encode(value).decode("ascii")}"'


BY_TYPE: dict[type, Callable[[Any], str]] = {
    str: encode_text,
    bool: {True: "true", False: "false"}.__getitem__,
    int: _encode_int,
    float: _encode_float,
    type(None): lambda _: "null",
    Decimal: _encode_decimal,
    datetime: _encode_datetime,
    date: _encode_date,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    memoryview: _encode_bytes,
    UUID: lambda value: f'"{value}"',
}

_SUBCLASSED: tuple[type, ...] = (str, int, float, Decimal, datetime, date, bytes, bytearray, UUID)
"""Types whose subclasses are written like them; datetime stands before date, its parent."""
