"""What documents of a sample have in common: paths with their types (spec datasources 6.6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bson import (
    Binary,
    Code,
    DatetimeMS,
    DBRef,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.codec_options import CodecOptions, DatetimeConversion

MAX_DEPTH: Final = 3
MAX_PATHS: Final = 2000

UNKNOWN: Final = "unknown"
STRING: Final = "string"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
DATE: Final = "date"
OBJECT_ID: Final = "objectId"
BINARY: Final = "binData"
DECIMAL: Final = "decimal"

LENIENT: Final = CodecOptions[dict[str, Any]](
    document_class=dict,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    unicode_decode_error_handler="replace",
)
"""A sample only tells types: a text that is not UTF-8 is one, a date beyond the calendar too."""

_LABELS: Final[Mapping[type, str]] = {
    str: STRING,
    int: NUMBER,
    Int64: NUMBER,
    float: NUMBER,
    bool: BOOLEAN,
    list: "array",
    dict: "object",
    DBRef: "object",
    datetime: DATE,
    DatetimeMS: DATE,
    ObjectId: OBJECT_ID,
    bytes: BINARY,
    Binary: BINARY,
    Regex: "regex",
    Timestamp: "timestamp",
    Decimal128: DECIMAL,
    MinKey: "minKey/maxKey",
    MaxKey: "minKey/maxKey",
    Code: UNKNOWN,
}


@dataclass(slots=True)
class Inferred:
    """Paths to the types that were seen there; null is none."""

    types: dict[str, set[str]] = field(default_factory=dict)
    is_truncated: bool = False
    """There are more paths than are told."""

    def look_at(self, documents: Iterable[Mapping[str, object]]) -> None:
        for document in documents:
            self._document(document, "", 1)

    def label(self, path: str) -> str:
        """The types in byte order: ``number|string``; ``unknown`` where only null was seen."""
        return "|".join(sorted(self.types.get(path) or {UNKNOWN}))

    def _document(self, document: Mapping[str, object], prefix: str, depth: int) -> None:
        for name, value in document.items():
            if not is_path_part(name):
                # a path would mean something else: such a field comes with the whole document only
                continue
            path = prefix + name
            types = self.types.get(path)
            if types is None:
                if len(self.types) >= MAX_PATHS:
                    self.is_truncated = True
                    continue
                types = self.types[path] = set()
            if value is None:
                continue
            types.add(_LABELS.get(type(value), UNKNOWN))
            if depth < MAX_DEPTH:
                self._inner(value, f"{path}.", depth + 1)

    def _inner(self, value: object, prefix: str, depth: int) -> None:
        if isinstance(value, dict):
            self._document(value, prefix, depth)
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, dict):
                    self._document(element, prefix, depth)


def is_path_part(name: str) -> bool:
    """Whether a name means itself in a path: MongoDB reads dots and dollars otherwise."""
    return bool(name) and "." not in name and not name.startswith("$") and "\0" not in name


def is_path(name: str) -> bool:
    return all(map(is_path_part, name.split(".")))
