"""A copy of the record store's file while a service writes to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from fetcher.adapters.sqlite import schema
from fetcher.adapters.sqlite.still_file import (
    READ_ONLY,
    is_still,
    lies_read_only,
    still_address,
)
from fetcher.domain.backups import BackupFailed, BackupRejected
from fetcher.domain.errors import PortUnavailable

BUSY_SECONDS: Final = 10.0
_KEPT_RESULTS: Final = "SELECT result_path FROM job WHERE result_path IS NOT NULL"
_RESULT_CAN_BE_GONE_FROM: Final = 2


def copy_database(source: Path, target: Path) -> int:
    """One snapshot of all records, as one file without companions; its schema's version.

    Blocks nobody: a reader of a file with a write-ahead log keeps no writer waiting. Raise
    BackupFailed.
    """
    was_still = is_still(source)
    with _told(source, BackupFailed), closing(_open(source)) as original:
        version = _known_version(original, source, BackupFailed)
        target.touch(mode=0o600, exist_ok=False)
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            # All pages in one step: a step's snapshot lasts as long as the step.
            original.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
    if was_still and not is_still(source):
        # It was read without a lock: for somebody who may write there it was not read-only.
        raise BackupFailed(f"{source.name}: was opened by a service meanwhile: try again")
    return version


def check_database(path: Path) -> int:
    """The schema's version of a file that is whole. Raise BackupRejected."""
    with _told(path, BackupRejected), closing(_open(path)) as database:
        version = _known_version(database, path, BackupRejected)
        if database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise BackupRejected(f"{path.name}: its pages do not fit together")
        return version


def kept_results(path: Path) -> list[str]:
    """Keys of the results that the records call stored. Raise BackupFailed."""
    with _told(path, BackupFailed), closing(_open(path)) as database:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        can_be_gone = version >= _RESULT_CAN_BE_GONE_FROM
        condition = " AND result_deleted_at IS NULL" if can_be_gone else ""
        found = database.execute(f"{_KEPT_RESULTS}{condition} ORDER BY completed_at, id")
        return [key for (key,) in found]


def _open(path: Path) -> sqlite3.Connection:
    """An existing file; read only by what is asked of it, since a log may have to be recovered."""
    address = still_address(path) if is_still(path) else f"{path.absolute().as_uri()}?mode=rw"
    database = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _known_version(database: sqlite3.Connection, path: Path, problem: type[BackupFailed]) -> int:
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if version > schema.VERSION:
        raise problem(
            f"{path.name}: has schema {version}, newer than the {schema.VERSION} that is known here"
        )
    if version == 0:
        raise problem(f"{path.name}: is no record store")
    return version


@contextmanager
def _told(path: Path, problem: type[BackupFailed]) -> Iterator[None]:
    """The library's errors by their names alone: their text may hold what lies in the file."""
    name = ""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
    except OSError as error:
        name = type(error).__name__
    if name and lies_read_only(path):
        raise problem(f"{path.name}: cannot be read or copied: {READ_ONLY} ({name})")
    if name:
        raise problem(f"{path.name}: cannot be read or copied ({name})")


def schema_version(path: Path) -> int:
    """Of an existing file, which stays as it is. Blocks; raise PortUnavailable."""
    try:
        with closing(_open(path)) as database:
            return int(database.execute("PRAGMA user_version").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError) as error:
        name = getattr(error, "sqlite_errorname", "unknown")
    raise PortUnavailable(f"the record store cannot be read ({name})")
