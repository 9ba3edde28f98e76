"""Values and rows as compact JSON (spec 11.3 and 19.6, as amended by the design, section 5).

No whitespace, no HTML escaping, the names of columns in byte order, nested keys as stored.
"""

import base64
import json.encoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.ports import RowEncoding
from fetcher_engine.timestamps import rfc3339

_MAX_DEPTH = 200
"""Deeper data counts as cyclic, before Python's own recursion limit would."""

_MAX_PIECE_CHARS = 256 * 1024
"""Where a piece of encoded rows is cut: a few milliseconds of work between two checkpoints."""

_MAX_FIXED_EXPONENT = 10_000
"""A decimal beyond it is written with its exponent: all its zeros would fill the memory."""

encode_text: Callable[[str], str] = json.encoder.encode_basestring
"""A JSON string: quotes, backslashes and control characters escaped, all else as it is."""


class NotEncodable(Exception):
    """A value that has no JSON form. It says nothing about the value."""


def encode_value(value: object, depth: int = 0) -> str:
    """The value as compact JSON; raise NotEncodable for what has no form here.

    A lone surrogate stays in the text: it fails when the text becomes UTF-8.
    """
    encode = _BY_TYPE.get(type(value))
    return encode(value) if encode is not None else _encode_other(value, depth)


def _encode_other(value: object, depth: int = 0) -> str:
    if depth > _MAX_DEPTH:
        raise NotEncodable
    if isinstance(value, Mapping):
        members = [f"{_key(k)}:{encode_value(v, depth + 1)}" for k, v in value.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join([encode_value(item, depth + 1) for item in value])}]"
    if isinstance(value, Enum) and isinstance(value, int | str):
        return encode_value(value.value, depth)
    for kind in _SUBCLASSED:
        if isinstance(value, kind):
            return _BY_TYPE[kind](value)
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
        # Python's guard against quadratic conversions (4300 digits); Decimal's has no such limit
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


_BY_TYPE: dict[type, Callable[[Any], str]] = {
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


class RowEncoder:
    """Encodes the rows of one table. Rows of one shape share the work on their column names."""

    def __init__(self, *, source: str, table: str, encoding: RowEncoding | None = None) -> None:
        self.table = table
        self._source = source
        self._encoding = encoding
        self._names: tuple[str, ...] = ()
        self._in_order: tuple[str, ...] = ()
        self._template = "{}"

    def encode(self, rows: Sequence[Mapping[str, object]]) -> Iterator[tuple[bytes, int]]:
        """Pieces of comma-joined objects, each with its count of rows.

        Raise ``internal`` naming table and column when a value has no JSON form (reason
        ``not_encodable``) or a text is no valid Unicode (``invalid_text``).
        """
        texts: list[str] = []
        start = chars = 0
        for index, row in enumerate(rows, start=1):
            text = self._row(row)
            texts.append(text)
            chars += len(text)
            if chars >= _MAX_PIECE_CHARS:
                yield self._piece(texts, rows[start:index])
                texts, start, chars = [], index, 0
        if texts:
            yield self._piece(texts, rows[start:])

    def _row(self, row: Mapping[str, object]) -> str:
        try:
            names = tuple(row)
            if names != self._names:
                self._learn(names)
            get = _BY_TYPE.get
            values = [row[name] for name in self._in_order]
            return self._template % tuple([get(type(v), _encode_other)(v) for v in values])
        except Exception:  # noqa: BLE001 - a row may hold objects of any driver, which raise anything
            failure = self._failure(row, "not_encodable")
        raise failure

    def _learn(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._in_order = tuple(sorted(names))
        members = [encode_text(name).replace("%", "%%") + ":%s" for name in self._in_order]
        self._template = f"{{{','.join(members)}}}"

    def _piece(self, texts: list[str], rows: Sequence[Mapping[str, object]]) -> tuple[bytes, int]:
        try:
            return ",".join(texts).encode(), len(texts)
        except UnicodeEncodeError:
            bad = next(row for row, text in zip(rows, texts, strict=True) if not _is_utf8(text))
            failure = self._failure(bad, "invalid_text")
        raise failure

    def _failure(self, row: Mapping[str, object], reason: str) -> EngineError:
        return EngineError(
            ErrorCategory.INTERNAL,
            "failed to serialize extraction result",
            source=self._source,
            reason=reason,
            table=self.table,
            column=_first_bad_column(row),
        )


def _first_bad_column(row: Mapping[str, object]) -> str | None:
    try:
        return next((name for name in sorted(row) if not _is_encodable(row[name])), None)
    except Exception:  # noqa: BLE001 - the row itself is broken: there is no column to name
        return None


def _is_encodable(value: object) -> bool:
    try:
        return _is_utf8(encode_value(value))
    except Exception:  # noqa: BLE001 - see RowEncoder._row
        return False


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
