"""From a connection's database name to a file that is opened to be read, and nothing else.

The file lies under the operator's folder, whatever links say. The connection cannot write, attach,
load extensions or change its settings, whatever the file's own schema would like to do.
"""

import sqlite3
import stat
from pathlib import Path
from typing import Final

from fetcher.datasources.sqlite.errors import failure_of
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


class SqliteFolder:
    """The folder under which sources lie."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def file(self, database_name: str) -> Path:
        """The file behind a connection's database name; blocking.

        Raise SourceFailure ``path_refused`` for what lies elsewhere once links are followed, or is
        no regular file, ``database_missing`` for what does not exist.
        """
        found: Path | None = None
        problem = "database_missing"
        try:
            root = self._root.resolve(strict=True)
            wanted = (root / database_name).resolve(strict=False)
            if not wanted.is_relative_to(root):
                problem = "path_refused"
            elif stat.S_ISREG(wanted.stat().st_mode):
                found = wanted
            else:
                problem = "path_refused"
        except (OSError, ValueError, RuntimeError):
            # missing; a NUL in the name; links that go round in circles
            pass
        if found is None:
            raise SourceFailure(Stage.SESSION, problem)
        return found


def open_file(
    folder: SqliteFolder, database_name: str, max_cell_bytes: int
) -> sqlite3.Connection | SourceFailure:
    connection: sqlite3.Connection | None = None
    try:
        path = folder.file(database_name)
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        # a whole row must fit too; a single cell is judged when it is read
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 * max_cell_bytes)
        # Their first use declares these virtual tables, by steps that the authorizer must refuse.
        connection.execute("SELECT 1 FROM pragma_table_list AS l, pragma_table_xinfo(l.name)")
        add_functions(connection)
        connection.set_authorizer(_authorized)
    except SourceFailure as failure:
        return failure
    except sqlite3.Error as error:
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
