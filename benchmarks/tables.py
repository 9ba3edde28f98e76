"""Figures as tables that read well as text and as Markdown."""

from collections.abc import Sequence
from typing import Final

from benchmarks.verdicts import Verdict

HEAD: Final = ("figure", "measured", "its peer in the same run", "ratio", "target", "holds")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of one width; a bar inside of a cell is escaped."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    lines = [_line(row, widths) for row in cells]
    return "\n".join([lines[0], _line(["-" * width for width in widths], widths), *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(c.ljust(w) for c, w in zip(row, widths, strict=True))} |"


def number(value: float) -> str:
    """Large ones in groups of three digits, small ones with what they have behind the point."""
    if abs(value) >= 1000:
        return f"{round(value):,}".replace(",", " ")
    return f"{value:g}"


def verdict_row(verdict: Verdict) -> tuple[str, ...]:
    peer = verdict.peer
    if verdict.peer_value is not None:
        peer = f"{peer}: {number(verdict.peer_value)} {verdict.unit}"
    return (
        verdict.figure,
        f"{number(verdict.value)} {verdict.unit}",
        peer,
        "" if verdict.ratio is None else f"{verdict.ratio:g}",
        verdict.target,
        "yes" if verdict.holds else "**no**",
    )


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    return table(HEAD, [verdict_row(verdict) for verdict in verdicts])
