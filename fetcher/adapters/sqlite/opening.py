"""Connections to the record store's file, and what is done to it before it is used."""

import sqlite3
from pathlib import Path
from typing import Final

from fetcher.adapters.sqlite import schema
from fetcher.adapters.sqlite.damaged_texts import text_of
from fetcher.adapters.sqlite.metadata_filter import add_metadata_function
from fetcher.adapters.sqlite.still_file import still_address

_FILE_MODE: Final = 0o600


def make_private(path: Path) -> None:
    """Only the owner may read the file; SQLite gives its companions the same mode.

    An existing file is never opened here: closing it would drop the locks that this process holds
    on it (POSIX, "How To Corrupt An SQLite Database File" 2.2).
    """
    try:
        path.touch(mode=_FILE_MODE, exist_ok=False)
    except FileExistsError:
        path.chmod(_FILE_MODE)


def connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    return _set_up(
        sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    )


def connect_still(path: Path) -> sqlite3.Connection:
    address = still_address(path)
    return _set_up(
        sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    )


def _set_up(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.row_factory = sqlite3.Row
    connection.text_factory = text_of
    connection.execute("PRAGMA trusted_schema = OFF")
    add_metadata_function(connection)
    return connection


def unfit(reader: sqlite3.Connection) -> str | None:
    """What keeps a file that cannot be changed from being read; None where nothing does."""
    version = reader.execute("PRAGMA user_version").fetchone()[0]
    if version != schema.VERSION:
        return f"has schema {version}, not the {schema.VERSION} that is read here"
    return None


def prepare(writer: sqlite3.Connection) -> str | None:
    """Set the file up; what is wrong with it, None where nothing is."""
    version = writer.execute("PRAGMA user_version").fetchone()[0]
    is_empty = writer.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if version > schema.VERSION:
        return f"has schema {version}, newer than the {schema.VERSION} that is known here"
    if version == 0 and not is_empty:
        return "is a database of something else"
    if writer.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        return "lies where SQLite cannot keep a write-ahead log"
    # In WAL, NORMAL loses the last commits on a power cut, and a lost terminal state is a lost job.
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("PRAGMA journal_size_limit = 67108864")
    for step in range(version, schema.VERSION):
        # One transaction a version: who is stopped in between goes on where it was.
        writer.execute("BEGIN IMMEDIATE")
        schema.STEPS[step](writer)
        writer.execute(f"PRAGMA user_version = {step + 1}")
        writer.execute("COMMIT")
    return None
