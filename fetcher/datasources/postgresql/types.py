"""What each column type is, and the expression that renders its values as JSON on the server.

One typed expression a column, so that every type has exactly the form of spec datasources 10.2 and
design section 6. An expression is text, NULL for NULL, and never holds a raw control character
except inside a JSON string of a text column: the reader of the rows escapes those.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from psycopg import sql

from fetcher.datasources.filter_values import INT64
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions


class Kind(Enum):
    """Families of types that are rendered, and filtered, alike."""

    INTEGER = auto()
    BIGINT = auto()
    OID = auto()
    """An integer that ``to_json`` takes for a text."""
    COUNTER = auto()
    """``xid`` and ``cid``: integers without an order."""
    BOOLEAN = auto()
    NUMERIC = auto()
    REAL = auto()
    DOUBLE = auto()
    TEXT = auto()
    PADDED = auto()
    """``char(n)``: a cast to text would drop its padding."""
    UUID = auto()
    BYTES = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TIMESTAMPTZ = auto()
    CLOCK = auto()
    """``time``, ``timetz``, ``interval``: text without anything to escape."""
    JSON = auto()
    JSONB = auto()
    ARRAY = auto()
    OTHER = auto()
    """Everything else: the text that the type's own output function writes."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """``held`` is what an integer column can hold."""

    kind: Kind
    element: "ColumnType | None" = None
    held: range = INT64


_OTHER: Final = ColumnType(Kind.OTHER)

_KINDS: Final = {
    16: Kind.BOOLEAN,
    17: Kind.BYTES,
    18: Kind.TEXT,  # "char"
    19: Kind.TEXT,  # name
    20: Kind.BIGINT,
    21: Kind.INTEGER,
    23: Kind.INTEGER,
    25: Kind.TEXT,
    26: Kind.OID,
    28: Kind.COUNTER,
    29: Kind.COUNTER,
    114: Kind.JSON,
    700: Kind.REAL,
    701: Kind.DOUBLE,
    1042: Kind.PADDED,
    1043: Kind.TEXT,
    1082: Kind.DATE,
    1083: Kind.CLOCK,
    1114: Kind.TIMESTAMP,
    1184: Kind.TIMESTAMPTZ,
    1186: Kind.CLOCK,
    1266: Kind.CLOCK,
    1700: Kind.NUMERIC,
    2950: Kind.UUID,
    3802: Kind.JSONB,
}
"""By type OID (``pg_type.dat``): these never change between versions and servers."""


_HELD: Final = {21: range(-(2**15), 2**15), 23: range(-(2**31), 2**31), 26: range(2**32)}


def base_type(oid: int) -> ColumnType | None:
    """The type behind a built-in scalar's OID; None: the catalogue must say what it is."""
    kind = _KINDS.get(oid)
    return ColumnType(kind, held=_HELD.get(oid, INT64)) if kind is not None else None


def catalogued_type(*, category: str, element_oid: int, name: str) -> ColumnType:
    """A type that the catalogue describes: an array of something, ``citext``, or other."""
    if category == "A" and element_oid:
        return ColumnType(Kind.ARRAY, base_type(element_oid) or _OTHER)
    return ColumnType(Kind.TEXT) if name == "citext" else _OTHER


_QUOTED: Final = """'"' || {0}::text || '"'"""


def _escaped(text: str) -> str:
    """A JSON string but for control characters, which the reader of the rows escapes.

    Twice ``replace`` costs half of what ``to_json`` does. It refuses nondeterministic collations.
    """
    return rf"""'"' || replace(replace({text} COLLATE "C", '\', '\\'), '"', '\"') || '"'"""


_STRING: Final = _escaped("({0})::text")
_OUTPUT: Final = (
    # IS NULL would look into a composite; a cast to text is a function of its own for some types
    f"CASE WHEN {{0}} IS DISTINCT FROM NULL THEN {_escaped('concat({0})')} END"
)
_SAFE_BIGINT: Final = (
    "CASE WHEN {0} BETWEEN -9007199254740992 AND 9007199254740992 THEN {0}::text"
    f" ELSE {_QUOTED} END"
)
_FLOAT: Final = (
    f"CASE WHEN {{0}} > '-Infinity' AND {{0}} < 'Infinity' THEN {{0}}::text ELSE {_QUOTED} END"
)
_DATE: Final = (
    "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
    f""" THEN '"' || {{0}}::text || 'T00:00:00Z"' ELSE {_QUOTED} END"""
)
_TIMESTAMP_NATURAL: Final = (
    "CASE WHEN {0} >= TIMESTAMP '0001-01-01' AND {0} < TIMESTAMP '10000-01-01'"
    f""" THEN '"' || replace({{0}}::text, ' ', 'T') || '"' ELSE {_QUOTED} END"""
)
_TIMESTAMP: Final = _TIMESTAMP_NATURAL.replace("""|| '"' ELSE""", """|| 'Z"' ELSE""")
_TIMESTAMPTZ: Final = (
    "CASE WHEN {0} >= TIMESTAMPTZ '0001-01-01 00:00:00+00'"
    " AND {0} < TIMESTAMPTZ '10000-01-01 00:00:00+00'"
    """ THEN '"' || replace(({0} AT TIME ZONE 'UTC')::text, ' ', 'T') || 'Z"'"""
    f" ELSE {_QUOTED} END"
)
_BASE64: Final = r"""'"' || replace(encode({0}, 'base64'), E'\n', '') || '"'"""
_ONE_LINE_JSON: Final = r"translate({0}::text, E'\t\n\r', '   ')"
_BOOLEAN: Final = "CASE {0} WHEN true THEN 'true' WHEN false THEN 'false' END"
_DIGITS: Final = "{0}::text"

