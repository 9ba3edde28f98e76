"""Write docs/performance.md: ``python -m benchmarks.document [FILE …]``.

The lines of the files, as ``make bench`` and ``make faults`` leave them, replace those of the same
name in docs/performance.jsonl; the page is made of that file, and without a FILE is made anew.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.judging import judge
from benchmarks.performance_page import page
from benchmarks.verdicts import Line

DOCS: Final = Path(__file__).parents[1] / "docs"
LINES: Final = DOCS / "performance.jsonl"
PAGE: Final = DOCS / "performance.md"


def read_lines(path: Path) -> list[Line]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]


def merged(before: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Each figure once: as it was measured last, where it was first."""
    figures = {line["figure"]: line for line in before}
    figures.update((line["figure"], line) for line in new)
    return list(figures.values())


def judged(lines: Sequence[Line]) -> list[Line]:
    """With the verdicts that follow from what was measured, in place of those of the same name."""
    verdicts = [json.loads(verdict.line()) for verdict in judge(lines)]
    names = {verdict["figure"] for verdict in verdicts}
    return [*(line for line in lines if line["figure"] not in names), *verdicts]


def main() -> None:
    lines = read_lines(LINES) if LINES.exists() else []
    for name in sys.argv[1:]:
        lines = merged(lines, read_lines(Path(name)))
    lines = judged(lines)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    LINES.write_text(text, encoding="utf-8")
    PAGE.write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
