"""The statements of a run: tables of a database, and who reads them there."""

from collections.abc import Sequence
from typing import Final

from fetcher.domain.connections import SourceType
from scripts.types_document.golden import GoldenValue, matrix
from tests.operators import layouts
from tests.operators.layouts import Layout

LAYOUTS: Final = {
    SourceType.POSTGRESQL: layouts.POSTGRESQL,
    SourceType.MYSQL: layouts.MYSQL,
    SourceType.SQL_SERVER: layouts.SQLSERVER,
    SourceType.ORACLE: layouts.ORACLE,
}
GOLDEN: Final = {
    SourceType.POSTGRESQL: "postgresql",
    SourceType.MYSQL: "mysql",
    SourceType.SQL_SERVER: "sqlserver",
    SourceType.ORACLE: "oracle",
    SourceType.MONGODB: "mongodb",
}
READING: Final = {
    SourceType.POSTGRESQL: "SELECT pid FROM pg_stat_activity WHERE usename = current_user"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state <> 'idle'",
    SourceType.MYSQL: "SELECT id FROM information_schema.processlist"
    " WHERE id <> CONNECTION_ID() AND user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"
    " AND command <> 'Sleep'",
    SourceType.SQL_SERVER: "SELECT CONVERT(nvarchar(10), session_id) FROM sys.dm_exec_requests"
    " WHERE session_id <> @@SPID AND user_id = USER_ID() AND database_id = DB_ID()",
    SourceType.ORACLE: "SELECT TO_CHAR(sid) FROM v$session WHERE username = USER"
    " AND sid <> SYS_CONTEXT('USERENV', 'SID')",
}
"""Sessions of this user that do something, but for the one that asks. Between two fetches Oracle's
do nothing, and a transaction that only reads is none: there all are seen."""

_WIDE: Final = {
    SourceType.POSTGRESQL: "text",
    SourceType.MYSQL: "text",
    SourceType.SQL_SERVER: "nvarchar(1000)",
    SourceType.ORACLE: "VARCHAR2(1000)",
}
_INTEGER: Final = {SourceType.ORACLE: "NUMBER(10)"}
WIDE_CHARS: Final = 1000


def golden_values(kind: SourceType) -> Sequence[GoldenValue]:
    """Those that a statement can write."""
    return [each for each in matrix(GOLDEN[kind]).values if each.value]


def golden_setup(kind: SourceType) -> Sequence[str]:
    return matrix(GOLDEN[kind]).setup


def make_golden(kind: SourceType, table: str, value: GoldenValue) -> Sequence[str]:
    written = value.value
    if kind is SourceType.POSTGRESQL:
        of = "int" if value.declared == "serial" else value.declared
        written = f"({written})::{of}"
    made = [
        f"CREATE TABLE {table} (v {value.declared})",
        f"INSERT INTO {table} (v) VALUES ({written})",
    ]
    if kind is SourceType.MYSQL:
        sets = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"
        return [sets, *made]
    return made


def make_wide(kind: SourceType, table: str) -> Sequence[str]:
    """A table of one row, to be doubled."""
    integer = _INTEGER.get(kind, "int")
    filled = "x" * WIDE_CHARS
    return [
        f"CREATE TABLE {table} (id {integer}, note {_WIDE[kind]})",
        f"INSERT INTO {table} (id, note) VALUES (0, '{filled}')",
    ]


def doubled(table: str, count: int) -> str:
    return f"INSERT INTO {table} (id, note) SELECT id + {count}, note FROM {table}"


def make_things(kind: SourceType, table: str) -> Sequence[str]:
    layout: Layout = LAYOUTS[kind]
    return [layout.create(table), *layout.inserts(table)]


def golden_text(kind: SourceType) -> str:
    """What a run sends, for a server that nobody has here."""
    lines = ["# regenerate: python -m tests.verify.golden"]
    lines += make_things(kind, "things")
    lines += [*make_wide(kind, "wide"), doubled("wide", 4), READING[kind], dropped("wide")]
    lines += [line for each in golden_values(kind) for line in make_golden(kind, "type", each)]
    return "\n".join(["\n\n".join(lines), ""])


def dropped(table: str) -> str:
    return f"DROP TABLE {table}"
