"""Filters' JSON values as what is bound for a column of some type (spec datasources 9.4, 9.5).

A value is bound as text (a float as ``float``) and converted on the server to the column's type, so
that the column itself is compared as it is and an index on it serves.
"""

import base64
import binascii
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from fetcher.datasources.sqlserver.link import Bound
from fetcher.datasources.sqlserver.types import Column, Kind
from fetcher.domain.json_values import JsonScalar

DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

_MAX_DIGITS: Final = 38
_MAX_SHORT_BYTES: Final = 8000
_FIRST_DATETIME_YEAR: Final = 1753

_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,7})0*)?(Z|z|[+-]\d\d:\d\d)?", re.ASCII
)
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,7}0*)?)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


class UnfitValue(Exception):
    """The value cannot be one of the column's. It says nothing about the value."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A value and what makes it one of the column's; ``column`` where that must be converted too.

    Both are templates: of the parameter's place, and of the column's.
    """

    value: Bound = field(repr=False)
    template: str = "{0}"
    column: str = "{0}"


def converted(column: Column, value: JsonScalar) -> Converted:
    convert = _CONVERTERS.get(column.kind)
    if convert is None:
        raise UnfitValue
    return convert(value)


def _decimal(value: JsonScalar) -> Decimal:
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise UnfitValue
        return Decimal(value.strip())
    number = Decimal(value)
    if not number.is_finite():
        raise UnfitValue
    return number


def _number(value: JsonScalar) -> Converted:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    number = _decimal(value)
    if number and not -_MAX_DIGITS <= number.adjusted() < _MAX_DIGITS:
        raise UnfitValue
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, _, fraction = text.lstrip("+-").partition(".")
    if not fraction and -(2**63) <= int(text) < 2**63:
        return Converted(text, "CONVERT(bigint, {0})")
    if len(whole.lstrip("0")) + len(fraction) > _MAX_DIGITS:
        raise UnfitValue
    return Converted(text, f"CONVERT(decimal({_MAX_DIGITS}, {len(fraction)}), {{0}})")


def _float(value: JsonScalar) -> Converted:
    try:
        number = float(_decimal(value))
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise UnfitValue
    return Converted(number)


def _real(value: JsonScalar) -> Converted:
    wanted = _float(value)
    try:
        struct.pack("<f", wanted.value)
    except OverflowError:
        pass
    else:
        return Converted(wanted.value, "CONVERT(real, {0})")
    raise UnfitValue


_TRUTHS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), "1"),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), "0"),
}


def _bit(value: JsonScalar) -> Converted:
    truth = _TRUTHS.get(str(value).strip().lower()) if isinstance(value, int | str) else None
    if truth is None:
        raise UnfitValue
    return Converted(truth, "CONVERT(bit, {0})")


def text_of(value: JsonScalar) -> str:
    """A text; a number as it was written. Half characters cannot be bound."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    text = value if isinstance(value, str) else str(value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UnfitValue
    return text


def _plain_text(value: JsonScalar) -> Converted:
    return Converted(text_of(value))


def _long_text(value: JsonScalar) -> Converted:
    return Converted(text_of(value), column="CONVERT(nvarchar(max), {0})")


def _uuid(value: JsonScalar) -> Converted:
    try:
        if isinstance(value, str):
            return Converted(str(uuid.UUID(value.strip())), "CONVERT(uniqueidentifier, {0})")
    except ValueError:
        pass
    raise UnfitValue


def _bytes(value: JsonScalar) -> Converted:
    try:
        if isinstance(value, str):
            raw = base64.b64decode(value, validate=True)
            size = "8000" if len(raw) <= _MAX_SHORT_BYTES else "max"
            return Converted(raw.hex(), f"CONVERT(varbinary({size}), {{0}}, 2)")
    except (binascii.Error, ValueError):
        pass
    raise UnfitValue


def day_of(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    raise UnfitValue


def _moment(value: JsonScalar) -> tuple[datetime, str]:
    """UTC to the second, and up to seven digits of its fraction. A date alone is its midnight."""
    if not isinstance(value, str):
        raise UnfitValue
    text = value.strip()
    if DATE_ONLY.fullmatch(text):
        return datetime.combine(day_of(text), datetime.min.time()), ""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise UnfitValue
    zone = (found[3] or "Z").upper().replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(f"{found[1].upper()}{zone}").astimezone(UTC)
        return moment.replace(tzinfo=None), (found[2] or "").rstrip("0")
    except (ValueError, OverflowError):
        pass
    raise UnfitValue


def _iso(moment: datetime, fraction: str) -> str:
    return f"{moment.isoformat()}.{fraction}" if fraction else moment.isoformat()


def _datetime2(value: JsonScalar) -> Converted:
    return Converted(_iso(*_moment(value)), "CONVERT(datetime2(7), {0}, 126)")


def _offset(value: JsonScalar) -> Converted:
    return Converted(f"{_iso(*_moment(value))}Z", "CONVERT(datetimeoffset(7), {0}, 127)")


def _datetime(value: JsonScalar) -> Converted:
    """As the column's type where that holds the value, else both as what holds both.

    ``datetime`` knows thousandths that end in 0, 3 or 7; it would round the others.
    """
    moment, fraction = _moment(value)
    fits = len(fraction) <= 3 and fraction.ljust(3, "0")[2] in "037"
    if fits and moment.year >= _FIRST_DATETIME_YEAR:
        thousandths = fraction and fraction.ljust(3, "0")
        return Converted(_iso(moment, thousandths), "CONVERT(datetime, {0}, 126)")
    return Converted(
        _iso(moment, fraction), "CONVERT(datetime2(7), {0}, 126)", "CONVERT(datetime2(3), {0})"
    )


def _day(value: JsonScalar) -> Converted:
    """Dates compare as dates; a time of day beside one is not cut off."""
    moment, fraction = _moment(value)
    if moment.time() == datetime.min.time() and not fraction:
        return Converted(moment.date().isoformat(), "CONVERT(date, {0}, 23)")
    return Converted(_iso(moment, fraction), "CONVERT(datetime2(7), {0}, 126)")


def _clock(value: JsonScalar) -> Converted:
    if not isinstance(value, str) or not _CLOCK.fullmatch(value.strip()):
        raise UnfitValue
    text = value.strip()
    return Converted(text.rstrip("0") if "." in text else text, "CONVERT(time(7), {0})")


_CONVERTERS: Final[Mapping[Kind, Callable[[JsonScalar], Converted]]] = {
    Kind.INTEGER: _number,
    Kind.BIGINT: _number,
    Kind.DECIMAL: _number,
    Kind.MONEY: _number,
    Kind.BIT: _bit,
    Kind.REAL: _real,
    Kind.FLOAT: _float,
    Kind.TEXT: _plain_text,
    Kind.LONG_TEXT: _long_text,
    Kind.UUID: _uuid,
    Kind.BINARY: _bytes,
    Kind.DATE: _day,
    Kind.TIME: _clock,
    Kind.DATETIME: _datetime,
    Kind.DATETIME2: _datetime2,
    Kind.OFFSET: _offset,
}
