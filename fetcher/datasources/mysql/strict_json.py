"""Whether a text is JSON as RFC 8259 has it, whatever its size: no object is made of it."""

import re
from typing import Final

import orjson

MAX_DEPTH: Final = 1024
"""Deeper than this, the parser that readers of a result are likely to have gives up."""

PARSED_BYTES: Final = 1024 * 1024
"""More JSON than this is not made into objects, which would take many times its size."""

_AT_ONCE: Final = rb"{0,4096}+"
"""Members and elements that are gone through in one step: nothing else runs meanwhile."""

_BLANKS: Final = rb"[ \t\n\r]*+"
_STRING: Final = rb'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"'
_PLAIN: Final = (
    rb"(?:" + _STRING + rb"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
    rb"|true|false|null)" + _BLANKS
)
_NAME: Final = _STRING + _BLANKS + rb":" + _BLANKS
_COMMA: Final = rb"," + _BLANKS

_ELEMENTS: Final = re.compile(rb"(?:" + _PLAIN + _COMMA + rb")" + _AT_ONCE)
_MEMBERS: Final = re.compile(rb"(?:" + _NAME + _PLAIN + _COMMA + rb")" + _AT_ONCE)
_MEMBER_BEGINS: Final = re.compile(_NAME)
_VALUE_BEGINS: Final = re.compile(rb"([\[{])" + _BLANKS + rb"|" + _PLAIN)
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
            plain = _MEMBERS if opened[-1] == _OBJECT else _ELEMENTS
            while (end := _end(plain, text, position)) > position:
                position = end
            if opened[-1] == _OBJECT and (position := _end(_MEMBER_BEGINS, text, position)) < 0:
                return False
        value = _VALUE_BEGINS.match(text, position)
        if value is None:
            return False
        position = value.end()
        if value[1]:
            opened.append(value[1])
            if len(opened) > MAX_DEPTH:
                return False
            if text[position : position + 1] != _CLOSES[value[1]]:
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


def _end(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    """Where it ends that stands there; -1 for nothing."""
    found = pattern.match(text, position)
    return -1 if found is None else found.end()
