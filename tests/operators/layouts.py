"""The table of :mod:`tests.operators.rows` in each database's own words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from bson import Binary, Decimal128, Int64

from tests.operators.rows import COLUMNS, ROWS, TABLE, Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a database declares the columns, and how it writes a value of one."""

    types: Mapping[str, str]
    literal: Callable[[str, object], str]
    quote: str = '""'
    is_upper: bool = False
    """Names are spelled so: as Oracle spells what nobody quoted."""
    end: str = ""

    def create(self, table: str = TABLE) -> str:
        """``table`` is quoted, and qualified, by the caller where that is needed."""
        columns = ", ".join(f"{self._quoted(name)} {self.types[name]}" for name in COLUMNS)
        return f"CREATE TABLE {table} ({columns}){self.end}"

    def inserts(self, table: str = TABLE) -> Sequence[str]:
        names = ", ".join(map(self._quoted, COLUMNS))
        return [f"INSERT INTO {table} ({names}) VALUES ({self._values(row)})" for row in ROWS]

    def _values(self, row: Thing) -> str:
        values = [(name, getattr(row, name)) for name in COLUMNS]
        return ", ".join("NULL" if v is None else self.literal(name, v) for name, v in values)

    def _quoted(self, name: str) -> str:
        spelled = name.upper() if self.is_upper else name
        return f"{self.quote[0]}{spelled}{self.quote[1]}"


def _text(value: str, prefix: str = "") -> str:
    escaped = value.replace("'", "''")
    return f"{prefix}'{escaped}'"


def _plain(value: object) -> str:
    """Numbers, and everything that is written as a text."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float | Decimal):
        return str(value)
    return _text(str(value))


def _wall(value: object) -> str:
    assert isinstance(value, datetime)
    return value.replace(tzinfo=None).isoformat(" ", "milliseconds")


def _postgresql(name: str, value: object) -> str:
    match value:
        case bool():
            return str(value)
        case bytes():
            return f"'\\x{value.hex()}'"
        case datetime():
            return f"'{_wall(value)}{'+00' if name == 'at' else ''}'"
    return _plain(value)


def _mysql(_name: str, value: object) -> str:
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"'{_wall(value)}'"
        case str():
            return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"
    return _plain(value)


def _sqlite(name: str, value: object) -> str:
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"'{_wall(value).replace(' ', 'T')}Z'" if name == "at" else f"'{_wall(value)}'"
    return _plain(value)


def _sqlserver(name: str, value: object) -> str:
    match value:
        case str():
            return _text(value, "N")
        case bytes():
            return f"0x{value.hex()}"
        case datetime():
            offset = "+00:00" if name == "at" else ""
            return f"'{_wall(value).replace(' ', 'T')}{offset}'"
    return _plain(value)


def _oracle(name: str, value: object) -> str:
    match value:
        case str():
            return _oracle_text(value)
        case bytes():
            return f"HEXTORAW('{value.hex()}')"
        case datetime():
            zone = " +00:00" if name == "at" else ""
            return f"TIMESTAMP '{_wall(value)}{zone}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return f"{value!r}d"
    return _plain(value)


def _oracle_text(value: str) -> str:
    if value.isascii():
        return _text(value)
    units = value.encode("utf-16-be").hex()
    escaped = "".join(f"\\{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f"UNISTR('{escaped}')"


POSTGRESQL: Final = Layout(
    types={
        "id": "int PRIMARY KEY",
        "qty": "int",
        "big": "bigint",
        "price": "numeric(12,2)",
        "ratio": "double precision",
        "name": "text",
        "flag": "boolean",
        "born": "date",
        "seen": "timestamp",
        "at": "timestamptz",
        "token": "uuid",
        "raw": "bytea",
    },
    literal=_postgresql,
)
MYSQL: Final = Layout(
    types={
        "id": "int PRIMARY KEY",
        "qty": "int",
        "big": "bigint",
        "price": "decimal(12,2)",
        "ratio": "double",
        "name": "varchar(60) COLLATE utf8mb4_general_ci",
        "flag": "tinyint(1)",
        "born": "date",
        "seen": "datetime(3)",
        "at": "timestamp(3) NULL",
        "token": "uuid",
        "raw": "varbinary(20)",
    },
    literal=_mysql,
    quote="``",
    end=" CHARACTER SET utf8mb4",
)
SQLITE: Final = Layout(
    types={
        "id": "INTEGER PRIMARY KEY",
        "qty": "INTEGER",
        "big": "BIGINT",
        "price": "DECIMAL(12,2)",
        "ratio": "REAL",
        "name": "TEXT",
        "flag": "BOOLEAN",
        "born": "DATE",
        "seen": "DATETIME",
        "at": "TIMESTAMP",
        "token": "TEXT",
        "raw": "BLOB",
    },
    literal=_sqlite,
)
SQLSERVER: Final = Layout(
    types={
        "id": "int NOT NULL PRIMARY KEY",
        "qty": "int",
        "big": "bigint",
        "price": "decimal(12,2)",
        "ratio": "float",
        "name": "nvarchar(60) COLLATE Latin1_General_CI_AS",
        "flag": "bit",
        "born": "date",
        "seen": "datetime2(3)",
        "at": "datetimeoffset(3)",
        "token": "uniqueidentifier",
        "raw": "varbinary(20)",
    },
    literal=_sqlserver,
    quote="[]",
)
ORACLE: Final = Layout(
    types={
        "id": "NUMBER(10) PRIMARY KEY",
        "qty": "NUMBER(10)",
        "big": "NUMBER(19)",
        "price": "NUMBER(12,2)",
        "ratio": "BINARY_DOUBLE",
        "name": "NVARCHAR2(60)",
        "flag": "NUMBER(1)",
        "born": "DATE",
        "seen": "TIMESTAMP(3)",
        "at": "TIMESTAMP(3) WITH TIME ZONE",
        "token": "VARCHAR2(36)",
        "raw": "RAW(20)",
    },
    literal=_oracle,
    is_upper=True,
)


def documents() -> list[dict[str, Any]]:
    """MongoDB's rows: what is NULL elsewhere is null in every other row, and absent between."""
    found = []
    for row in ROWS:
        values = {name: _bson(name, getattr(row, name)) for name in COLUMNS}
        if row.id % 2 == 0:
            values = {name: value for name, value in values.items() if value is not None}
        found.append(values)
    return found


def _bson(name: str, value: object) -> object:
    match value:
        case Decimal():
            return Decimal128(value)
        case UUID():
            return Binary.from_uuid(value)
        case datetime():
            return value
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case int() if name == "big":
            return Int64(value)
    return value
