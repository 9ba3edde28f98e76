"""How many rows a table may have, by its source's own statistics: never counted for the purpose."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

C = TypeVar("C")

_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class FoundTable(Generic[C]):
    """What a catalogue tells of one table; ``estimated_rows`` is None where it tells nothing."""

    columns: tuple[C, ...]
    estimated_rows: int | None = None


def row_estimate(told: object) -> int | None:
    """The count that a catalogue's value means; None for what is no count, such as NULL or -1."""
    if isinstance(told, bool) or not isinstance(told, int | float | str | bytes):
        return None
    try:
        count = int(float(told)) if not isinstance(told, int) else told
    except (ValueError, OverflowError):
        # not a number, or no finite one
        return None
    return count if 0 <= count <= _MOST else None
