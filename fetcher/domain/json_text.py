"""JSON in and out with every digit kept, bounded in depth and in the length of numbers.

RFC 8259; what is replaced and what is refused: spec rest-api 5.1.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, count
from json.encoder import encode_basestring
from math import isfinite
from operator import sub
from typing import Final, TypeAlias, cast

from fetcher.domain.json_values import JsonValue

MAX_DEPTH: Final = 64
MAX_NUMBER_CHARS: Final = 1000
"""Far below the interpreter's own bound (4300 digits), whose cost is still linear here."""
MAX_EXPONENT_DIGITS: Final = 4
"""So that nothing downstream that writes a number out in full can be made to write for ever."""

_MAX_WRITTEN_DEPTH = 128

_ESCAPES = re.compile(r"\\.", re.DOTALL)
# of a text without escapes: a group of both would be repeated millions of times, each time kept
_STRING = r'"[^"]*+(?:"|\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
_LITERALS = re.compile(rf"{_STRING}|(-?[0-9][-+.0-9eE]*+|-?[A-Za-z]++)", re.DOTALL)
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]*)$")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# an opening bracket counts 2, a closing one 0: less the brackets so far, that is the depth
_BRACKET_STEPS = bytes.maketrans(b"[{]}", b"\x02\x02\x00\x00")
_HTML_ESCAPES = str.maketrans(
    {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
)


class JsonTextError(ValueError):
    """Text that is no JSON for us, or a value that JSON cannot say.

    ``problem`` is fixed text, ``position`` the character at which it was found (from 0), None where
    a value was to be written.
    """

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem if position is None else f"{problem} at character {position}")
        self.problem = problem
        self.position = position


