"""Table and field names as the Engine compares them (spec engine 17.1; spec datasources 6.2).

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


_OWN_SCHEMA_TYPES = frozenset({POSTGRESQL, SQL_SERVER, ORACLE})


@dataclass(frozen=True, slots=True)
class SourceNames:
    """Whose names these are: a type, and the schema that the connection itself names, if any."""

    source_type: str
    own_schema: str = ""

    @property
    def are_qualified(self) -> bool:
        """Whether a dot in a table's name separates its schema."""
        return self.source_type not in _UNQUALIFIED_TYPES

    @property
    def default_schema(self) -> str:
        """Where bare names lie; empty where only the session knows, or the type has no schemas.

        The connection's own schema where it has one, else the type's default. On types that do not
        let a session choose its schema the connection's has no meaning.
        """
        usual = DEFAULT_SCHEMAS.get(self.source_type, "")
        own = self.own_schema.strip() if self.source_type in _OWN_SCHEMA_TYPES else ""
        return usual if own.lower() in ("", usual) else own

    @property
    def stripped_schema(self) -> str:
        """The schema that a normalized name does not show; empty: all of them are shown.

        Oracle's names keep theirs: ``HR.STAFF`` is the result's key even for the user HR.
        """
        return self.default_schema if self.source_type in DEFAULT_SCHEMAS else ""


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


def normalized_table(name: str, source: SourceNames) -> str:
    """The name under which request and snapshot meet; what cannot be parsed stays as it is."""
    if not source.are_qualified:
        return name
    bare = _without_schema(name, source.stripped_schema)
    return upper_case(bare) if source.source_type == ORACLE else bare


def normalized_field(name: str, source: SourceNames) -> str:
    return upper_case(name) if source.source_type == ORACLE else name


def upper_case(text: str) -> str:
    """Upper case character by character: one that would become several stays as it is (``ß``)."""
    return "".join(
        upper if len(upper := character.upper()) == 1 else character for character in text
    )


def _without_schema(name: str, stripped_schema: str) -> str:
    try:
        qualified = parse_qualified(name, stripped_schema)
    except ValueError:
        return name
    if qualified.schema.lower() in ("", stripped_schema.lower()):
        return qualified.table
    return f"{qualified.schema}.{qualified.table}"
