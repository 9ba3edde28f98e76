"""Filters as MongoDB's: predicates with values converted by what the field holds (spec 9.3).

A value of JSON may stand for several of BSON: 24 hex digits are a text and an ObjectId. MongoDB
compares within one type only, so every form that the value can have is asked for at once. Each
operator is a clause of its own, ANDed with ``$and``: none overwrites another.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from bson import Binary, DatetimeMS, Decimal128, Int64, ObjectId, Regex

from fetcher.datasources.filter_values import (
    INT64,
    UnfitValue,
    is_between_doubles,
    is_day,
    moment_of,
    number_of,
    size_of,
    text_of,
    truth_of,
    uuid_of,
    whole_bound,
)
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
_SIGNS: Final = {operator: sign for sign, operator in _OPERATORS.items()}
_HEX: Final = re.compile(r"([0-9a-f]{2})+")
_LEAST_INFINITY: Final = 2**1024 - 2**970
"""From here on a number is no double."""
_DIGITS: Final = 3
"""Of a second: no date of MongoDB has more."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL_DIGITS: Final = 34
"""Of a decimal."""
_NUMBERS: Final = frozenset({kinds.NUMBER, kinds.DECIMAL})
_BINARY_SUBTYPES: Final = (0, 3, 4, 5)


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
            if parts[-1:] != [".*"]:  # two of them would try every place between them
                parts.append(".*")
            ends = False
        else:
            parts.append("." if character == "_" else _escaped(character))
        at += 1
    if parts[:1] == [".*"]:
        parts.pop(0)
    if parts[-1:] == [".*"]:
        parts.pop()
    return f"{'^' if starts else ''}{''.join(parts)}{_END if ends else ''}"


def _escaped(character: str) -> str:
    if character == "\0":
        return r"\x00"
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _membership(field: str, types: Types, wanted: Membership) -> Clause | None:
    """As MongoDB has it, a document without the field is not equal to a value (spec 9.3)."""
    forms: list[object] = []
    rounded: list[float] = []
    for value in wanted.values:
        for form, _ in _forms(types, value):
            if isinstance(form, float) and _is_other_decimal(form, value):
                rounded.append(form)
            else:
                forms.append(form)
    if wanted.with_null:
        forms.append(None)
    if rounded:
        either = [{field: {"$in": forms}}, {field: {"$in": rounded, "$not": {"$type": "decimal"}}}]
        return {"$nor" if wanted.negated else "$or": either}
    if wanted.negated:
        return {field: {"$nin": forms}} if forms else None
    return {field: {"$in": forms}}


def _is_other_decimal(form: float, value: JsonScalar) -> bool:
    """Whether a decimal that is not the value may equal the double nearest to it."""
    if not math.isfinite(form) or len(Decimal(form).as_tuple().digits) > _DECIMAL_DIGITS:
        return False
    return number_of(value) != Decimal(form)


def _compared(
    field: str, operator: str, types: Types, value: JsonScalar, *, is_end: bool = False
) -> Clause:
    # the order of binaries is by length and subtype
    forms = [each for each in _forms(types, value, operator) if each[1] != kinds.BINARY]
    if not _can_hold(types, forms):
        raise UnfitValue
    is_twofold = {kind for _, kind in forms} >= _NUMBERS
    clauses = []
    for form, kind in forms:
        clause: Clause = {operator: form}
        if is_end and kind == kinds.DATE and is_day(value):
            clause = {operator: _last_of_day(form)}
        elif is_twofold and kind == kinds.DECIMAL:
            clause["$type"] = "decimal"
        elif is_twofold and kind == kinds.NUMBER:
            clause["$not"] = {"$type": "decimal"}
        clauses.append({field: clause})
    return clauses[0] if len(clauses) == 1 else {"$or": clauses}


def _last_of_day(midnight: object) -> DatetimeMS:
    return DatetimeMS(int(midnight) + 86_400_000 - 1)  # type: ignore[call-overload]


