"""What a filter's JSON values may say, the same for every data source (spec datasources 9.4, 9.5).

Each function reads a value as one kind of thing and raises :class:`UnfitValue`, which says nothing
about the value. How the thing is then bound is the data source's business.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final
from uuid import UUID

from fetcher.domain.json_values import JsonScalar

INT64: Final = range(-(2**63), 2**63)
_WHOLE_DOUBLES: Final = 2**53
"""From here on a double has no fraction."""

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,30}))? ?(Z|z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
_MAX_NUMBER_CHARS: Final = 1000
_UUID: Final = re.compile(
    r"(urn:uuid:)?\{?([0-9a-f]{4}-?){7}[0-9a-f]{4}\}?", re.ASCII | re.IGNORECASE
)


class UnfitValue(Exception):
    """The value cannot be one of the column's. It says nothing about the value."""


def number_of(value: JsonScalar) -> int | Decimal:
    """Exactly what was written, a text too; what is whole is an ``int`` unless that is immense."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MAX_NUMBER_CHARS or not _NUMBER.fullmatch(text):
            raise UnfitValue
        value = Decimal(text)
    if not value.is_finite():
        raise UnfitValue
    if not value:
        return 0  # whatever its exponent
    if abs(value.adjusted()) < _MAX_NUMBER_CHARS and value == value.to_integral_value():
        return int(value)
    return value


def integer_of(value: JsonScalar, held: range) -> int | Decimal:
    """A number among those that the column holds; a fraction between two of them is compared."""
    number = number_of(value)
    if not held[0] <= number <= held[-1]:
        raise UnfitValue
    return number


def whole_bound(sign: str, number: int | Decimal) -> int | Decimal:
    """The integer that bounds the same integers; only where a double would lose the fraction."""
    if isinstance(number, int) or size_of(number) < _WHOLE_DOUBLES:
        return number
    rounding = ROUND_FLOOR if sign in (">", "<=") else ROUND_CEILING
    return int(number.to_integral_value(rounding))


def is_between_doubles(number: int | Decimal) -> bool:
    """Neither an integer of 64 bits nor a double, and near enough to one to be taken for it."""
    if isinstance(number, int) and number in INT64:
        return False
    return _WHOLE_DOUBLES <= size_of(number) < 2**64 and float(number) != number


def size_of(number: int | Decimal) -> Decimal:
    """Without the sign, and exactly: ``abs`` would round to 28 digits."""
    return Decimal(number).copy_abs()


def double_of(value: JsonScalar) -> float:
    """The nearest double; beyond all of them is no value."""
    number = number_of(value)
    try:
        found = float(number)
    except OverflowError:
        found = float("inf")
    if found in (float("inf"), float("-inf")):
        raise UnfitValue
    return found


def truth_of(value: JsonScalar) -> bool:
    """A boolean, or one of the words and digits for it."""
    truth = _TRUTHS.get(str(value).strip().lower()) if isinstance(value, int | str) else None
    if truth is None:
        raise UnfitValue
    return truth


_TRUTHS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def text_of(value: JsonScalar) -> str:
    """A text; a number as it was written. Half characters cannot be in any column."""
    if isinstance(value, bool) or value is None:
        raise UnfitValue
    text = value if isinstance(value, str) else str(value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UnfitValue
    return text


def uuid_of(value: JsonScalar) -> UUID:
    text = value.strip() if isinstance(value, str) else ""
    # Python's own reading takes digits of all scripts, signs and underscores
    if not _UUID.fullmatch(text):
        raise UnfitValue
    return UUID(text)


def bytes_of(value: JsonScalar) -> bytes:
    """Base64, as results write bytes."""
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise UnfitValue


# --- dates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """UTC wall time to the second, and the digits of its fraction without zeros at the end."""

    second: datetime
    fraction: str = ""

    @property
    def is_midnight(self) -> bool:
        return not self.fraction and self.second.time() == datetime.min.time()

    @property
    def wall(self) -> datetime:
        """With the fraction, which must have six digits at most."""
        return self.second.replace(microsecond=int(self.fraction.ljust(6, "0")))


def moment_of(value: JsonScalar, *, digits: int) -> Moment:
    """RFC 3339, or a date alone, which means its midnight; without a zone it is UTC.

    ``digits`` is how fine the column is: what is finer would be cut off, and is refused.
    """
    if not isinstance(value, str):
        raise UnfitValue
    text = value.strip()
    found = _MOMENT.fullmatch(f"{text}T00:00:00" if _DAY.fullmatch(text) else text)
    if found is None:
        raise UnfitValue
    day, clock, fraction, zone = found.groups()
    fraction = (fraction or "").rstrip("0")
    if len(fraction) > digits:
        raise UnfitValue
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise UnfitValue from None
    return Moment(moment.replace(tzinfo=None), fraction)


def is_day(value: JsonScalar) -> bool:
    """Whether it is a date without a time, of whatever calendar."""
    return isinstance(value, str) and _DAY.fullmatch(value.strip()) is not None


def day_of(value: JsonScalar) -> date:
    try:
        if isinstance(value, str) and _DAY.fullmatch(value.strip()):
            return date.fromisoformat(value.strip())
    except ValueError:
        pass
    raise UnfitValue


def day_or_moment(value: JsonScalar, *, digits: int) -> date | Moment:
    """Dates compare as dates; a time of day beside one is not cut off."""
    moment = moment_of(value, digits=digits)
    return moment.second.date() if moment.is_midnight else moment
