"""What of a request does not fit its data sources, as the Wire tells it (spec rest-api 8.9)."""

from dataclasses import dataclass
from enum import StrEnum


class MismatchType(StrEnum):
    DATA_SOURCE_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
    DATA_SOURCE_DOWN = "DATA_SOURCE_DOWN"
    TABLE_NOT_FOUND = "TABLE_NOT_FOUND"
    FIELD_NOT_FOUND = "FIELD_NOT_FOUND"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMismatch:
    """In the names that the caller sent. ``table`` and ``field`` are empty where none is meant.

    ``candidates`` are what an ambiguous name could mean: they differ from it in case alone.
    """

    type: MismatchType
    data_source: str
    table: str = ""
    field: str = ""
    candidates: tuple[str, ...] = ()