# --- values ---------------------------------------------------------------------------------

_Form: TypeAlias = tuple[object, str]


def _forms(types: Types, value: JsonScalar, operator: str = "$eq") -> Sequence[_Form]:
    """The value as each type it can be, with the type; raise UnfitValue where none is the field's.

    Without types nothing is known about the field, and everything is asked for. Where a field holds
    nothing but texts, or nothing but booleans, a value is read as one, as in a table's column.
    """
    forms: Sequence[_Form]
    if types == {kinds.BOOLEAN}:
        forms = [(truth_of(value), kinds.BOOLEAN)]
    elif types == {kinds.STRING} and not isinstance(value, str):
        forms = [(text_of(value), kinds.STRING)]
    elif isinstance(value, str):
        forms = _text_forms(types, value, operator)
    elif isinstance(value, bool):
        forms = [(value, kinds.BOOLEAN)]
    else:
        forms = _number_forms(types, value, operator)
    if not _can_hold(types, forms):
        raise UnfitValue
    return forms


def _can_hold(types: Types, forms: Sequence[_Form]) -> bool:
    """Whether the field can hold one of the forms; numbers of all types are compared."""
    fitting = {kind for _, kind in forms}
    if fitting & _NUMBERS:
        fitting |= _NUMBERS
    return bool(forms) and not (types and types.isdisjoint(fitting))


def _number_forms(types: Types, value: JsonScalar, operator: str) -> list[_Form]:
    """MongoDB compares numbers of all types by their exact values; a fraction is two numbers: what
    a double and what a decimal makes of it."""
    number = number_of(value)
    if isinstance(number, int) and number in INT64:
        return [(Int64(number), kinds.NUMBER)]
    forms: list[_Form] = []
    bound = whole_bound(_SIGNS.get(operator, ""), number)
    if operator != "$eq" and isinstance(bound, int) and bound in INT64:
        forms.append((Int64(bound), kinds.NUMBER))
    elif size_of(number) < _LEAST_INFINITY and not is_between_doubles(number):
        forms.append((float(number), kinds.NUMBER))
    elif types and kinds.DECIMAL not in types and size_of(number) >= _LEAST_INFINITY:
        raise UnfitValue
    return [*forms, (_decimal(Decimal(number)), kinds.DECIMAL)]


def _decimal(value: Decimal) -> Decimal128:
    try:
        return Decimal128(value)
    except (ArithmeticError, ValueError):
        pass
    raise UnfitValue


def _text_forms(types: Types, value: str, operator: str) -> list[_Form]:
    text = text_of(value)
    forms: list[_Form] = [(text, kinds.STRING)]
    stripped = text.strip()
    for convert, kind in _READERS:
        if (form := convert(stripped)) is not None:
            forms.append((form, kind))
    forms += [(form, kinds.BINARY) for form in _binaries(stripped)]
    if types and types <= _NUMBERS:
        forms += _written_number(types, stripped, operator)
    return forms


def _written_number(types: Types, text: str, operator: str) -> list[_Form]:
    """A text that is a number, for a field that holds nothing but numbers."""
    if text in ("NaN", "Infinity", "-Infinity"):
        return [(float(text), kinds.NUMBER)]
    return _number_forms(types, text, operator)


def _object_id(text: str) -> ObjectId | None:
    return ObjectId(text) if re.fullmatch(r"[0-9a-fA-F]{24}", text) else None


def _date(text: str) -> DatetimeMS | None:
    try:
        moment = moment_of(text, digits=_DIGITS)
    except UnfitValue:
        return None
    return DatetimeMS((moment.wall.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1))


def _binaries(text: str) -> list[Binary]:
    """As results show them: 16 bytes as a UUID, others in hex."""
    try:
        data = bytes.fromhex(text) if _HEX.fullmatch(text) else uuid_of(text).bytes
    except UnfitValue:
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
