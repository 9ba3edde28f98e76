"""Whether a text is JSON as RFC 8259 has it, whatever its size: no object is made of it."""

import re
import sys
from typing import Final

import orjson

MAX_DEPTH: Final = 1024
"""Deeper than this, the parser that readers of a result are likely to have gives up."""

PARSED_BYTES: Final = 1024 * 1024
"""More JSON than this is not made into objects, which would take many times its size."""

_WINDOW_BYTES: Final = 256 * 1024
"""Members and elements that are gone through in one step: nothing else runs meanwhile, and what a
pattern may go back over costs memory."""

# Only characters are repeated possessively: of groups Python does it wrongly before 3.11.5, which
# Debian 12 has not (gh-106052). What may follow differs at its first character, so that going back
# costs no more than once over.
_BLANKS: Final = rb"[ \t\n\r]*+"
_IN_STRING: Final = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})'
_STRING: Final = rb'"' + _IN_STRING + rb'*"'
_ATOM: Final = (
    rb"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)" + _BLANKS
)
_PLAIN: Final = rb"(?:" + _STRING + _BLANKS + rb"|" + _ATOM + rb")"
_COMMA: Final = rb"," + _BLANKS
_COLON: Final = rb":" + _BLANKS

_ELEMENTS: Final = re.compile(rb"(?:" + _PLAIN + _COMMA + rb")*")
_MEMBERS: Final = re.compile(rb"(?:" + _STRING + _BLANKS + _COLON + _PLAIN + _COMMA + rb")*")
_STRING_PART: Final = re.compile(_IN_STRING + rb"{1,4096}")
_STRING_ENDS: Final = re.compile(rb'"' + _BLANKS)
_NAME_ENDS: Final = re.compile(_COLON)
_VALUE_BEGINS: Final = re.compile(rb"([\[{])" + _BLANKS + rb"|" + _ATOM)
_VALUE_ENDS: Final = re.compile(rb"(?:([\]}])|,)" + _BLANKS)
_LEADING: Final = re.compile(_BLANKS)

_OBJECT: Final = b"{"
_CLOSES: Final = {b"[": b"]", b"{": b"}"}


def is_json(text: bytes) -> bool:
    """Bytes of strings that are no UTF-8 are let through: they are somebody else's to judge."""
    if len(text) <= PARSED_BYTES:
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError:
            # a suspicion: of numbers that only a double cannot hold, for example
            pass
        else:
            return True
    return _is_grammatical(text)


def _is_grammatical(text: bytes) -> bool:
    opened: list[bytes] = []
    position = _end(_LEADING, text, 0)
    while True:
        if opened:
            position = _next_value(text, position, opened[-1])
        position, bracket = _value(text, position) if position >= 0 else (-1, b"")
        if position < 0:
            return False
        if bracket:
            opened.append(bracket)
            if len(opened) > MAX_DEPTH:
                return False
            if text[position : position + 1] != _CLOSES[bracket]:
                continue
        while opened:
            ended = _VALUE_ENDS.match(text, position)
            if ended is None or ended[1] not in (None, _CLOSES[opened[-1]]):
                return False
            position = ended.end()
            if ended[1] is None:
                break
            opened.pop()
        if not opened:
            return position == len(text)


def _next_value(text: bytes, position: int, bracket: bytes) -> int:
    """Past all that is plain, to a value that may be more, in an object past its name; or -1."""
    plain = _MEMBERS if bracket == _OBJECT else _ELEMENTS
    while (end := _end(plain, text, position, position + _WINDOW_BYTES)) > position:
        position = end
    return _end_of_name(text, position) if bracket == _OBJECT else position


def _value(text: bytes, position: int) -> tuple[int, bytes]:
    """Behind a plain value, or behind the bracket that begins one, with that bracket; or -1."""
    if text.startswith(b'"', position):
        return _end_of_string(text, position), b""
    found = _VALUE_BEGINS.match(text, position)
    return (-1, b"") if found is None else (found.end(), found[1] or b"")


def _end_of_name(text: bytes, position: int) -> int:
    """Behind the name and its colon; -1 for none."""
    end = _end_of_string(text, position) if text.startswith(b'"', position) else -1
    return _end(_NAME_ENDS, text, end) if end >= 0 else -1


def _end_of_string(text: bytes, position: int) -> int:
    """Behind the string that begins here, however long, and the blanks behind it; -1 for none."""
    position += 1
    while (end := _end(_STRING_PART, text, position)) > position:
        position = end
    return _end(_STRING_ENDS, text, position)


def _end(pattern: re.Pattern[bytes], text: bytes, position: int, limit: int = sys.maxsize) -> int:
    """Where it ends that stands there; -1 for nothing."""
    found = pattern.match(text, position, limit)
    return -1 if found is None else found.end()
