"""From a connection's database name to a file that is opened to be read, and nothing else.

The file lies under the operator's folder, whatever links say. The connection cannot write, attach,
load extensions or change its settings, whatever the file's own schema would like to do.
"""

import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fetcher.datasources.sqlite.connection import SourceConnection
from fetcher.datasources.sqlite.errors import UNREADABLE, failure_of
from fetcher.datasources.sqlite.filters import add_functions
from fetcher_engine import SourceFailure, Stage

_READABLE_PRAGMAS: Final = frozenset({"table_list", "table_xinfo"})
_REFUSED_FUNCTIONS: Final = frozenset({"load_extension", "fts3_tokenizer"})
_ALLOWED_ACTIONS: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_TRANSACTION,
    }
)


_COMPANIONS: Final = ("-wal", "-shm", "-journal")
"""What SQLite opens beside a database, without being told so."""


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file that may be opened, as it was when it was judged."""

    path: Path
    device: int
    inode: int


class SqliteFolder:
    """The folder under which sources lie."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def file(self, database_name: str) -> JudgedFile:
        """The file behind a connection's database name; blocking, but on no file that is a pipe.

        Raise SourceFailure ``path_refused`` for what lies elsewhere once links are followed, or is
        no regular file, or has something else beside it where its journal would be;
        ``database_missing`` for what does not exist.
        """
        found: JudgedFile | None = None
        problem = "database_missing"
        try:
            root = self._root.resolve(strict=True)
            wanted = (root / database_name).resolve(strict=False)
            if wanted.is_relative_to(root):
                facts = wanted.lstat()
                if stat.S_ISREG(facts.st_mode) and not _has_odd_companions(wanted):
                    found = JudgedFile(wanted, facts.st_dev, facts.st_ino)
            if found is None:
                problem = "path_refused"
        except (OSError, ValueError, RuntimeError):
            # missing; a NUL in the name; links that go round in circles
            pass
        if found is None:
            raise SourceFailure(Stage.SESSION, problem)
        return found

    def confirm(self, database_name: str, judged: JudgedFile) -> None:
        """Raise SourceFailure where the name has come to mean another file."""
        if self.file(database_name) != judged:
            raise SourceFailure(Stage.SESSION, "path_refused")


def _has_odd_companions(path: Path) -> bool:
    for suffix in _COMPANIONS:
        try:
            facts = path.with_name(path.name + suffix).lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(facts.st_mode):
            return True
    return False


def open_file(
    folder: SqliteFolder, database_name: str, max_cell_bytes: int
) -> sqlite3.Connection | SourceFailure:
    """Blocking, on a file system that does not answer for ever.

    SQLite opens by name only, so the name is judged again once it has: a link that was put in its
    way in between is noticed. A descriptor of our own would help no further. SQLite would follow
    ``/proc/self/fd`` back to the name, and closing one ends the locks of all who read the file.
    """
    connection: sqlite3.Connection | None = None
    try:
        judged = folder.file(database_name)
        connection = sqlite3.connect(
            f"{judged.path.as_uri()}?mode=ro",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            factory=SourceConnection,
        )
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        # a whole row must fit too; a single cell is judged when it is read
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 * max_cell_bytes)
        # Their first use declares these virtual tables, by steps that the authorizer must refuse.
        connection.execute("SELECT 1 FROM pragma_table_list AS l, pragma_table_xinfo(l.name)")
        folder.confirm(database_name, judged)
        add_functions(connection)
        connection.set_authorizer(_authorized)
    except SourceFailure as failure:
        if connection is not None:
            connection.close()
        return failure
    except UNREADABLE as error:
        if connection is not None:
            connection.close()
        return failure_of(error, Stage.SESSION, None)
    return connection


def _authorized(
    action: int,
    first: str | None,
    second: str | None,
    database: str | None,  # noqa: ARG001 - SQLite gives five
    inner: str | None,  # noqa: ARG001 - see above
) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        allowed = (second or "").lower() not in _REFUSED_FUNCTIONS
    elif action == sqlite3.SQLITE_PRAGMA:
        allowed = (first or "").lower() in _READABLE_PRAGMAS
    else:
        allowed = action in _ALLOWED_ACTIONS
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
