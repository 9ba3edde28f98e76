"""One SQLite file for one process: one connection writes, a few read, all of them in threads."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeAlias, TypeVar

import structlog
import trio

from fetcher.adapters.sqlite.clock import ClockLook, MachineClock, move_waiting
from fetcher.adapters.sqlite.opening import (
    connect,
    connect_still,
    make_private,
    prepare,
    unfit,
)
from fetcher.adapters.sqlite.still_file import READ_ONLY, is_still, lies_read_only
from fetcher.adapters.sqlite.times import later_ms
from fetcher.domain.errors import PortUnavailable, StartRefused

log = structlog.get_logger(__name__)

T = TypeVar("T")

READERS: Final = 4
BUSY_SECONDS: Final = 5.0
"""How long a statement waits for a lock that another process (a backup, a shell) holds."""
RUN_SECONDS: Final = 5.0
"""How long one transaction may compute."""
QUEUE_SECONDS: Final = 10.0
"""How long a transaction may wait for its turn."""
CLOSE_SECONDS: Final = 10.0

_OLDEST_SQLITE: Final = (3, 37, 0)  # STRICT tables
_STEPS_BETWEEN_LOOKS: Final = 1000

Parameters: TypeAlias = Mapping[str, str | int | bytes | None]


@dataclass(slots=True)
class Session:
    """An open transaction."""

    connection: sqlite3.Connection
    now_ms: int
    """The store's clock, the same for all of the transaction."""
    set_ahead_ms: int = 0
    """By how much it is ahead of where it was furthest back since the process began."""
    _told: set[str] = field(default_factory=set)

    def old_ms(self, seconds: float) -> int:
        """What ended before is so old, by whichever clock of this process wrote its end."""
        return later_ms(self.now_ms - self.set_ahead_ms, -seconds)

    def is_first_time(self, what: str) -> bool:
        """For a word that the log needs once in the life of the process."""
        is_first = what not in self._told
        self._told.add(what)
        return is_first

    def rows(self, statement: str, **parameters: str | int | bytes | None) -> list[sqlite3.Row]:
        return self.connection.execute(statement, parameters).fetchall()

    def row(self, statement: str, **parameters: str | int | bytes | None) -> sqlite3.Row | None:
        found: sqlite3.Row | None = self.connection.execute(statement, parameters).fetchone()
        return found

    def change(self, statement: str, parameters: Parameters) -> int:
        """How many rows were written."""
        return self.connection.execute(statement, parameters).rowcount


