"""What each column type is, and the expression that renders its values as JSON on the server.

One typed expression a column, so that every type has exactly the form of spec datasources 10.3 and
design section 6. An expression never is NULL for a value: where a function gives NULL, for a text
beyond ``max_allowed_packet`` say, the whole row becomes NULL, which the reader of the rows notices.
Bytes are put together, not characters: no two charsets or collations ever meet.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from fetcher.datasources.filter_values import INT64
from fetcher.datasources.mysql.charsets import LOSSY, is_lost
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions


class Kind(Enum):
    """Families of types that are rendered, and filtered, alike."""

    INTEGER = auto()
    FLAG = auto()
    """``tinyint(1)`` and ``bit(1)``: numbers that booleans may be compared with."""
    BIGINT = auto()
    BITS = auto()
    DECIMAL = auto()
    FLOAT = auto()
    DOUBLE = auto()
    TEXT = auto()
    NAMED = auto()
    """``enum`` and ``set``."""
    BYTES = auto()
    DATE = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    CLOCK = auto()
    JSON = auto()
    UUID = auto()
    GEOMETRY = auto()
    OTHER = auto()
    """Everything else: the text that the server makes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """``held`` is what an integer column can hold; ``is_plain`` texts are UTF-8 as stored."""

    kind: Kind
    held: range = INT64
    is_plain: bool = True
    is_sensitive: bool = False
    """Its collation tells upper from lower case."""
    is_native_json: bool = False
    is_padded: bool = False
    """Its text begins with zeros: ``zerofill``, and the year ``0000``."""
    is_whole: bool = False
    """Its moments have no fractions of a second."""
    lossy_charset: str = ""
    """Its charset, where that is one of :data:`LOSSY`."""


_KINDS: Final = {
    "tinyint": Kind.INTEGER,
    "smallint": Kind.INTEGER,
    "mediumint": Kind.INTEGER,
    "int": Kind.INTEGER,
    "year": Kind.INTEGER,
    "bigint": Kind.BIGINT,
    "bit": Kind.BITS,
    "decimal": Kind.DECIMAL,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "char": Kind.TEXT,
    "varchar": Kind.TEXT,
    "tinytext": Kind.TEXT,
    "text": Kind.TEXT,
    "mediumtext": Kind.TEXT,
    "longtext": Kind.TEXT,
    "enum": Kind.NAMED,
    "set": Kind.NAMED,
    "binary": Kind.BYTES,
    "varbinary": Kind.BYTES,
    "tinyblob": Kind.BYTES,
    "blob": Kind.BYTES,
    "mediumblob": Kind.BYTES,
    "longblob": Kind.BYTES,
    "vector": Kind.BYTES,
    "date": Kind.DATE,
    "datetime": Kind.DATETIME,
    "timestamp": Kind.TIMESTAMP,
    "time": Kind.CLOCK,
    "json": Kind.JSON,
    "uuid": Kind.UUID,
    **dict.fromkeys(
        (
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
            "geomcollection",
        ),
        Kind.GEOMETRY,
    ),
}
"""By ``DATA_TYPE`` of the information schema."""

_PLAIN_CHARSETS: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})


_MOMENTS: Final = frozenset({Kind.DATETIME, Kind.TIMESTAMP})


def column_type(
    *, data_type: str, declared: str, charset: str, collation: str, is_mariadb: bool
) -> ColumnType:
    """What the catalogue's words mean. The charset ``binary`` makes bytes of every text."""
    kind = _KINDS.get(data_type, Kind.OTHER)
    if kind is Kind.TEXT and charset in ("", "binary"):
        kind = Kind.BYTES
    if declared.lower().startswith(("tinyint(1)", "bit(1)")):
        kind = Kind.FLAG
    return ColumnType(
        kind=kind,
        held=_held(data_type, declared.lower()),
        is_plain=charset in _PLAIN_CHARSETS,
        is_sensitive=collation.endswith(("_bin", "_cs")),
        is_native_json=kind is Kind.JSON and not is_mariadb,
        is_padded="zerofill" in declared.lower() or data_type == "year",
        is_whole=kind in _MOMENTS and "(" not in declared,
        lossy_charset=charset if kind is Kind.TEXT and charset in LOSSY else "",
    )


_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_DECLARED_BITS: Final = re.compile(r"bit\((\d+)\)")


def _held(data_type: str, declared: str) -> range:
    if data_type == "year":
        return range(2156)
    if found := _DECLARED_BITS.match(declared):
        return range(2 ** int(found[1]))
    bits = _BITS.get(data_type, 64)
    return range(2**bits) if "unsigned" in declared else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


def bytes_literal(value: bytes) -> str:
    """Digits alone: no setting of the session changes how they are read."""
    return f"X'{value.hex()}'"


def text_literal(text: str) -> str:
    """A text in UTF-8, of the weakest collation; raise UnicodeEncodeError for half characters."""
    return f"_utf8mb4 {bytes_literal(text.encode())}"


BROKEN: Final = b"\x01"
"""Begins a cell that is the hexadecimal digits of what is no text, or too large as one.

Before them a codec and a colon, where the bytes are not meant to be UTF-8; ``-`` is none.
"""

_BROKEN: Final = f"CAST({bytes_literal(BROKEN)} AS BINARY)"
"""A constant of bytes that makes bytes of what it may stand in place of: a cast of every text
copies it. A literal alone would be made characters of.
"""

_NULL: Final = bytes_literal(b"null")
_QUOTE: Final = bytes_literal(b'"')


def _quoted(text: str) -> str:
    """For texts without anything to escape."""
    return f"CONCAT({_QUOTE}, {text}, {_QUOTE})"


