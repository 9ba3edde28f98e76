"""Text that is not valid in its encoding: it fails its job, or is replaced and counted.

The connection decides: ``invalidText`` in its metadata.
"""

import json
import re
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_HALF: Final = re.compile("[\ud800-\udfff]")


class Texts:
    """How the texts of one connection are read; used by one thread at a time."""

    def __init__(self, *, replaces: bool = False) -> None:
        self.replaces = replaces
        self._replaced = 0

    def decoded(self, data: bytes, encoding: str = "utf-8") -> str:
        """The text; what is invalid in it replaced. Raise UnicodeDecodeError where it must not be.

        No byte that could be valid by itself is swallowed: quotes and brackets of a document stay.
        """
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            if not self.replaces:
                raise
        text = data.decode(encoding, "replace")
        self._replaced += text.count(REPLACEMENT) - data.decode(encoding, "ignore").count(
            REPLACEMENT
        )
        return text

    def whole(self, text: str) -> str:
        """The text with half characters (surrogates) replaced, whether or not it should be."""
        whole, count = _HALF.subn(REPLACEMENT, text)
        self._replaced += count
        return whole

    def take_replaced(self) -> int:
        """How many characters were put in place since this was last asked."""
        replaced, self._replaced = self._replaced, 0
        return replaced


def is_valid(data: bytes, encoding: str = "utf-8") -> bool:
    """Whether it is text in the encoding."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def broken_member(row: bytes, encoding: str = "utf-8") -> str | None:
    """The first member of a JSON object that is no text in the encoding; None where all are, or
    where the row cannot be taken apart: it is nested too deep, or no such object."""
    if is_valid(row, encoding):
        return None
    try:
        members: object = json.loads(row.decode(encoding, "surrogateescape"), strict=False)
        cells = {
            name: json.dumps(value, ensure_ascii=False)
            for name, value in (members.items() if isinstance(members, dict) else ())
        }
    except (ValueError, RecursionError):
        return None
    return next((name for name, cell in cells.items() if has_halves(cell)), None)


def has_halves(text: str) -> bool:
    """Whether it holds half characters (surrogates)."""
    return _HALF.search(text) is not None
