"""Table and field names as the Engine compares them (spec engine 17.1).

Types are the canonical names of data sources (``POSTGRESQL`` …); an unknown one is treated like
``MYSQL``. Document stores and SQLite keep every name as it is: a dot in it is part of the name.
"""

from dataclasses import dataclass
from typing import Final

POSTGRESQL: Final = "POSTGRESQL"
MYSQL: Final = "MYSQL"
ORACLE: Final = "ORACLE"
SQL_SERVER: Final = "SQL_SERVER"
MONGODB: Final = "MONGODB"
SQLITE: Final = "SQLITE"

DEFAULT_SCHEMAS: Final = {POSTGRESQL: "public", SQL_SERVER: "dbo"}

_UNQUALIFIED_TYPES = frozenset({MONGODB, SQLITE})


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """``schema`` is empty where none was named and the type has no default."""

    schema: str
    table: str


def parse_qualified(name: str, default_schema: str = "") -> QualifiedName:
    """Split ``table``, ``schema.table`` or ``catalog.schema.table``; the catalog is dropped.

    Raise ValueError for an empty name or more than three parts.
    """
    parts = name.strip().split(".")
    if parts == [""]:
        raise ValueError("an empty table name")
    if len(parts) > 3:
        raise ValueError("a table name of more than three parts")
    schema = default_schema if len(parts) == 1 else parts[-2]
    return QualifiedName(schema, parts[-1])


def has_qualified_names(source_type: str) -> bool:
    """Whether a dot in a table's name separates its schema."""
    return source_type not in _UNQUALIFIED_TYPES


def normalized_table(name: str, source_type: str) -> str:
    """The name under which request and snapshot meet; what cannot be parsed stays as it is."""
    if not has_qualified_names(source_type):
        return name
    default_schema = DEFAULT_SCHEMAS.get(source_type, "")
    bare = _without_default_schema(name, default_schema)
    return upper_case(bare) if source_type == ORACLE else bare


def normalized_field(name: str, source_type: str) -> str:
    return upper_case(name) if source_type == ORACLE else name


def upper_case(text: str) -> str:
    """Upper case character by character: one that would become several stays as it is (``ß``)."""
    return "".join(
        upper if len(upper := character.upper()) == 1 else character for character in text
    )


def _without_default_schema(name: str, default_schema: str) -> str:
    try:
        qualified = parse_qualified(name, default_schema)
    except ValueError:
        return name
    if qualified.schema.lower() in ("", default_schema):
        return qualified.table
    return f"{qualified.schema}.{qualified.table}"
