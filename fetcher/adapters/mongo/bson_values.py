"""JSON values in BSON, both ways, without losing a digit.

An integer of up to 64 bits is an int, any other number a Decimal128 where that holds it exactly,
else its text in a binary of subtype 0x80 ("user defined"): the subtype is the mark, and no JSON
value becomes a binary. Doubles are only read: the reference writes all numbers as doubles.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, DecimalException
from typing import Final, TypeAlias

from bson import Binary, Decimal128

from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.json_values import JsonScalar, JsonValue

BsonValue: TypeAlias = object

NUMBER_TEXT_SUBTYPE: Final = 0x80

_INT64: Final = range(-(2**63), 2**63)
_JSON_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LARGEST_PLAIN_DOUBLE: Final = 1e21
"""Above it the reference's own JSON writes an exponent (spec rest-api 9.4)."""


def to_bson(value: JsonValue) -> BsonValue:
    match value:
        case bool():
            return value
        case int():
            return value if value in _INT64 else _exact_number(Decimal(value))
        case Decimal():
            return _exact_number(value)
        case Mapping():
            return {key: to_bson(item) for key, item in value.items()}
        case list():
            return [to_bson(item) for item in value]
        case _:
            return value


def from_bson(value: BsonValue, *, field: str) -> JsonValue:
    """Raise RecordCorrupt, naming ``field``, for what no JSON value is stored as."""
    match value:
        case Mapping():
            return {str(key): from_bson(item, field=field) for key, item in value.items()}
        case list():
            return [from_bson(item, field=field) for item in value]
        case _:
            return scalar_from_bson(value, field=field)


def scalars_from_bson(values: Sequence[BsonValue], *, field: str) -> tuple[JsonScalar, ...]:
    return tuple(scalar_from_bson(value, field=field) for value in values)


def scalar_from_bson(value: BsonValue, *, field: str) -> JsonScalar:
    number: JsonScalar = None
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            number = _double(value)
        case Decimal128():
            number = _decimal(value)
        case Binary(subtype=subtype) if subtype == NUMBER_TEXT_SUBTYPE:
            number = _text_number(bytes(value))
    if number is None:
        raise RecordCorrupt(f"{field}: holds what is no JSON value")
    return number


def _exact_number(number: Decimal) -> BsonValue:
    stored: Decimal128 | None = None
    with suppress(DecimalException):
        stored = Decimal128(number)
    # Decimal128 pads a coefficient to reach a large exponent: the same value, other digits.
    if stored is not None and stored.to_decimal().as_tuple() == number.as_tuple():
        return stored
    return Binary(str(number).encode("ascii"), NUMBER_TEXT_SUBTYPE)


def _double(value: float) -> JsonScalar:
    number = Decimal(repr(value))
    if value.is_integer() and abs(value) < _LARGEST_PLAIN_DOUBLE:
        number = Decimal(int(value)).copy_sign(number)
    return _as_json(number)


def _decimal(value: Decimal128) -> JsonScalar:
    return _as_json(value.to_decimal())


def _as_json(number: Decimal) -> JsonScalar:
    """Without fraction and exponent an int, but -0 keeps its sign; None for what JSON lacks."""
    if not number.is_finite():
        return None
    sign, digits, exponent = number.as_tuple()
    return int(number) if exponent == 0 and (sign, digits) != (1, (0,)) else number


def _text_number(text: bytes) -> JsonScalar:
    number = _JSON_NUMBER.fullmatch(text)
    if number is None:
        return None
    decimal = Decimal(text.decode("ascii"))
    return decimal if number[1] or number[2] else int(decimal)
