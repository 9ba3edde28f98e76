"""A figure beside its peer and its target, as the line that says whether it holds."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

Line = Mapping[str, Any]
"""One JSON object of a benchmark; ``figure`` is its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``row`` is the key of a row of the design's table (:mod:`benchmarks.design_table`).

    ``peer`` says in words what stands beside it, measured in the same run; ``ratio`` is the figure
    by the peer's, empty where the target is absolute. ``unit`` is that of both.
    """

    figure: str
    row: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    ratio: float | None = None
    target: str
    holds: bool

    def line(self) -> str:
        """As it is printed."""
        return json.dumps(asdict(self), ensure_ascii=False)


def verdict_of(line: Line) -> Verdict | None:
    """What a line says, by whichever program wrote it; None for one that judges nothing."""
    known = {each.name for each in fields(Verdict)}
    if "holds" not in line:
        return None
    return Verdict(**{name: value for name, value in line.items() if name in known})
