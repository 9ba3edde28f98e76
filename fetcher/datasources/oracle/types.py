"""Which columns there are, and what is selected of each (spec datasources 10.5).

The catalogue's type decides. Date-times are written as text by the server, because Python's have
six digits and Oracle's nine. Large values come with their length beside them: the session reads a
value only if it is short enough.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """How a column is selected, compared and written."""

    NUMBER = "number"
    BINARY_FLOAT = "binary_float"
    BINARY_DOUBLE = "binary_double"
    TEXT = "text"
    CHAR = "char"
    NTEXT = "ntext"
    NCHAR = "nchar"
    LONG = "long"
    CLOB = "clob"
    NCLOB = "nclob"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TZ = "timestamp_tz"
    TIMESTAMP_LTZ = "timestamp_ltz"
    INTERVAL_YM = "interval_ym"
    INTERVAL_DS = "interval_ds"
    RAW = "raw"
    LONG_RAW = "long_raw"
    BLOB = "blob"
    ROWID = "rowid"
    UROWID = "urowid"
    XML = "xml"
    JSON = "json"
    VECTOR = "vector"
    BOOLEAN = "boolean"
    OTHER = "other"
    REFUSED = "refused"


LARGE: Final = frozenset({Kind.CLOB, Kind.NCLOB, Kind.BLOB, Kind.XML, Kind.JSON, Kind.VECTOR})
"""Selected with their length."""

UNBOUNDED: Final = LARGE | {Kind.LONG, Kind.LONG_RAW}
"""Nobody knows their size beforehand."""

_BY_NAME: Final = {
    "NUMBER": Kind.NUMBER,
    "FLOAT": Kind.NUMBER,
    "BINARY_FLOAT": Kind.BINARY_FLOAT,
    "BINARY_DOUBLE": Kind.BINARY_DOUBLE,
    "CHAR": Kind.CHAR,
    "VARCHAR2": Kind.TEXT,
    "VARCHAR": Kind.TEXT,
    "NCHAR": Kind.NCHAR,
    "NVARCHAR2": Kind.NTEXT,
    "LONG": Kind.LONG,
    "CLOB": Kind.CLOB,
    "NCLOB": Kind.NCLOB,
    "DATE": Kind.DATE,
    "RAW": Kind.RAW,
    "LONG RAW": Kind.LONG_RAW,
    "BLOB": Kind.BLOB,
    "ROWID": Kind.ROWID,
    "UROWID": Kind.UROWID,
    "XMLTYPE": Kind.XML,
    "JSON": Kind.JSON,
    "VECTOR": Kind.VECTOR,
    "BOOLEAN": Kind.BOOLEAN,
    "BFILE": Kind.REFUSED,
}

_DATE: Final = """TO_CHAR({0}, 'SYYYY-MM-DD"T"HH24:MI:SS')"""
_TIMESTAMP: Final = """TO_CHAR({0}, 'SYYYY-MM-DD"T"HH24:MI:SS.FF9')"""

_EXPRESSIONS: Final = {
    Kind.DATE: _DATE,
    Kind.TIMESTAMP: _TIMESTAMP,
    Kind.TIMESTAMP_TZ: _TIMESTAMP.format("SYS_EXTRACT_UTC({0})"),
    # shown in the session's zone, which is UTC
    Kind.TIMESTAMP_LTZ: _TIMESTAMP,
    Kind.INTERVAL_YM: "TO_CHAR({0})",
    Kind.INTERVAL_DS: "TO_CHAR({0})",
    Kind.XML: "XMLSERIALIZE(CONTENT {0} AS CLOB)",
    Kind.JSON: "JSON_SERIALIZE({0} RETURNING CLOB)",
    Kind.VECTOR: "VECTOR_SERIALIZE({0} RETURNING CLOB)",
    Kind.OTHER: "TO_CHAR({0})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A column as the catalogue describes it. ``scale`` is None where none was declared."""

    kind: Kind
    name: str
    max_bytes: int = 0
    precision: int | None = None
    scale: int | None = None

    @property
    def is_integer(self) -> bool:
        """Whether no value can have a fraction."""
        return self.kind is Kind.NUMBER and self.scale is not None and self.scale <= 0

    def expression(self, place: str) -> str:
        """What is selected for the column at ``place``."""
        return _EXPRESSIONS.get(self.kind, "{0}").format(place)


def column_type(
    name: str,
    *,
    owner: str | None = None,
    max_bytes: int | None = None,
    precision: int | None = None,
    scale: int | None = None,
) -> ColumnType:
    """``name`` and ``owner`` of the type, as in ``ALL_TAB_COLUMNS``.

    Types that users define have an owner; so has ``XMLTYPE``. A built-in type that nobody thought
    of is read as the server's text.
    """
    kind = _kind(name, owner)
    return ColumnType(
        kind=kind,
        name=name,
        max_bytes=max_bytes or 0,
        precision=precision,
        scale=None if name == "FLOAT" else scale,
    )


def _kind(name: str, owner: str | None) -> Kind:
    if name.startswith("TIMESTAMP"):
        if name.endswith("WITH LOCAL TIME ZONE"):
            return Kind.TIMESTAMP_LTZ
        return Kind.TIMESTAMP_TZ if name.endswith("WITH TIME ZONE") else Kind.TIMESTAMP
    if name.startswith("INTERVAL"):
        return Kind.INTERVAL_YM if "MONTH" in name else Kind.INTERVAL_DS
    if owner and name != "XMLTYPE":
        return Kind.REFUSED
    if name.startswith("VECTOR"):
        return Kind.VECTOR
    return _BY_NAME.get(name, Kind.OTHER)
