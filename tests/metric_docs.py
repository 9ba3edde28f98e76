"""The table of metrics in docs/observability.md."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "observability.md"
_ROW = re.compile(
    r"^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\| ([^|]+) \| (.+) \|$", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    name: str
    kind: str
    labels: tuple[str, ...]
    served_by: str
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names that samples have."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


@cache
def documented() -> list[Family]:
    text = PAGE.read_text(encoding="utf-8")
    return [
        Family(
            name=name,
            kind=kind,
            labels=tuple(re.findall(r"`(\w+)`", labels)),
            served_by=served_by,
            meaning=meaning,
        )
        for name, kind, labels, served_by, meaning in _ROW.findall(text)
    ]
