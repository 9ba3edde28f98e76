"""A column's values as JSON, from the form that its read expression gives (spec 10.4)."""

import base64
import re
import struct
from collections.abc import Callable
from typing import Any, Final

from fetcher.datasources.sqlserver.types import KINDS, Column, Kind
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text, encode_value

_LARGEST_SAFE: Final = 2**53
_PLAIN_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)


class NotRenderable(Exception):
    """The value has no form here. It says nothing about the value."""


class Renderer:
    """Values as JSON for one job's options. What is no text raises UnicodeDecodeError,
    unless it is to be replaced."""

    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self._texts = texts or Texts()
        natural = options.values == "natural"
        decimal = _plain_number if options.decimals == "number" else _quoted_number
        moment = _plain_moment if natural else _moment
        self._by_kind: dict[Kind, Callable[[Any], str]] = {
            Kind.INTEGER: _integer,
            Kind.BIGINT: _safe_integer if options.bigint == "string" else _integer,
            Kind.BIT: _bit,
            Kind.DECIMAL: decimal,
            Kind.MONEY: decimal,
            Kind.REAL: _real,
            Kind.FLOAT: encode_value,
            Kind.TEXT: self._text,
            Kind.LONG_TEXT: self._text,
            Kind.UUID: _uuid,
            Kind.BINARY: _base64,
            Kind.LONG_BINARY: _base64,
            Kind.DATE: encode_text if natural else _date,
            Kind.TIME: _plain_moment,
            Kind.DATETIME: moment,
            Kind.DATETIME2: moment,
            Kind.OFFSET: _with_offset,
            Kind.VARIANT: self._variant,
            Kind.OTHER: self._text,
        }

    def of(self, column: Column) -> Callable[[Any], str]:
        """Renders one column's values; NULL is not its business."""
        return self._by_kind[column.kind]

    def _text(self, value: bytes) -> str:
        return encode_text(self._texts.decoded(value, "utf-16-le"))

    def _variant(self, value: bytes) -> str:
        text = self._texts.decoded(value, "utf-16-le")
        name, separator, inner = text.partition(":")
        kind = KINDS.get(name)
        if not separator or kind is None or "!" in name:
            raise NotRenderable
        if kind is Kind.TEXT:
            return encode_text(inner)
        if kind is Kind.BINARY:
            return _base64(bytes.fromhex(inner))
        if kind in (Kind.REAL, Kind.FLOAT):
            return self._by_kind[kind](_number(">f" if kind is Kind.REAL else ">d", inner))
        if kind in (Kind.INTEGER, Kind.BIGINT, Kind.BIT):
            return self._by_kind[kind](int(inner))
        return self._by_kind[kind](inner)


def _number(form: str, digits: str) -> float:
    try:
        return float(struct.unpack(form, bytes.fromhex(digits))[0])
    except struct.error:
        pass
    raise NotRenderable


_integer: Final = int.__repr__
"""Of an integer alone: a server that sends something else is found out."""


def _safe_integer(value: int) -> str:
    text = _integer(value)
    return text if -_LARGEST_SAFE <= value <= _LARGEST_SAFE else f'"{text}"'


def _bit(value: object) -> str:
    return "true" if value else "false"


def _with_zero(text: str) -> str:
    """A digit before the point, whatever the server thinks of zeros there."""
    if text.startswith("."):
        return f"0{text}"
    return f"-0{text[1:]}" if text.startswith("-.") else text


def _plain_number(text: str) -> str:
    number = _with_zero(text)
    if not _PLAIN_NUMBER.fullmatch(number):
        raise NotRenderable
    return number


def _quoted_number(text: str) -> str:
    return encode_text(_with_zero(text))


def _real(value: float) -> str:
    """The fewest digits that give the same 4 bytes again."""
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", short) == struct.pack("<f", value):
                return encode_value(short)
        except OverflowError:
            # rounded up past the largest one
            continue
    return encode_value(value)


def _uuid(text: str) -> str:
    return encode_text(text.lower())


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode("ascii")}"'


def _date(text: str) -> str:
    return encode_text(f"{text}T00:00:00Z")


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain_moment(text: str) -> str:
    return encode_text(_without_zeros(text))


def _moment(text: str) -> str:
    return encode_text(f"{_without_zeros(text)}Z")


def _with_offset(text: str) -> str:
    """Its own offset stays; none is ``Z``."""
    moment, offset = (text[:-1], "Z") if text.endswith("Z") else (text[:-6], text[-6:])
    zone = "Z" if offset in ("+00:00", "-00:00") else offset
    return encode_text(f"{_without_zeros(moment)}{zone}")