_MAX_DIMENSIONS: Final = 6
"""``MAXDIM`` in PostgreSQL's ``array.h``."""


class Renderer:
    """Expressions for one job's options."""

    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        self._natural = options.values == "natural"
        self._bigint_text = options.bigint == "string"
        self._decimal_number = options.decimals == "number"
        self._by_kind: dict[Kind, sql.SQL] = {
            kind: sql.SQL(template)
            for kind, template in {
                Kind.INTEGER: _DIGITS,
                Kind.OID: _DIGITS,
                Kind.COUNTER: _DIGITS,
                Kind.BIGINT: _SAFE_BIGINT if self._bigint_text else _DIGITS,
                Kind.BOOLEAN: _BOOLEAN,
                Kind.NUMERIC: "to_json({0})::text" if self._decimal_number else _QUOTED,
                Kind.REAL: _FLOAT,
                Kind.DOUBLE: _FLOAT,
                Kind.TEXT: _STRING,
                Kind.PADDED: _OUTPUT,
                Kind.UUID: _QUOTED,
                Kind.BYTES: _BASE64,
                Kind.DATE: _QUOTED if self._natural else _DATE,
                Kind.TIMESTAMP: _TIMESTAMP_NATURAL if self._natural else _TIMESTAMP,
                Kind.TIMESTAMPTZ: _TIMESTAMPTZ,
                Kind.CLOCK: _QUOTED,
                Kind.JSON: _ONE_LINE_JSON,
                Kind.JSONB: _DIGITS,
                Kind.ARRAY: _STRING,
                Kind.OTHER: _OUTPUT,
            }.items()
        }

    def json_text(self, column: sql.Composable, column_type: ColumnType) -> sql.Composable:
        """The column as JSON text, ``null`` for NULL."""
        return sql.SQL("coalesce({}, 'null')").format(self._nullable(column, column_type))

    def _nullable(self, column: sql.Composable, column_type: ColumnType) -> sql.Composable:
        if self._natural and column_type.element is not None:
            return self._array(column, column_type.element)
        return self._by_kind[column_type.kind].format(column)

    def _array(self, column: sql.Composable, element: ColumnType) -> sql.Composable:
        """A JSON array of any depth, each element in its scalar form."""
        if element.kind in self._plain_elements():
            return sql.SQL("to_json({0})::text").format(column)
        depths = [self._nested(column, element, depth) for depth in range(1, _MAX_DIMENSIONS + 1)]
        cases = [
            sql.SQL("WHEN {} THEN {}").format(sql.Literal(depth), expression)
            for depth, expression in enumerate(depths, start=1)
        ]
        # an array without elements has no dimensions
        return sql.SQL(
            "CASE WHEN {0} IS NULL THEN NULL ELSE "
            "CASE coalesce(array_ndims({0}), 0) WHEN 0 THEN '[]' {1} END END"
        ).format(column, sql.SQL(" ").join(cases))

    def _plain_elements(self) -> frozenset[Kind]:
        """Kinds that ``to_json`` writes in just our form."""
        kinds = {Kind.INTEGER, Kind.BOOLEAN, Kind.REAL, Kind.DOUBLE, Kind.UUID, Kind.JSONB}
        kinds |= {Kind.TEXT, Kind.PADDED, Kind.CLOCK}
        if not self._bigint_text:
            kinds.add(Kind.BIGINT)
        if self._decimal_number:
            kinds.add(Kind.NUMERIC)
        return frozenset(kinds)

    def _nested(self, column: sql.Composable, element: ColumnType, depth: int) -> sql.Composable:
        if depth == 1 and element.kind is not Kind.OTHER:
            # subscripts would unpack a stored array once for each element; unnest takes composites
            # apart
            item = self.json_text(sql.SQL("u.e"), element)
            return sql.SQL(
                "(SELECT '[' || string_agg({0}, ',' ORDER BY u.n) || ']'"
                " FROM unnest({1}) WITH ORDINALITY u(e, n))"
            ).format(item, column)
        places = [sql.Identifier(f"i{level}") for level in range(1, depth + 1)]
        subscripts = sql.SQL("").join(sql.SQL("[{}]").format(place) for place in places)
        item = self.json_text(sql.SQL("({}){}").format(column, subscripts), element)
        for level in range(depth, 0, -1):
            item = sql.SQL(
                "(SELECT '[' || string_agg({item}, ',' ORDER BY {place}) || ']'"
                " FROM generate_subscripts({column}, {level}) {place})"
            ).format(item=item, column=column, level=sql.Literal(level), place=places[level - 1])
        return item
