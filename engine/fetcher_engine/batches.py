"""What a connector streams: batches of one table's rows (design section 5).

Both forms must yield the same JSON values for the same rows; a connector chooses per table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows as mappings from column name to value; the Engine's encoder writes them.

    Each row holds the asked fields, in any order: one that a document lacks is left out, and what
    else it holds is written too.
    """

    table: str
    rows: Sequence[Mapping[str, object]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Rows already rendered: compact JSON objects joined by single commas, in UTF-8.

    No raw line break may stand in them: store mode writes a line a row, and refuses such a batch.
    Else taken as they are: that they are ``row_count`` whole objects of the asked fields, columns
    in byte order, is the connector's to see to.
    """

    table: str
    data: bytes = field(repr=False)
    row_count: int


Batch: TypeAlias = RowBatch | EncodedBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNotes:
    """What whoever uses a source's rows should know of how they were read.

    The defaults say that there is nothing to know.
    """

    has_snapshot: bool = True
    """Whether all tables were read as of one moment, as far as the source offers that."""

    replaced_characters: int = 0
    """How many characters stand in the place of what was no text in its encoding."""

    def __post_init__(self) -> None:
        flag: object = self.has_snapshot
        count: object = self.replaced_characters
        if type(flag) is not bool or type(count) is not int or count < 0:
            raise ValueError("these are no notes of a source")

    def to_public_dict(self) -> dict[str, bool | int]:
        """The JSON projection, without what goes without saying."""
        members: dict[str, bool | int] = {}
        if not self.has_snapshot:
            members["snapshot"] = False
        if self.replaced_characters:
            members["replacedCharacters"] = self.replaced_characters
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What one connector is asked for.

    ``tables`` maps each table, as the snapshot spells it, to its fields in the order they are to be
    written; ``filters`` maps table to field to the host's own condition, and names asked tables
    only. ``max_batch_bytes`` is what a batch should not exceed unless a single row does.
    """

    config_name: str
    tables: Mapping[str, tuple[str, ...]]
    filters: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    max_batch_bytes: int = 1024 * 1024