class _RefusedLiteral(Exception):
    """Carries a problem out of the parser's hooks, which do not know where they are."""

    def __init__(self, problem: str, literal: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.literal = literal


class ObjectWithRepeats(dict[str, JsonValue]):
    """An object whose text has the member ``repeated`` more than once; the last one counts."""

    __slots__ = ("repeated",)

    def __init__(self, members: Mapping[str, JsonValue], repeated: str) -> None:
        super().__init__(members)
        self.repeated = repeated


def parse(data: bytes, *, max_depth: int = MAX_DEPTH, notes_repeats: bool = False) -> JsonValue:
    """Read one JSON value; raise JsonTextError.

    With ``notes_repeats`` an object that has a member twice is an :class:`ObjectWithRepeats`.

    Numbers without fraction and exponent are ints, all others Decimals with their digits kept
    (also ``-0``, which an int cannot hold). Of duplicate keys the last counts. Bytes that are no
    UTF-8 and lone surrogates become U+FFFD. Refused: anything but white space after the value,
    NaN and infinities, nesting beyond ``max_depth``, numbers of more than 1000 characters or with
    an exponent of more than 4 digits.
    """
    text = data.decode("utf-8", "surrogateescape")
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    _check_depth(text, max_depth)
    value: object = None
    problem, position = "", 0
    try:
        value = json.loads(
            text,
            parse_int=_read_int,
            parse_float=_read_decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_of if notes_repeats else None,
        )
    except json.JSONDecodeError as failed:
        problem, position = "malformed JSON", failed.pos
    except _RefusedLiteral as refused:
        problem, position = refused.problem, _position_of(refused.literal, text)
    if problem:
        raise JsonTextError(problem, position)
    if _ESCAPED_SURROGATE.search(text):
        value = _without_lone_surrogates(value)
    return cast("JsonValue", value)


NumberFormat: TypeAlias = Callable[[int | Decimal], str]


def exact_number(number: int | Decimal) -> str:
    """A JSON number with exactly this value and, for a Decimal, these digits."""
    if isinstance(number, Decimal) and not number.is_finite():
        raise JsonTextError("NaN and infinities are no JSON")
    if isinstance(number, int) and number.bit_length() > MAX_NUMBER_CHARS * 4:
        raise JsonTextError("number too long")
    return str(number)


def dumps(
    value: object,
    *,
    sort_keys: bool = False,
    escape_html: bool = False,
    number: NumberFormat = exact_number,
) -> str:
    """Compact JSON text of a :data:`JsonValue` (tuples count as lists, floats are taken too).

    ``sort_keys`` sorts by the keys' UTF-8 bytes at every level; ``escape_html`` writes ``<``,
    ``>``, ``&``, U+2028 and U+2029 as ``\\u`` sequences. Raise JsonTextError for what JSON cannot
    say, nesting beyond 128 included.
    """
    writer = _Writer(sort_keys=sort_keys, escape_html=escape_html, number=number)
    writer.write(value, depth=0)
    return "".join(writer.parts)


class _Writer:
    __slots__ = ("_escape_html", "_number", "_sort_keys", "parts")

    def __init__(self, *, sort_keys: bool, escape_html: bool, number: NumberFormat) -> None:
        self.parts: list[str] = []
        self._sort_keys = sort_keys
        self._escape_html = escape_html
        self._number = number

    def write(self, value: object, *, depth: int) -> None:
        if depth > _MAX_WRITTEN_DEPTH:
            raise JsonTextError("nested too deeply")
        if isinstance(value, str):
            self.parts.append(self._string(value))
        elif value is None or isinstance(value, bool):
            self.parts.append("null" if value is None else "true" if value else "false")
        elif isinstance(value, int | Decimal):
            self.parts.append(self._number(value))
        elif isinstance(value, float):
            if not isfinite(value):
                raise JsonTextError("NaN and infinities are no JSON")
            self.parts.append(self._number(Decimal(repr(value))))
        elif isinstance(value, Mapping):
            self._write_object(value, depth=depth)
        elif isinstance(value, list | tuple):
            self._write_array(value, depth=depth)
        else:
            raise JsonTextError("a value of a type that JSON does not have")

    def _write_object(self, value: Mapping[object, object], *, depth: int) -> None:
        keys = []
        for key in value:
            if not isinstance(key, str):
                raise JsonTextError("a key that is no text")
            keys.append(key)
        # the order of code points is the order of UTF-8 bytes
        separator = "{"
        for key in sorted(keys) if self._sort_keys else keys:
            self.parts += (separator, self._string(key), ":")
            self.write(value[key], depth=depth + 1)
            separator = ","
        self.parts.append("}" if keys else "{}")

    def _write_array(self, value: list[object] | tuple[object, ...], *, depth: int) -> None:
        separator = "["
        for item in value:
            self.parts.append(separator)
            self.write(item, depth=depth + 1)
            separator = ","
        self.parts.append("]" if value else "[]")

    def _string(self, text: str) -> str:
        if not text.isascii() and _SURROGATE.search(text):
            raise JsonTextError("text with a lone surrogate")
        quoted = encode_basestring(text)
        return quoted.translate(_HTML_ESCAPES) if self._escape_html else quoted


def _check_depth(text: str, max_depth: int) -> None:
    if text.count("[") + text.count("{") <= max_depth:
        return
    text = _without_escapes(text)
    brackets = _STRINGS.sub("", text).encode("ascii", "replace").translate(None, _NOT_BRACKETS)
    steps = brackets.translate(_BRACKET_STEPS)
    if max(map(sub, accumulate(steps), count(1)), default=0) <= max_depth:
        return
    depth = 0
    for match in re.finditer(rf"{_STRING}|([\[{{])|([\]}}])", text, re.DOTALL):
        depth += bool(match[1]) - bool(match[2])
        if depth > max_depth:
            raise JsonTextError("nested too deeply", match.start())


def _without_escapes(text: str) -> str:
    """As long as before, so that places stay. Outside of strings no escape is JSON."""
    return _ESCAPES.sub("__", text) if "\\" in text else text


def _object_of(pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    names = [name for name, _ in pairs]
    repeated = next(name for index, name in enumerate(names) if name in names[:index])
    return ObjectWithRepeats(members, repeated)


def _check_length(literal: str) -> None:
    if len(literal) > MAX_NUMBER_CHARS:
        raise _RefusedLiteral("number too long", literal)


def _read_int(literal: str) -> int | Decimal:
    _check_length(literal)
    return Decimal(literal) if literal == "-0" else int(literal)


def _read_decimal(literal: str) -> Decimal:
    _check_length(literal)
    exponent = _EXPONENT.search(literal)
    if exponent is not None and len(exponent[1]) > MAX_EXPONENT_DIGITS:
        raise _RefusedLiteral("number out of range", literal)
    return Decimal(literal)


def _refuse_constant(literal: str) -> None:
    raise _RefusedLiteral("malformed JSON", literal)


def _position_of(literal: str, text: str) -> int:
    """Where the parser stood: the first such literal outside of strings."""
    for match in _LITERALS.finditer(_without_escapes(text)):
        if match[1] == literal:
            return match.start()
    return 0


def _without_lone_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        # two keys may become one
        whole = _object_of(
            [
                (_SURROGATE.sub("\ufffd", key), cast("JsonValue", _without_lone_surrogates(item)))
                for key, item in value.items()
            ]
        )
        if isinstance(value, ObjectWithRepeats):
            return ObjectWithRepeats(whole, value.repeated)
        return whole
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in value]
    return value
