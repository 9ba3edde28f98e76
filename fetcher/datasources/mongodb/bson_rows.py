"""Columns of JSON texts to rows, a few columns at a time.

Formatted in loops of fixed width, rows come about twice as fast as by ``%`` with a template.
"""

from collections.abc import Sequence
from typing import Final

_WIDTH: Final = 4


def joined(labels: Sequence[str], columns: Sequence[Sequence[str]], end: str) -> list[str]:
    """A text for each row: every column behind its label, and ``end`` behind the last.

    There is at least one column, and all are of one length.
    """
    if len(columns) > _WIDTH:
        blocks = [
            joined(labels[first : first + _WIDTH], columns[first : first + _WIDTH], "")
            for first in range(0, len(columns), _WIDTH)
        ]
        return joined([""] * len(blocks), blocks, end)
    if len(columns) == 1:
        (one,) = labels
        return [f"{one}{a}{end}" for a in columns[0]]
    if len(columns) == 2:
        one, two = labels
        return [f"{one}{a}{two}{b}{end}" for a, b in zip(*columns, strict=True)]
    if len(columns) == 3:
        one, two, three = labels
        return [f"{one}{a}{two}{b}{three}{c}{end}" for a, b, c in zip(*columns, strict=True)]
    one, two, three, four = labels
    return [
        f"{one}{a}{two}{b}{three}{c}{four}{d}{end}" for a, b, c, d in zip(*columns, strict=True)
    ]
