"""Filters as MongoDB's: predicates with values converted by what the field holds (spec 9.3).

A value of JSON may stand for several of BSON: 24 hex digits are a text and an ObjectId. MongoDB
compares within one type only, so every form that the value can have is asked for at once. Each
operator is a clause of its own, ANDed with ``$and``: none overwrites another.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from bson import Binary, DatetimeMS, Decimal128, Int64, ObjectId, Regex

from fetcher.datasources.mongodb import inference as kinds
from fetcher.datasources.predicates import (
    Between,
    Comparison,
    Like,
    Membership,
    NullCheck,
    Predicate,
)
from fetcher.domain.json_values import JsonScalar

Clause: TypeAlias = dict[str, Any]
Types: TypeAlias = frozenset[str]

_OPERATORS: Final = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
_DATE_ONLY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_TOO_FINE: Final = re.compile(r"\.\d{3}\d*[1-9]\d*(?=[^\d]|$)", re.ASCII)
"""More than milliseconds: no date of MongoDB has them."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS: Final = frozenset({kinds.NUMBER, kinds.DECIMAL})
_BINARY_SUBTYPES: Final = (0, 3, 4, 5)


class UnfitValue(Exception):
    """The value cannot be one of the field's. It says nothing about the value."""


def clause_of(field: str, types: Types, predicate: Predicate) -> Clause | None:
    """One predicate as a condition, None where it always holds; raise UnfitValue."""
    match predicate:
        case NullCheck(is_null):
            return {field: {"$eq" if is_null else "$ne": None}}
        case Membership():
            return _membership(field, types, predicate)
        case Comparison(sign, value):
            return _compared(field, _OPERATORS[sign], types, value)
        case Between(low, high):
            return {
                "$and": [
                    _compared(field, "$gte", types, low),
                    _compared(field, "$lte", types, high, is_end=True),
                ]
            }
        case Like(patterns):
            if types and kinds.STRING not in types:
                raise UnfitValue
            found = [{field: Regex(like_pattern(pattern), "is")} for pattern in patterns]
            return found[0] if len(found) == 1 else {"$or": found}


_END: Final = r"$(?!\n)"


def like_pattern(pattern: str) -> str:
    """An anchored regular expression; a newline at the end is a character like any other."""
    parts, at = [], 0
    starts, ends = True, True
    if pattern.startswith("%"):
        starts = False
    while at < len(pattern):
        character = pattern[at]
        ends = True
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            parts.append(_escaped(pattern[at]))
        elif character == "%":
            parts.append(".*")
            ends = False
        else:
            parts.append("." if character == "_" else _escaped(character))
        at += 1
    while parts and parts[0] == ".*":
        parts.pop(0)
    while parts and parts[-1] == ".*":
        parts.pop()
    return f"{'^' if starts else ''}{''.join(parts)}{_END if ends else ''}"


def _escaped(character: str) -> str:
    if character == "\0":
        return r"\x00"
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _membership(field: str, types: Types, wanted: Membership) -> Clause | None:
    """As MongoDB has it, a document without the field is not equal to a value (spec 9.3)."""
    forms: list[object] = []
    for value in wanted.values:
        forms += [form for form, _ in _forms(types, value)]
    if wanted.with_null:
        forms.append(None)
    if wanted.negated:
        return {field: {"$nin": forms}} if forms else None
    return {field: {"$in": forms}}


def _compared(
    field: str, operator: str, types: Types, value: JsonScalar, *, is_end: bool = False
) -> Clause:
    clauses = []
    for form, kind in _forms(types, value):
        if kind == kinds.BINARY:
            continue  # their order is by length and subtype
        clause: Clause = {operator: form}
        if is_end and kind == kinds.DATE and _is_day(value):
            clause = {"$lt": _day_after(form)}
        elif kind == kinds.DECIMAL:
            clause["$type"] = "decimal"
        elif kind == kinds.NUMBER and isinstance(form, float):
            clause["$not"] = {"$type": "decimal"}
        clauses.append({field: clause})
    if not clauses:
        raise UnfitValue
    return clauses[0] if len(clauses) == 1 else {"$or": clauses}