class Database:
    """Transactions as functions that run in a thread; every failure is PortUnavailable.

    A write that has begun is finished whatever happens to the caller, within ``BUSY_SECONDS`` and
    ``RUN_SECONDS``; one that waits for its turn is dropped when the caller is cancelled. A read is
    interrupted. With ``synchronous=FULL`` a write that has returned survives a power cut.
    """

    def __init__(
        self,
        writer: sqlite3.Connection,
        readers: list[sqlite3.Connection],
        clock: MachineClock | None = None,
    ) -> None:
        self._clock = clock or MachineClock()
        self._writer = writer
        self._idle_readers = readers
        self._told: set[str] = set()
        self._write_limiter = trio.CapacityLimiter(1)
        self._read_limiter = trio.CapacityLimiter(len(readers))

    @classmethod
    async def open(
        cls, path: Path, *, busy_seconds: float = BUSY_SECONDS, clock: MachineClock | None = None
    ) -> Self:
        """Open the file, or make it with its tables; in a folder that is read-only it is only read.
        Raise StartRefused.
        """
        return await trio.to_thread.run_sync(cls._open, path, busy_seconds, clock)

    async def write(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in one transaction; what it raises undoes it."""
        with trio.move_on_after(QUEUE_SECONDS):
            return await trio.to_thread.run_sync(self._write_now, work, limiter=self._write_limiter)
        raise PortUnavailable("the record store is busy")

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` on one snapshot of the records."""

        def transact(reader: sqlite3.Connection) -> T:
            return _transact(reader, "BEGIN", lambda: work(_session(reader, self._clock.look())))

        return await self._read(transact)

    async def read_row(
        self,
        statement: str,
        made: Callable[[sqlite3.Row], T],
        **parameters: str | int | bytes | None,
    ) -> T | None:
        """What is made of the first row of one statement; None where there is no row."""
        found = await self.read_rows(statement, **parameters)
        return made(found[0]) if found else None

    async def read_rows(
        self, statement: str, **parameters: str | int | bytes | None
    ) -> Sequence[sqlite3.Row]:
        """All rows of one statement.

        It sees one snapshot by itself, and costs half of a transaction, most of which is its
        thread's waiting for the interpreter's lock.
        """

        def fetch(reader: sqlite3.Connection) -> list[sqlite3.Row]:
            return reader.execute(statement, parameters).fetchall()

        return await self._read(fetch)

    async def _read(self, use: Callable[[sqlite3.Connection], T]) -> T:
        with trio.move_on_after(QUEUE_SECONDS):
            return await trio.to_thread.run_sync(self._read_now, use, limiter=self._read_limiter)
        raise PortUnavailable("the record store is busy")

    async def aclose(self) -> None:
        """Close every connection; the caller sees to it that none is used any more."""
        with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_SECONDS):
            await trio.to_thread.run_sync(self._close, abandon_on_cancel=True)

    def _write_now(self, work: Callable[[Session], T]) -> T:
        until = time.monotonic() + RUN_SECONDS

        def transact(writer: sqlite3.Connection) -> T:
            looks: list[ClockLook] = []

            def follow_and_work() -> T:
                looks.append(look := self._clock.look())
                if look.moved_ms:
                    move_waiting(writer, look.moved_ms)
                return work(_session(writer, look, self._told))

            result = _transact(writer, "BEGIN IMMEDIATE", follow_and_work)
            self._followed(looks[0])
            return result

        return _guarded(self._writer, transact, lambda: time.monotonic() > until)

    def _followed(self, look: ClockLook) -> None:
        """It stands in the file that what waits was moved."""
        self._clock.follow(look)
        if look.moved_ms:
            log.warning("clock_was_set", seconds=round(look.moved_ms / 1000, 3))

    def _read_now(self, use: Callable[[sqlite3.Connection], T]) -> T:
        until = time.monotonic() + RUN_SECONDS

        def must_stop() -> bool:
            return time.monotonic() > until or _is_cancelled()

        reader = self._idle_readers.pop()
        try:
            return _guarded(reader, use, must_stop)
        except PortUnavailable:
            trio.from_thread.check_cancelled()
            raise
        finally:
            self._idle_readers.append(reader)

    def _close(self) -> None:
        for connection in (*self._idle_readers, self._writer):
            connection.close()

    @classmethod
    def _open(cls, path: Path, busy_seconds: float, clock: MachineClock | None) -> Self:
        problem = None
        connections: list[sqlite3.Connection] = []
        try:
            if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
                problem = f"needs SQLite 3.37 or later, this one is {sqlite3.sqlite_version}"
            elif is_still(path):
                connections += [connect_still(path) for _ in range(1 + READERS)]
                problem = unfit(connections[0])
            else:
                make_private(path)
                connections.append(connect(path, busy_seconds))
                problem = prepare(connections[0])
                for _ in range(READERS if problem is None else 0):
                    connections.append(connect(path, busy_seconds))
                    connections[-1].execute("PRAGMA query_only = ON")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # the latter where a message quotes a damaged schema, which the module cannot decode
            problem = f"cannot be opened ({_error_name(error)})"
        except OSError as error:
            problem = f"cannot be opened ({type(error).__name__})"
        if problem is not None and lies_read_only(path):
            problem = f"{problem}: {READ_ONLY}"
        if problem is not None:
            for connection in connections:
                connection.close()
            raise StartRefused([f"FETCHER_DATA_DIR: the record store {path.name} {problem}"])
        return cls(connections[0], connections[1:], clock)


def _session(
    connection: sqlite3.Connection, look: ClockLook, told: set[str] | None = None
) -> Session:
    return Session(connection, look.now_ms, look.set_ahead_ms, set() if told is None else told)


def _transact(connection: sqlite3.Connection, begin: str, work: Callable[[], T]) -> T:
    connection.execute(begin)
    result = work()
    connection.execute("COMMIT")
    return result


def _guarded(
    connection: sqlite3.Connection,
    use: Callable[[sqlite3.Connection], T],
    must_stop: Callable[[], bool],
) -> T:
    """The one place where the library's errors become ours: none of its text leaves."""
    failure = None
    try:
        connection.set_progress_handler(must_stop, _STEPS_BETWEEN_LOOKS)
        return use(connection)
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        # A rule of the schema that we broke ourselves: an error of the program, not of the store.
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        failure = PortUnavailable(f"the record store failed ({_error_name(error)})")
    finally:
        connection.set_progress_handler(None, 0)
        _undo(connection)
    raise failure


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        # After a full or failing disk SQLite may have undone it by itself, and says so by an error.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("ROLLBACK")


def _error_name(error: Exception) -> str:
    """SQLite's name of the error; the module's own errors carry none."""
    return str(getattr(error, "sqlite_errorname", "unknown"))


def _is_cancelled() -> bool:
    """Asked from inside of SQLite, where an exception cannot pass."""
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    return False
