"""Filters' JSON values as what is bound for a column of some type (spec datasources 9.4, 9.5).

A value is bound as text (a float as ``float``) and converted on the server to the column's type, so
that the column itself is compared as it is and an index on it serves.
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final

from fetcher.datasources.filter_values import (
    INT64,
    Moment,
    UnfitValue,
    bytes_of,
    day_or_moment,
    double_of,
    integer_of,
    moment_of,
    number_of,
    text_of,
    truth_of,
    uuid_of,
)
from fetcher.datasources.sqlserver.link import Bound
from fetcher.datasources.sqlserver.types import Column, Kind
from fetcher.domain.json_values import JsonScalar

_DIGITS: Final = 7
"""Of a second."""

_MAX_DIGITS: Final = 38
_MAX_SHORT_BYTES: Final = 8000
_FIRST_DATETIME_YEAR: Final = 1753
_LEAST_REAL: Final = 2.0**-149

_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,7}0*)?)?", re.ASCII)

_HELD: Final[Mapping[str | None, range]] = {
    "tinyint": range(2**8),
    "smallint": range(-(2**15), 2**15),
    "int": range(-(2**31), 2**31),
}


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
    return convert(column, value)


def _integer(column: Column, value: JsonScalar) -> Converted:
    return _exact(integer_of(value, _HELD.get(column.base_type, INT64)))


def _number(_: Column, value: JsonScalar) -> Converted:
    return _exact(number_of(value))


def _exact(value: int | Decimal) -> Converted:
    """Exactly what was written: a fraction compared with an integer column stays a fraction."""
    number = Decimal(value)
    if number and not -_MAX_DIGITS <= number.adjusted() < _MAX_DIGITS:
        raise UnfitValue
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, _, fraction = text.lstrip("+-").partition(".")
    if not fraction and int(text) in INT64:
        return Converted(text, "CONVERT(bigint, {0})")
    if len(whole.lstrip("0")) + len(fraction) > _MAX_DIGITS:
        raise UnfitValue
    return Converted(text, f"CONVERT(decimal({_MAX_DIGITS}, {len(fraction)}), {{0}})")


def _float(_: Column, value: JsonScalar) -> Converted:
    return Converted(double_of(value))


def _real(_: Column, value: JsonScalar) -> Converted:
    wanted = double_of(value)
    try:
        struct.pack("<f", wanted)
    except OverflowError:
        wanted = 0.0
    if abs(wanted) < _LEAST_REAL and number_of(value):
        raise UnfitValue
    return Converted(wanted, "CONVERT(real, {0})")


def _bit(_: Column, value: JsonScalar) -> Converted:
    return Converted(str(int(truth_of(value))), "CONVERT(bit, {0})")


def _plain_text(_: Column, value: JsonScalar) -> Converted:
    return Converted(text_of(value))


def _long_text(_: Column, value: JsonScalar) -> Converted:
    return Converted(text_of(value), column="CONVERT(nvarchar(max), {0})")


def _uuid(_: Column, value: JsonScalar) -> Converted:
    return Converted(str(uuid_of(value)), "CONVERT(uniqueidentifier, {0})")


def _bytes(_: Column, value: JsonScalar) -> Converted:
    raw = bytes_of(value)
    size = "8000" if len(raw) <= _MAX_SHORT_BYTES else "max"
    return Converted(raw.hex(), f"CONVERT(varbinary({size}), {{0}}, 2)")


def _iso(moment: Moment) -> str:
    text = moment.second.isoformat()
    return f"{text}.{moment.fraction}" if moment.fraction else text


def _datetime2(_: Column, value: JsonScalar) -> Converted:
    moment = moment_of(value, digits=_DIGITS)
    return Converted(_iso(moment), "CONVERT(datetime2(7), {0}, 126)")


def _offset(_: Column, value: JsonScalar) -> Converted:
    moment = moment_of(value, digits=_DIGITS)
    return Converted(f"{_iso(moment)}Z", "CONVERT(datetimeoffset(7), {0}, 127)")


def _datetime(_: Column, value: JsonScalar) -> Converted:
    """As the column's type where that holds the value, else both as what holds both.

    ``datetime`` knows thousandths that end in 0, 3 or 7; it would round the others.
    """
    moment = moment_of(value, digits=_DIGITS)
    thousandths = moment.fraction.ljust(3, "0")
    fits = len(thousandths) == 3 and thousandths[2] in "037"
    if fits and moment.second.year >= _FIRST_DATETIME_YEAR:
        own = Moment(moment.second, thousandths if moment.fraction else "")
        return Converted(_iso(own), "CONVERT(datetime, {0}, 126)")
    return Converted(_iso(moment), "CONVERT(datetime2(7), {0}, 126)", "CONVERT(datetime2(3), {0})")


def _day(_: Column, value: JsonScalar) -> Converted:
    """Dates compare as dates; a time of day beside one is not cut off."""
    found = day_or_moment(value, digits=_DIGITS)
    if isinstance(found, date):
        return Converted(found.isoformat(), "CONVERT(date, {0}, 23)")
    return Converted(_iso(found), "CONVERT(datetime2(7), {0}, 126)")


def _clock(_: Column, value: JsonScalar) -> Converted:
    if not isinstance(value, str) or not _CLOCK.fullmatch(value.strip()):
        raise UnfitValue
    text = value.strip()
    return Converted(text.rstrip("0") if "." in text else text, "CONVERT(time(7), {0})")


_CONVERTERS: Final[Mapping[Kind, Callable[[Column, JsonScalar], Converted]]] = {
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
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
