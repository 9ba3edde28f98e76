"""Table and field names as the Engine compares them (spec engine 17.1; spec datasources 6.2, 7.2).

Types are the canonical names of data sources (``POSTGRESQL`` …); an unknown one is treated like
``MYSQL``. Document stores keep every name as it is: a dot in it is part of the name. So does
SQLite, where a whole name may stand between quotation marks.

A part of a table's name may stand between quotation marks: ``sales."2031.q1"``, ``"we""ird"``. A
dot in it is then part of the name, a doubled mark is one mark, and spaces at its ends count.
"""

import re
from dataclasses import dataclass
from typing import Final

POSTGRESQL: Final = "POSTGRESQL"
MYSQL: Final = "MYSQL"
ORACLE: Final = "ORACLE"
SQL_SERVER: Final = "SQL_SERVER"
MONGODB: Final = "MONGODB"
SQLITE: Final = "SQLITE"

DEFAULT_SCHEMAS: Final = {POSTGRESQL: "public", SQL_SERVER: "dbo"}

MAX_NAME_CHARACTERS: Final = 1024
"""A longer text is not taken apart: no database has such names."""

MAX_SPLITS: Final = 64
"""A name with more dots is not read in every way: the readings need the square of their number."""

_UNQUALIFIED_TYPES = frozenset({MONGODB, SQLITE})

_OWN_SCHEMA_TYPES = frozenset({POSTGRESQL, SQL_SERVER, ORACLE})

_PART: Final = re.compile(r'"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*)', re.DOTALL)
"""A part between quotation marks, else what stands before the next dot, marks and all."""

_GROWING: Final = re.compile(
    f"([{''.join(one for one in map(chr, range(0x10000)) if len(one.upper()) > 1)}]+)"
)
"""Characters whose upper case is several."""


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


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    written: str

    @property
    def shown(self) -> str:
        """Without the marks, where the part is the same without them."""
        return self.written if _needs_marks(self.name) else self.name


def table_readings(name: str) -> tuple[QualifiedName, ...]:
    """What a requested name may mean on a server, the likeliest first; no schema: the default one.

    Without quotation marks a dot may separate or be part of a name, so that every split is a
    reading; with them there is one.
    """
    text = name.strip()
    parts = () if len(text) > MAX_NAME_CHARACTERS else _parts(text)
    found: list[QualifiedName] = []
    if len(parts) in (2, 3):
        found.append(QualifiedName(parts[-2].name, parts[-1].name))
    if len(parts) == 1:
        found.append(QualifiedName("", parts[0].name))
    elif not _have_marks(parts) and len(parts) <= MAX_SPLITS:
        names = [part.name for part in parts]
        found += [
            QualifiedName(".".join(names[:split]), ".".join(names[split:]))
            for split in range(1, len(names))
        ]
    if not _have_marks(parts):
        found.append(QualifiedName("", text))
    return tuple(dict.fromkeys(reading for reading in found if reading.table))


def shown_table(table: str, schema: str = "") -> str:
    """A table as a listing names it: a request for that text means this one first of all."""
    names = (schema, table) if schema else (table,)
    return ".".join(_marked(name) if _needs_marks(name) else name for name in names)


def normalized_table(name: str, source: SourceNames) -> str:
    """The name under which request and snapshot meet; what cannot be parsed stays as it is."""
    if source.source_type == SQLITE:
        return _without_marks(name)
    if not source.are_qualified:
        return name
    bare = _without_schema(name, source.stripped_schema)
    return upper_case(bare) if source.source_type == ORACLE else bare


def normalized_field(name: str, source: SourceNames) -> str:
    return upper_case(name) if source.source_type == ORACLE else name


def upper_case(text: str) -> str:
    """Upper case character by character: one that would become several stays as it is (``ß``)."""
    upper = text.upper()
    if len(upper) == len(text):
        return upper
    parts = enumerate(_GROWING.split(text))
    return "".join(part if number % 2 else part.upper() for number, part in parts)


def _without_schema(name: str, stripped_schema: str) -> str:
    try:
        parts = _table_parts(name)
    except ValueError:
        return name
    schema = parts[-2].name if len(parts) > 1 else stripped_schema
    kept = parts[-1:] if schema.lower() in ("", stripped_schema.lower()) else parts[-2:]
    if not _have_marks(parts):
        return ".".join(part.name for part in kept)
    if len(kept) == 1 or any(_needs_marks(part.name) for part in kept):
        return ".".join(part.shown for part in kept)
    # without any marks it could mean a name with a dot too
    return ".".join(part.written for part in kept)


def _without_marks(name: str) -> str:
    """A name between quotation marks as a whole, without them; any other as it is."""
    parts = () if len(name) > MAX_NAME_CHARACTERS else _parts(name)
    return parts[0].name or name if len(parts) == 1 and _have_marks(parts) else name


def _table_parts(name: str) -> tuple[_Part, ...]:
    text = name.strip()
    if len(text) > MAX_NAME_CHARACTERS:
        raise ValueError("a table name that is too long")
    parts = _parts(text)
    if not parts[-1].name:
        raise ValueError("an empty table name")
    if len(parts) > 3:
        raise ValueError("a table name of more than three parts")
    return parts


def _parts(text: str) -> tuple[_Part, ...]:
    parts = []
    at = 0
    while at <= len(text):
        found = _PART.match(text, at)
        assert found is not None  # noqa: S101 - the second way matches any text
        name = found[2] if found[1] is None else found[1].replace('""', '"')
        parts.append(_Part(name, found[0]))
        at = found.end() + 1
    return tuple(parts)


def _have_marks(parts: tuple[_Part, ...]) -> bool:
    return any(part.name != part.written for part in parts)


def _needs_marks(name: str) -> bool:
    return not name or "." in name or name.startswith('"') or name != name.strip()


def _marked(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
