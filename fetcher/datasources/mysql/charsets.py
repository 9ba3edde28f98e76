"""Character sets that leave bytes undefined: the server stores these and shows ``?`` for them."""

from collections.abc import Mapping
from typing import Final

LOSSY: Final[Mapping[str, str]] = {
    "ascii": "ascii",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "",
    "cp1257": "cp1257",
    "dec8": "",
    "geostd8": "",
    "greek": "",
    "hebrew": "",
    "hp8": "",
    "swe7": "",
    "tis620": "tis-620",
}
"""By the server's name, the codec that reads it as the server does; none where Python's differs."""


def is_lost(column: str, text: str, charset: str) -> str:
    """Whether the column's bytes hold more than its ``text`` in UTF-8, as a condition.

    No such charset has U+FFFD. A question mark may be meant: only texts with one are converted
    back.
    """
    back = f"CAST(CONVERT({text} USING {charset}) AS BINARY)"
    return (
        f"{_located(chr(0xFFFD), text)} OR"
        f" ({_located('?', text)} AND {back} <> CAST({column} AS BINARY))"
    )


def _located(sign: str, text: str) -> str:
    return f"LOCATE(_utf8mb4 X'{sign.encode().hex()}', {text}) > 0"
