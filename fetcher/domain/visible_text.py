"""Texts from outside, made harmless to whoever reads them on a terminal."""

import re
from typing import Final

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # turn the direction, break the line
    "\ud800-\udfff]"  # cannot be written as UTF-8
)


def visible(text: str) -> str:
    """The same with control characters as Python writes them: ``\\x1b`` moves no cursor."""
    return _CONTROL.sub(_as_written, text)


def visible_in_json(text: str) -> str:
    """The same JSON with control characters as ``\\u009b``: JSON itself lets C1 and others be."""
    return _CONTROL.sub(_as_json, text)


def _as_written(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _as_json(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
