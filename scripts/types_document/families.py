"""Which family of values a type belongs to, by the connectors' own tables, and what it becomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from psycopg.postgres import types as postgresql_types

from fetcher.datasources.mongodb.bson_walk import BsonWalker
from fetcher.datasources.mysql import types as mysql
from fetcher.datasources.oracle import types as oracle
from fetcher.datasources.postgresql import types as postgresql
from fetcher.datasources.sqlite.types import ValueRenderer
from fetcher.datasources.sqlserver import types as sqlserver
from fetcher.domain.jobs import JobOptions

_INTEGER: Final = "integer"
_EXACT: Final = "string with every digit and its scale"
_FLOAT: Final = "shortest number that reads back the same; NaN and infinities as strings"
_TEXT: Final = "string"
_BASE64: Final = "string, base64"
_DATE: Final = "string, midnight with `Z`; what no calendar holds is the database's text"
_WALL: Final = "string, RFC 3339 with `Z`; what no calendar holds is the database's text"
_INSTANT: Final = "string, RFC 3339 in UTC; what no calendar holds is the database's text"
_JSON: Final = "the value itself, the text of its numbers untouched"
_OWN_TEXT: Final = "string, the database's own text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """One database's.

    ``of`` gives the family of a type in the matrix, ``words`` what each family becomes. ``known``
    are the types that the connector itself tells apart, ``untested`` those of them that no server
    at hand has, with their families.
    """

    of: Callable[[str], object]
    words: Mapping[object, str]
    known: frozenset[object]
    key: Callable[[str], object]
    untested: Mapping[str, object]


def _postgresql() -> Families:
    kinds = postgresql.Kind

    def oid(name: str) -> object:
        found = postgresql_types.get("bpchar" if name == "char" else name)
        return None if found is None or name.endswith("[]") else found.oid

    def of(name: str) -> object:
        if name.endswith("[]") or name in ("domain over an array", "int2vector", "oidvector"):
            return kinds.ARRAY
        if name.startswith("domain over"):
            return _BASE_TYPE
        number = oid(name)
        scalar = postgresql.base_type(number) if isinstance(number, int) else None
        found = scalar or postgresql.catalogued_type(category="U", element_oid=0, name=name)
        return found.kind

    return Families(
        of=of,
        words={
            kinds.INTEGER: _INTEGER,
            kinds.BIGINT: _INTEGER,
            kinds.OID: _INTEGER,
            kinds.COUNTER: _INTEGER,
            kinds.BOOLEAN: "`true` or `false`",
            kinds.NUMERIC: f"{_EXACT}; NaN and infinities as strings",
            kinds.REAL: _FLOAT,
            kinds.DOUBLE: _FLOAT,
            kinds.TEXT: _TEXT,
            kinds.PADDED: "string with its padding",
            kinds.UUID: "string, lower case",
            kinds.BYTES: _BASE64,
            kinds.DATE: _DATE,
            kinds.TIMESTAMP: _WALL,
            kinds.TIMESTAMPTZ: _INSTANT,
            kinds.CLOCK: _OWN_TEXT,
            kinds.JSON: _JSON,
            kinds.JSONB: _JSON,
            kinds.ARRAY: "string, the database's own text",
            kinds.OTHER: _OWN_TEXT,
            _BASE_TYPE: "as the base type",
        },
        known=frozenset(postgresql._KINDS),
        key=oid,
        untested={},
    )


class _Also(Enum):
    BASE_TYPE = "a domain is what it is made of"


_BASE_TYPE: Final = _Also.BASE_TYPE


def _mysql() -> Families:
    kinds = mysql.Kind

    def of(name: str) -> object:
        # the catalogue knows no ``bool``: it is another name of ``tinyint(1)``
        data_type, declared = ("tinyint", "tinyint(1)") if name == "bool" else (name, name)
        return mysql.column_type(
            data_type=data_type, declared=declared, charset="utf8mb4", collation="", is_mariadb=True
        ).kind

    return Families(
        of=of,
        words={
            kinds.INTEGER: _INTEGER,
            kinds.FLAG: _INTEGER,
            kinds.BIGINT: _INTEGER,
            kinds.BITS: "integer, unsigned",
            kinds.DECIMAL: _EXACT,
            kinds.FLOAT: "shortest number that reads back the same in 32 bits",
            kinds.DOUBLE: "number, the server's shortest",
            kinds.TEXT: f"{_TEXT}; with charset `binary` base64",
            kinds.NAMED: _TEXT,
            kinds.BYTES: _BASE64,
            kinds.DATE: _DATE,
            kinds.DATETIME: _WALL,
            kinds.TIMESTAMP: _INSTANT,
            kinds.CLOCK: _OWN_TEXT,
            kinds.JSON: _JSON,
            kinds.UUID: "string, lower case",
            kinds.GEOMETRY: "string, base64 of SRID and WKB",
            kinds.OTHER: _OWN_TEXT,
        },
        known=frozenset(mysql._KINDS),
        key=lambda name: name,
        untested={"geomcollection": kinds.GEOMETRY, "vector": kinds.BYTES},
    )


def _sqlserver() -> Families:
    kinds = sqlserver.Kind

    def of(name: str) -> object:
        if name in ("hierarchyid", "geometry", "geography"):
            return kinds.LONG_BINARY
        return sqlserver.KINDS.get(name, kinds.OTHER)

    return Families(
        of=of,
        words={
            kinds.INTEGER: _INTEGER,
            kinds.BIGINT: _INTEGER,
            kinds.BIT: "`true` or `false`",
            kinds.DECIMAL: _EXACT,
            kinds.MONEY: "string with four digits after the point",
            kinds.REAL: "shortest number that reads back the same in 32 bits",
            kinds.FLOAT: "shortest number that reads back the same",
            kinds.TEXT: _TEXT,
            kinds.LONG_TEXT: _TEXT,
            kinds.UUID: "string, lower case",
            kinds.BINARY: _BASE64,
            kinds.LONG_BINARY: _BASE64,
            kinds.DATE: "string, midnight with `Z`",
            kinds.TIME: "string, `hh:mm:ss` and its fraction",
            kinds.DATETIME: "string, RFC 3339 with `Z`",
            kinds.DATETIME2: "string, RFC 3339 with `Z`, up to seven digits",
            kinds.OFFSET: "string, RFC 3339 with its own offset",
            kinds.VARIANT: "as the inner type",
            kinds.OTHER: _OWN_TEXT,
        },
        known=frozenset(sqlserver.KINDS),
        key=lambda name: name,
        untested={},
    )


def _oracle() -> Families:
    kinds = oracle.Kind
    number = "integer where no fraction is declared, else string with its scale"
    words: dict[object, str] = dict.fromkeys(kinds, _TEXT)
    words |= {
        kinds.NUMBER: number,
        kinds.BINARY_FLOAT: _FLOAT,
        kinds.BINARY_DOUBLE: _FLOAT,
        kinds.CHAR: "string with its padding",
        kinds.NCHAR: "string with its padding",
        kinds.DATE: f"{_WALL} (Oracle's `DATE` has a time of day)",
        kinds.TIMESTAMP: f"{_WALL}, up to nine digits",
        kinds.TIMESTAMP_TZ: _INSTANT,
        kinds.TIMESTAMP_LTZ: _INSTANT,
        kinds.INTERVAL_YM: _OWN_TEXT,
        kinds.INTERVAL_DS: _OWN_TEXT,
        kinds.RAW: _BASE64,
        kinds.LONG_RAW: _BASE64,
        kinds.BLOB: _BASE64,
        kinds.XML: "string, by `XMLSERIALIZE`",
        kinds.JSON: _JSON,
        kinds.VECTOR: "array of numbers, as the server writes them",
        kinds.BOOLEAN: "`true` or `false`",
        kinds.OTHER: _OWN_TEXT,
        kinds.REFUSED: "refused when the job is planned, as are types that users define",
    }
    return Families(
        of=lambda name: oracle.column_type(name, owner=None).kind,
        words=words,
        known=frozenset(oracle._BY_NAME),
        key=lambda name: name.partition("(")[0] if name.startswith("VECTOR") else name,
        untested={"BFILE": kinds.REFUSED},
    )


_BSON: Final[Mapping[str, tuple[int, str]]] = {
    "double": (0x01, _FLOAT),
    "string": (0x02, _TEXT),
    "document": (0x03, "object, at every depth; its keys in their order"),
    "array": (0x04, "array, at every depth"),
    "binary": (0x05, "string: a UUID's text for 16 bytes of any subtype, else lower-case hex"),
    "undefined": (0x06, "`null`"),
    "objectId": (0x07, "string, 24 hex digits"),
    "bool": (0x08, "`true` or `false`"),
    "date": (0x09, "string, RFC 3339 in UTC; outside the years 1 to 9999 its milliseconds"),
    "null": (0x0A, "`null`; a field that is absent stays absent"),
    "regex": (0x0B, "object"),
    "dbPointer": (0x0C, "object"),
    "javascript": (0x0D, _TEXT),
    "symbol": (0x0E, _TEXT),
    "javascriptWithScope": (0x0F, "object"),
    "int32": (0x10, _INTEGER),
    "timestamp": (0x11, "object of seconds and increment"),
    "int64": (0x12, _INTEGER),
    "decimal128": (0x13, "string with every digit and its scale, perhaps with an exponent"),
    "maxKey": (0x7F, "object"),
    "minKey": (0xFF, "object"),
}
"""By the names of bsonspec.org's ``$type`` aliases."""


