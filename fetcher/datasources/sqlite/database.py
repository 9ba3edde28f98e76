"""A SQLite file opened to be read, and nothing else (design section 8).

The file lies under the operator's folder, whatever links say. The connection cannot write, attach,
load extensions or change its settings, whatever the file's own schema would like to do. Calls block
and run in threads; cancelling the caller stops the running statement.
"""

import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import trio

from fetcher.datasources.sqlite.filters import add_functions
from fetcher_engine import SourceFailure, Stage

T = TypeVar("T")

STOP_CHECK_OPERATIONS: Final = 20_000
"""Steps of SQLite's machine between two looks at the stop flag: about a millisecond."""

LOCK_PAUSE_SECONDS: Final = 0.05
CLOSE_SECONDS: Final = 2.0

_THREADS: Final = trio.CapacityLimiter(8)
_CLOSING_THREADS: Final = trio.CapacityLimiter(8)

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


class SqliteDatabase:
    """One read-only connection; used by one task."""

    def __init__(self, connection: sqlite3.Connection, *, statement_seconds: float) -> None:
        self._connection = connection
        self._statement_seconds = statement_seconds
        self._stop = False
        self._give_up_at = 0.0
        connection.set_progress_handler(self._should_stop, STOP_CHECK_OPERATIONS)

    @classmethod
    async def open(
        cls,
        folder: SqliteFolder,
        database_name: str,
        *,
        statement_seconds: float,
        max_cell_bytes: int,
    ) -> "SqliteDatabase":
        """Raise SourceFailure."""
        outcome = await trio.to_thread.run_sync(
            _opened, folder, database_name, max_cell_bytes, limiter=_THREADS
        )
        if isinstance(outcome, SourceFailure):
            raise outcome
        return cls(outcome, statement_seconds=statement_seconds)

    async def begin(self, *, lock_seconds: float) -> None:
        """Take the snapshot: all reads until :meth:`close` see the same state."""
        give_up_at = trio.current_time() + lock_seconds
        while True:
            try:
                return await self.run(_begin_snapshot, Stage.SESSION)
            except SourceFailure as failure:
                if failure.reason != "lock_timeout" or trio.current_time() >= give_up_at:
                    raise
            await trio.sleep(LOCK_PAUSE_SECONDS)

    async def run(
        self,
        work: Callable[[sqlite3.Connection], T],
        stage: Stage,
        *,
        table: str | None = None,
    ) -> T:
        """Run ``work`` in a thread and wait for it, also when cancelled: it is stopped then.

        Raise SourceFailure, its own or one for what SQLite says.
        """
        self._stop = False
        self._give_up_at = time.monotonic() + self._statement_seconds
        outcomes: list[T | SourceFailure] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_when_cancelled)
            outcomes.append(
                await trio.to_thread.run_sync(self._outcome, work, stage, table, limiter=_THREADS)
            )
            nursery.cancel_scope.cancel()
        outcome = outcomes[0]
        if isinstance(outcome, SourceFailure):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Idempotent; never raises, takes 2 seconds at most. A file system that has not answered by
        then is left to its thread. Never waits for the statements of others."""
        with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_SECONDS):
            await trio.to_thread.run_sync(
                self._connection.close, limiter=_CLOSING_THREADS, abandon_on_cancel=True
            )

    def _should_stop(self) -> bool:
        return self._stop or time.monotonic() > self._give_up_at

    async def _stop_when_cancelled(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._stop = True

    def _outcome(
        self, work: Callable[[sqlite3.Connection], T], stage: Stage, table: str | None
    ) -> T | SourceFailure:
        try:
            return work(self._connection)
        except SourceFailure as failure:
            return failure
        except sqlite3.Error as error:
            return failure_of(error, stage, table)


def failure_of(error: sqlite3.Error, stage: Stage, table: str | None) -> SourceFailure:
    """What SQLite's result code says; its text is only searched for what classifies it."""
    code = getattr(error, "sqlite_errorcode", None)
    text = str(error)
    if table is not None and text.startswith(("no such table", "no such column")):
        return SourceFailure(Stage.SCHEMA, "schema changed", table=table)
    reason = _REASONS.get(code & 0xFF, "unknown") if code is not None else "unknown"
    return SourceFailure(stage, reason, table=table)


def _opened(
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


def _begin_snapshot(connection: sqlite3.Connection) -> None:
    if not connection.in_transaction:
        connection.execute("BEGIN")
    # the transaction begins with its first read
    connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()


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
