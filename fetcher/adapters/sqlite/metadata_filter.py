"""Filters below a connection's metadata, judged inside SQLite by a function of ours.

SQLite's own JSON functions compare keys by their written form and read numbers as doubles.
"""

import sqlite3
from collections.abc import Mapping
from typing import Final

from fetcher.domain.json_text import JsonTextError, dumps, parse
from fetcher.domain.json_values import JsonValue

FUNCTION: Final = "metadata_has"


def metadata_filter(wanted: Mapping[str, str]) -> str | None:
    """What the function takes: dotted paths to the texts that must stand there; None for all."""
    return dumps(wanted) if wanted else None


def add_metadata_function(connection: sqlite3.Connection) -> None:
    connection.create_function(FUNCTION, 2, metadata_has, deterministic=True)


def metadata_has(metadata: bytes, wanted: str) -> bool:
    """A record whose metadata cannot be read matches nothing. They come as bytes: for a text that
    is none the module would not call us, but fail the whole list."""
    try:
        stored = parse(metadata, max_depth=128)
        paths = parse(wanted.encode())
    except JsonTextError:
        return False
    return isinstance(paths, Mapping) and all(
        _value_at(stored, path) == text for path, text in paths.items()
    )


def _value_at(value: JsonValue, path: str) -> JsonValue:
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
