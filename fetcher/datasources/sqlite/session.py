"""One file being read. Calls block and run in threads; whoever is cancelled stops the statement."""

import sqlite3
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import trio

from fetcher.datasources.connecting import TIMEOUT
from fetcher.datasources.sqlite.connect import SqliteFolder, open_file
from fetcher.datasources.sqlite.errors import UNREADABLE, failure_of
from fetcher_engine import SourceFailure, Stage

T = TypeVar("T")

STOP_CHECK_OPERATIONS: Final = 20_000
"""Steps of SQLite's machine between two looks at the stop flag: about a millisecond."""

LOCK_PAUSE_SECONDS: Final = 0.05
OPEN_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 2.0

_THREADS: Final = trio.CapacityLimiter(8)
_OPENING_THREADS: Final = trio.CapacityLimiter(8)
_CLOSING_THREADS: Final = trio.CapacityLimiter(8)


class _Opening:
    """A connection that is being opened, for whoever may not wait for it to the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._is_abandoned = False

    def run(
        self, open_it: Callable[[], sqlite3.Connection | SourceFailure]
    ) -> sqlite3.Connection | SourceFailure:
        outcome = open_it()
        if isinstance(outcome, SourceFailure):
            return outcome
        with self._lock:
            self._opened = outcome
            is_abandoned = self._is_abandoned
        if is_abandoned:
            outcome.close()
        return outcome

    def abandon(self) -> None:
        """Nobody takes the connection: it is closed, by its thread where that still opens it."""
        with self._lock:
            self._is_abandoned = True
            opened = self._opened
        if opened is not None:
            opened.close()


class Session:
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
    ) -> "Session":
        """Raise SourceFailure. A file system that does not answer in time is left to its thread."""
        opening = _Opening()
        outcome: sqlite3.Connection | SourceFailure = SourceFailure(Stage.SESSION, TIMEOUT)
        try:
            with trio.move_on_after(OPEN_SECONDS):
                outcome = await trio.to_thread.run_sync(
                    opening.run,
                    partial(open_file, folder, database_name, max_cell_bytes),
                    limiter=_OPENING_THREADS,
                    abandon_on_cancel=True,
                )
        finally:
            if isinstance(outcome, SourceFailure):
                opening.abandon()
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
        except UNREADABLE as error:
            return failure_of(error, stage, table)


def _begin_snapshot(connection: sqlite3.Connection) -> None:
    if not connection.in_transaction:
        connection.execute("BEGIN")
    # the transaction begins with its first read
    connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