def _string(text: str) -> str:
    """A JSON string of characters.

    Not by ``REPLACE``: that moves the rest of a text for each of its quotes, cannot be interrupted
    while it does, and a text of megabytes would take hours. Of bytes that are no text the function
    makes NULL: their digits then, behind a byte that begins no JSON.
    """
    return f"IFNULL(JSON_QUOTE({text}), CONCAT({_BROKEN}, HEX({text})))"


def _utf8(column: str, *, is_plain: bool) -> str:
    return column if is_plain else f"CONVERT({column} USING utf8mb4)"


_SAFE_BIGINT: Final = (
    f"IF({{0}} BETWEEN -9007199254740992 AND 9007199254740992, CONCAT({{0}}), {_quoted('{0}')})"
)

_CALENDAR: Final = (
    "(DAY({0}) BETWEEN 1 AND 28 AND MONTH({0}) > 0 AND YEAR({0}) > 0"
    " OR YEAR({0}) > 0 AND FROM_DAYS(TO_DAYS({0})) <=> DATE({0}))"
)
"""What a calendar holds. Zero dates have no days, and 30 February is 2 March.

Every month has 28 days: only of the others need days be counted.
"""

_BASE64: Final = _quoted("TO_BASE64({0})")
"""With its line breaks: the reader of the rows takes them out."""


def _moment(zone: str, *, is_whole: bool) -> str:
    """Without zeros at the end of its fraction; what is no date as it is."""
    # REPLACE would search, and TRIM look at every character from the first on
    text, fraction = "INSERT({0}, 11, 1, 'T')", "MICROSECOND({0})"
    end = bytes_literal(f'{zone}"'.encode())
    if not is_whole:
        zeros = f"IF({fraction} = 0, LEFT({text}, 19), TRIM(TRAILING '0' FROM {text}))"
        text = f"IF({fraction} % 10 <> 0, {text}, {zeros})"
    return f"IF({_CALENDAR}, CONCAT({_QUOTE}, {text}, {end}), {_quoted('{0}')})"


def _float() -> str:
    """The fewest digits that give the same 32 bits: the server's own text has six at most.

    A text is right when it is nearer than half of the distance to the next float; below a power of
    two that distance is half as long.
    """
    wide, size = "({0} + 0e0)", "LOG2(ABS({0}))"
    reach = f"POW(2, FLOOR({size}) - 24 - ({size} = FLOOR({size})))"
    # rounding a large number to tens leaves more digits than its own text has
    candidates = ["CONCAT({0})"]
    candidates += [
        f"ROUND({wide}, {digits - 1} - FLOOR(LOG10(ABS({{0}}))))" for digits in (6, 7, 8, 9)
    ]
    cases = [
        f"WHEN ABS({each} + 0e0 - {wide}) < {reach} THEN CONCAT({each})" for each in candidates
    ]
    return f"CASE {' '.join(cases)} ELSE CONCAT({wide}) END"


class Renderer:
    """Expressions for one job's options."""

    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        natural = options.values == "natural"
        big = _SAFE_BIGINT if options.bigint == "string" else "{0}"
        exact = "{0}" if options.decimals == "number" else _quoted("{0}")
        zone, midnight = "" if natural else "Z", bytes_literal(b'T00:00:00Z"')
        day = f"CONCAT({_QUOTE}, {{0}}, IF({_CALENDAR}, {midnight}, {_QUOTE}))"
        self._whole_moments = {
            Kind.DATETIME: _moment(zone, is_whole=True),
            Kind.TIMESTAMP: _moment("Z", is_whole=True),
        }
        self._by_kind: dict[Kind, str] = {
            Kind.INTEGER: "{0}",
            Kind.FLAG: "CAST({0} AS SIGNED)",
            Kind.BIGINT: big,
            Kind.BITS: big.replace("{0}", "CAST({0} AS UNSIGNED)"),
            Kind.DECIMAL: exact,
            Kind.FLOAT: _float(),
            Kind.DOUBLE: "{0}",
            Kind.BYTES: _BASE64,
            Kind.DATE: _quoted("{0}") if natural else day,
            Kind.DATETIME: _moment(zone, is_whole=False),
            Kind.TIMESTAMP: _moment("Z", is_whole=False),
            Kind.CLOCK: _quoted("{0}"),
            Kind.UUID: _quoted("{0}"),
            Kind.GEOMETRY: _BASE64,
            Kind.OTHER: _string("CONVERT(CONCAT({0}) USING utf8mb4)"),
        }

    def json_text(self, column: str, of: ColumnType, *, is_nullable: bool) -> str:
        """The column as JSON text, ``null`` for NULL; NULL for one that must not hold any."""
        value = self._value(column, of)
        return f"IF({column} IS NULL, {_NULL}, {value})" if is_nullable else value

    def _value(self, column: str, of: ColumnType) -> str:
        if of.lossy_charset:
            text = _utf8(column, is_plain=False)
            codec = BROKEN + f"{LOSSY[of.lossy_charset] or '-'}:".encode()
            digits = f"CONCAT({bytes_literal(codec)}, HEX({column}))"
            return f"IF({is_lost(column, text, of.lossy_charset)}, {digits}, {_string(text)})"
        text = _utf8(column, is_plain=of.is_plain and of.kind is not Kind.NAMED)
        if of.kind in (Kind.TEXT, Kind.NAMED):
            return _string(text)
        if of.kind is Kind.JSON:
            if of.is_native_json:
                return f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)"
            # as it stands: whoever takes the row apart looks whether it is JSON
            return column
        if of.is_padded:
            # as a number it has no zeros before it; a float would be widened
            column = f"({column} + 0)" if of.kind is not Kind.FLOAT else f"ABS({column})"
        shapes = self._whole_moments if of.is_whole else self._by_kind
        return shapes[of.kind].replace("{0}", column)
