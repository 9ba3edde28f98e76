"""What each column type is, and the expression that reads it (spec datasources 10.4).

The server writes as text whatever Python's types would not hold exactly: decimals, money, seven
digits of a second, offsets. Character data comes as UTF-16 in binary, so that what is no valid text
is found by us, with its column. Integers, floats and bits are the driver's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

_SHORT_BYTES: Final = 8000
"""What a type without ``(max)`` holds at most."""


class Kind(Enum):
    """Families of types that are read, written and filtered alike."""

    INTEGER = auto()
    BIGINT = auto()
    BIT = auto()
    DECIMAL = auto()
    MONEY = auto()
    REAL = auto()
    FLOAT = auto()
    TEXT = auto()
    LONG_TEXT = auto()
    """``text`` and ``ntext``: nothing compares them but LIKE."""
    UUID = auto()
    BINARY = auto()
    LONG_BINARY = auto()
    """``image``, and types of the CLR: their bytes, which nothing compares."""
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    """Ticks of a third of a hundredth of a second, from the year 1753."""
    DATETIME2 = auto()
    """And ``smalldatetime``."""
    OFFSET = auto()
    VARIANT = auto()
    OTHER = auto()
    """Everything else, ``xml`` and ``json`` too: the text that the server writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as the catalogue has it. ``max_bytes`` is -1 for ``(max)``."""

    name: str
    base_type: str | None
    """None for types of the CLR."""
    type: str
    max_bytes: int
    is_nullable: bool
    is_primary_key: bool
    collation: str | None

    @property
    def kind(self) -> Kind:
        return Kind.LONG_BINARY if self.base_type is None else KINDS.get(self.base_type, Kind.OTHER)


KINDS: Final[Mapping[str, Kind]] = {
    "tinyint": Kind.INTEGER,
    "smallint": Kind.INTEGER,
    "int": Kind.INTEGER,
    "bigint": Kind.BIGINT,
    "bit": Kind.BIT,
    "decimal": Kind.DECIMAL,
    "numeric": Kind.DECIMAL,
    "money": Kind.MONEY,
    "smallmoney": Kind.MONEY,
    "real": Kind.REAL,
    "float": Kind.FLOAT,
    "char": Kind.TEXT,
    "varchar": Kind.TEXT,
    "nchar": Kind.TEXT,
    "nvarchar": Kind.TEXT,
    "text": Kind.LONG_TEXT,
    "ntext": Kind.LONG_TEXT,
    "uniqueidentifier": Kind.UUID,
    "binary": Kind.BINARY,
    "varbinary": Kind.BINARY,
    "timestamp": Kind.BINARY,
    "image": Kind.LONG_BINARY,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "datetime": Kind.DATETIME,
    "smalldatetime": Kind.DATETIME2,
    "datetime2": Kind.DATETIME2,
    "datetimeoffset": Kind.OFFSET,
    "sql_variant": Kind.VARIANT,
}

_NATIVE: Final = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.BIT, Kind.REAL, Kind.FLOAT})
_BINARIES: Final = frozenset({Kind.BINARY, Kind.LONG_BINARY})

_TEXTS: Final[Mapping[Kind, str]] = {
    Kind.DECIMAL: "CONVERT(nvarchar(41), {0})",
    Kind.MONEY: "CONVERT(nvarchar(41), {0}, 2)",
    Kind.UUID: "CONVERT(nvarchar(36), {0})",
    Kind.DATE: "CONVERT(nvarchar(10), {0}, 23)",
    Kind.TIME: "CONVERT(nvarchar(16), {0}, 121)",
    Kind.DATETIME: "CONVERT(nvarchar(27), {0}, 126)",
    Kind.DATETIME2: "CONVERT(nvarchar(27), {0}, 126)",
    Kind.OFFSET: "CONVERT(nvarchar(34), {0}, 126)",
}
"""Short, and nothing in them that a code page could change."""

# the inner type's name and a colon, then the value's text; an exclamation mark where there is none
_VARIANT_TEXTS: Final[tuple[tuple[str, str], ...]] = (
    ("N'tinyint', N'smallint', N'int', N'bigint'", "CONVERT(nvarchar(20), CONVERT(bigint, {0}))"),
    ("N'bit'", "CONVERT(nvarchar(1), CONVERT(bit, {0}))"),
    ("N'decimal', N'numeric'", "CONVERT(nvarchar(41), {0})"),
    ("N'money', N'smallmoney'", "CONVERT(nvarchar(41), CONVERT(money, {0}), 2)"),
    ("N'real'", "CONVERT(nvarchar(8), CONVERT(binary(4), CONVERT(real, {0})), 2)"),
    ("N'float'", "CONVERT(nvarchar(16), CONVERT(binary(8), CONVERT(float, {0})), 2)"),
    ("N'nchar', N'nvarchar'", "CONVERT(nvarchar(4000), {0})"),
    ("N'uniqueidentifier'", "CONVERT(nvarchar(36), CONVERT(uniqueidentifier, {0}))"),
    (
        "N'binary', N'varbinary'",
        "CONVERT(nvarchar(max), CONVERT(varbinary(8000), {0}), 2)",
    ),
    ("N'date'", "CONVERT(nvarchar(10), CONVERT(date, {0}), 23)"),
    ("N'time'", "CONVERT(nvarchar(16), CONVERT(time(7), {0}), 121)"),
    ("N'datetime'", "CONVERT(nvarchar(27), CONVERT(datetime, {0}), 126)"),
    (
        "N'smalldatetime', N'datetime2'",
        "CONVERT(nvarchar(27), CONVERT(datetime2(7), {0}), 126)",
    ),
    ("N'datetimeoffset'", "CONVERT(nvarchar(34), CONVERT(datetimeoffset(7), {0}), 126)"),
)


def read_expression(column: Column, place: str, *, max_cell_bytes: int) -> str:
    """T-SQL that gives the column in the form that the renderer takes.

    Of a long cell no more travels than shows that it is too long.
    """
    kind = column.kind
    if kind in _NATIVE:
        return place
    if kind in _TEXTS:
        return _TEXTS[kind].format(place)
    if kind in _BINARIES:
        if _is_short(column):
            return f"CONVERT(varbinary({_SHORT_BYTES}), {place})"
        return f"SUBSTRING(CONVERT(varbinary(max), {place}), 1, {max_cell_bytes + 1})"
    if kind is Kind.TEXT and _is_short(column):
        return f"CONVERT(varbinary({_SHORT_BYTES}), CONVERT(nvarchar(4000), {place}))"
    text = _variant(place) if kind is Kind.VARIANT else f"CONVERT(nvarchar(max), {place})"
    return f"SUBSTRING(CONVERT(varbinary(max), {text}), 1, {2 * max_cell_bytes + 2})"


def is_long(column: Column) -> bool:
    """Whether its cells come in pieces."""
    kind = column.kind
    return kind not in _NATIVE and kind not in _TEXTS and not _is_short(column)


def _is_short(column: Column) -> bool:
    """Whether 8000 bytes hold any of its cells, in UTF-16 where it is text."""
    if column.kind is Kind.BINARY:
        return column.max_bytes >= 0
    if column.kind is not Kind.TEXT or column.max_bytes < 0:
        return False
    return column.base_type in ("nchar", "nvarchar") or column.max_bytes <= _SHORT_BYTES // 2


def _variant(place: str) -> str:
    base = f"CONVERT(nvarchar(128), SQL_VARIANT_PROPERTY({place}, 'BaseType'))"
    # a conversion to nvarchar(4000) would silently cut a longer text off
    cases = [
        f"WHEN {base} IN (N'char', N'varchar') AND DATALENGTH({place}) <= 4000"
        f" THEN N':' + CONVERT(nvarchar(4000), {place})"
    ]
    cases += [
        f"WHEN {base} IN ({names}) THEN N':' + {text.format(place)}"
        for names, text in _VARIANT_TEXTS
    ]
    return f"CONVERT(nvarchar(max), {base}) + CASE {' '.join(cases)} ELSE N'!' END"