def _mongodb() -> Families:
    readers = BsonWalker(JobOptions())._readers
    return Families(
        of=lambda name: _BSON[name][0],
        words=dict(_BSON.values()),
        known=frozenset(readers),
        key=lambda name: _BSON[name][0],
        untested={},
    )


def _sqlite() -> Families:
    classes: dict[str, type] = {
        "INTEGER": int,
        "REAL": float,
        "TEXT": str,
        "BLOB": bytes,
        "NULL": type(None),
    }
    return Families(
        of=classes.__getitem__,
        words={
            int: _INTEGER,
            float: "shortest number that reads back the same; infinities as strings",
            str: f"{_TEXT}, whatever it looks like",
            bytes: _BASE64,
            type(None): "`null`",
        },
        known=frozenset(ValueRenderer(JobOptions())._by_type),
        key=classes.__getitem__,
        untested={},
    )


FAMILIES: Final[Mapping[str, Families]] = {
    "postgresql": _postgresql(),
    "mysql": _mysql(),
    "sqlserver": _sqlserver(),
    "oracle": _oracle(),
    "mongodb": _mongodb(),
    "sqlite": _sqlite(),
}
"""By the matrix's file."""


def left_out(database: str, types: frozenset[str]) -> frozenset[object]:
    """What the connector tells apart and the matrix, with these types, does not show."""
    families = FAMILIES[database]
    shown = {families.key(name) for name in types}
    return families.known - shown - {families.key(name) for name in families.untested}