def _is_day(value: JsonScalar) -> bool:
    return isinstance(value, str) and _DATE_ONLY.fullmatch(value.strip()) is not None


def _day_after(midnight: object) -> DatetimeMS:
    return DatetimeMS(int(midnight) + 86_400_000)  # type: ignore[call-overload]


# --- values ---------------------------------------------------------------------------------

_Form: TypeAlias = tuple[object, str]


def _forms(types: Types, value: JsonScalar) -> Sequence[_Form]:
    """The value as each type it can be, with the type; raise UnfitValue where none is the field's.

    Without types nothing is known about the field, and everything is asked for.
    """
    if value is None:
        raise UnfitValue
    forms = _text_forms(types, value) if isinstance(value, str) else _plain_forms(value)
    fitting = {kind for _, kind in forms}
    if fitting & _NUMBERS:
        fitting |= _NUMBERS
    if types and types.isdisjoint(fitting):
        raise UnfitValue
    return forms


def _plain_forms(value: bool | int | Decimal) -> list[_Form]:
    if isinstance(value, bool):
        return [(value, kinds.BOOLEAN)]
    return _number_forms(value)


def _number_forms(value: int | Decimal) -> list[_Form]:
    """MongoDB compares numbers of all types by their exact values; a fraction is two numbers: what
    a double and what a decimal makes of it."""
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return [(Int64(value), kinds.NUMBER)]
        return [(_decimal(Decimal(value)), kinds.DECIMAL)]
    if value.is_finite() and value == value.to_integral_value() and abs(value) < 2**63:
        return [(Int64(int(value)), kinds.NUMBER)]
    return [(float(value), kinds.NUMBER), (_decimal(value), kinds.DECIMAL)]


def _decimal(value: Decimal) -> Decimal128:
    try:
        return Decimal128(value)
    except (ArithmeticError, ValueError):
        pass
    raise UnfitValue


def _text_forms(types: Types, text: str) -> list[_Form]:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UnfitValue
    forms: list[_Form] = [(text, kinds.STRING)]
    stripped = text.strip()
    for convert, kind in _READERS:
        if (form := convert(stripped)) is not None:
            forms.append((form, kind))
    forms += [(form, kinds.BINARY) for form in _binaries(stripped)]
    if types and types <= _NUMBERS:
        forms += _written_number(stripped)
    return forms


def _written_number(text: str) -> list[_Form]:
    """A text that is a number, for a field that holds nothing but numbers."""
    if text in ("NaN", "Infinity", "-Infinity"):
        return [(float(text), kinds.NUMBER)]
    return _number_forms(Decimal(text)) if _NUMBER.fullmatch(text) else []


def _object_id(text: str) -> ObjectId | None:
    return ObjectId(text) if re.fullmatch(r"[0-9a-fA-F]{24}", text) else None


def _date(text: str) -> DatetimeMS | None:
    """RFC 3339 or a date alone, which means its midnight; without a zone it is UTC."""
    if len(text) < 10 or _TOO_FINE.search(text) or not _DATE_ONLY.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = moment.utcoffset() or timedelta(0)
    since = moment.replace(tzinfo=UTC) - _EPOCH - offset
    return DatetimeMS(since // timedelta(milliseconds=1))


def _binaries(text: str) -> list[Binary]:
    """As results show them: 16 bytes as a UUID, others in hex."""
    try:
        if len(text) == 36 or len(text) == 32:
            data = UUID(text).bytes
        elif re.fullmatch(r"([0-9a-f]{2})+", text):
            data = bytes.fromhex(text)
        else:
            return []
    except ValueError:
        return []
    return [Binary(data, subtype) for subtype in _BINARY_SUBTYPES]


_READERS: Final[Sequence[tuple[Callable[[str], object | None], str]]] = (
    (_object_id, kinds.OBJECT_ID),
    (_date, kinds.DATE),
)


def condition_of(clauses: Sequence[Clause]) -> Mapping[str, Any]:
    """All of the clauses at once."""
    if not clauses:
        return {}
    return clauses[0] if len(clauses) == 1 else {"$and": list(clauses)}
