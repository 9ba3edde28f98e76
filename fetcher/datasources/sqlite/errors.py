"""Where SQLite's failures become safe words."""

import sqlite3
from typing import Final

from fetcher_engine import SourceFailure, Stage

_REASONS: Final = {
    sqlite3.SQLITE_BUSY: "lock_timeout",
    sqlite3.SQLITE_LOCKED: "lock_timeout",
    sqlite3.SQLITE_NOTADB: "protocol",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_CANTOPEN: "unreadable",
    sqlite3.SQLITE_READONLY: "unreadable",
    sqlite3.SQLITE_IOERR: "unreadable",
    sqlite3.SQLITE_PERM: "forbidden",
    sqlite3.SQLITE_AUTH: "forbidden",
    sqlite3.SQLITE_INTERRUPT: "timeout",
    sqlite3.SQLITE_TOOBIG: "cell_too_large",
    sqlite3.SQLITE_NOMEM: "out_of_resources",
}
"""By primary result code (sqlite.org/rescode.html)."""


UNREADABLE: Final = (sqlite3.Error, UnicodeDecodeError)
"""The latter where the module cannot decode a message of SQLite's that quotes a damaged schema."""


def failure_of(
    error: sqlite3.Error | UnicodeDecodeError, stage: Stage, table: str | None
) -> SourceFailure:
    """What SQLite's result code says; its text is only searched for what classifies it."""
    if isinstance(error, UnicodeDecodeError):
        return SourceFailure(stage, "corrupt", table=table)
    code = getattr(error, "sqlite_errorcode", None)
    text = str(error)
    if table is not None and text.startswith(("no such table", "no such column")):
        return SourceFailure(Stage.SCHEMA, "schema changed", table=table)
    reason = _REASONS.get(code & 0xFF, "unknown") if code is not None else "unknown"
    return SourceFailure(stage, reason, table=table)
