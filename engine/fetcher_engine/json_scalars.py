"""Columns of one scalar type as compact JSON, each value as :func:`encode_value` writes it."""

from binascii import b2a_base64
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from fetcher_engine.json_values import BY_TYPE, encode_text

Parts: TypeAlias = list[str | Sequence[str]]
"""What the texts of some values are made of, in order: a text that all share, or a text each."""

_ESCAPED = bytes(range(0x20)) + b'"\\'
"""What no JSON string has as it is. No byte of another character in UTF-8 is one of these."""


def _texts(values: Sequence[str]) -> Parts:
    # to look through all at once is quicker than a call for each
    joined = "".join(values).encode()
    if len(joined.translate(None, _ESCAPED)) < len(joined):
        return [list(map(encode_text, values))]
    return ['"', values, '"']


def _ints(values: Sequence[int]) -> Parts:
    return [[f"{value}" for value in values]]  # quicker than a call of repr()


def _floats(values: Sequence[float]) -> Parts:
    texts = list(map(repr, values))
    joined = f"{','.join(texts)},"
    if "e" in joined or "n" in joined:
        encode = BY_TYPE[float]
        both = zip(texts, values, strict=True)
        texts = [encode(v) if "e" in text or "n" in text else text for text, v in both]
        joined = f"{','.join(texts)},"
    if ".0," in joined:
        texts = joined.replace(".0,", ",").split(",")[:-1]
    return [texts]


def sparse_floats(values: list[Any], absent: object) -> list[str] | None:
    """Floats and nulls, '' for each ``absent``, whose repr() is empty; None where they are others.

    The list is written as one text, in C: its gaps need not be taken out and put in again.
    """
    if not set(map(type, values)) <= {float, type(None), type(absent)}:
        return None
    joined = repr(values)[1:-1].replace("None", "null")
    if "e" in joined or "i" in joined or "a" in joined:  # exponents, inf and nan
        return None
    if ".0" in joined:
        joined = f"{joined},".replace(".0,", ",")[:-1]
    return joined.split(", ")


def _decimals(values: Sequence[Decimal]) -> Parts | None:
    texts = list(map(str, values))
    joined = ",".join(texts)
    return None if "E" in joined or "N" in joined else ['"', texts, '"']


def _datetimes(values: Sequence[datetime]) -> Parts | None:
    zones = set(map(attrgetter("tzinfo"), values))
    if zones == {None}:
        texts = list(map(datetime.isoformat, values))
    elif zones == {UTC}:
        texts = [text[:-6] for text in map(datetime.isoformat, values)]
    else:
        return None
    return ['"', [text.rstrip("0") if len(text) > 19 else text for text in texts], 'Z"']


def _dates(values: Sequence[date]) -> Parts:
    return ['"', list(map(date.isoformat, values)), 'T00:00:00Z"']


def _bytes(values: Sequence[bytes]) -> Parts:
    joined = b",".join(map(partial(b2a_base64, newline=False), values))
    return ['"', joined.decode("ascii").split(","), '"']


BY_COLUMN: dict[type, Callable[[Any], Parts | None]] = {
    str: _texts,
    type(None): lambda _: ["null"],
    int: _ints,
    float: _floats,
    Decimal: _decimals,
    datetime: _datetimes,
    date: _dates,
    bytes: _bytes,
}
"""Kinds whose columns have a quicker way; None where these values have not."""
