"""One SQL Server session: its settings, its statements, its end (spec datasources 12)."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import trio

from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.sqlserver.connect import CALLS, connect
from fetcher.datasources.sqlserver.errors import PROTOCOL, TIMEOUT
from fetcher.datasources.sqlserver.link import Link, Statement
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import SourceThreads
from fetcher_engine import SourceFailure, Stage

T = TypeVar("T")

CANCEL_SECONDS: Final = 2.0
SETUP_SECONDS: Final = 5.0
_MIN_ROW_BYTES: Final = 16 * 1024 * 1024

_SETUP: Final = (
    "SET LOCK_TIMEOUT {lock};"
    " SET XACT_ABORT ON;"
    " SET DEADLOCK_PRIORITY LOW;"
    " SET TEXTSIZE 2147483647;"
    " SET ROWCOUNT 0;"
    " SET NOCOUNT OFF;"
    " SET CONCAT_NULL_YIELDS_NULL ON;"
    " SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
)
_DATABASE: Final = (
    "SELECT CONVERT(int, snapshot_isolation_state), CONVERT(int, compatibility_level)"
    " FROM sys.databases WHERE database_id = DB_ID()"
)
_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION;"
_ROLLBACK: Final = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;"
_OPEN_TRANSACTIONS: Final = "SELECT @@TRANCOUNT"
_STATE_ON: Final = 1
_OPENJSON_LEVEL: Final = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTraits:
    """What a database allows."""

    has_snapshot: bool
    has_openjson: bool


class Session:
    """Owned by one task. Every method but :meth:`close` raises SourceFailure."""

    def __init__(self, link: Link, threads: SourceThreads, *, statement_seconds: float) -> None:
        self.link = link
        self._thread = DriverThread(threads.of(CALLS), self._interrupt)
        self._killer: threading.Timer | None = None
        self._stopping_since: float | None = None
        self._is_closed = False
        self.statement_seconds = statement_seconds

    @classmethod
    async def open(
        cls,
        target: Target,
        *,
        statement_seconds: float,
        lock_seconds: float,
        max_cell_bytes: int,
    ) -> "Session":
        """Connect and prepare the session; cancelled or failed, it is closed again."""
        # in UTF-16 a cell may take twice its bytes
        max_row_bytes = max(_MIN_ROW_BYTES, 8 * max_cell_bytes)
        link = await connect(target, max_row_bytes=max_row_bytes)
        session = cls(link, target.threads, statement_seconds=statement_seconds)
        prepared = False
        try:
            with trio.move_on_after(SETUP_SECONDS):
                await session._prepare(lock_seconds)
                prepared = True
            if not prepared:
                raise SourceFailure(Stage.SESSION, TIMEOUT)
        finally:
            if not prepared:
                await session.close()
        return session

    async def begin(self) -> DatabaseTraits:
        """Read from here on as of one moment; where the database forbids it, what is committed."""
        rows = await self.rows(Statement(_DATABASE), Stage.SESSION)
        state, level = rows[0] if rows else (0, 0)
        traits = DatabaseTraits(
            has_snapshot=state == _STATE_ON, has_openjson=level >= _OPENJSON_LEVEL
        )
        if traits.has_snapshot:
            await self.rows(Statement(_SNAPSHOT), Stage.SESSION)
        return traits

    async def rows(
        self, statement: Statement, stage: Stage, *, table: str | None = None
    ) -> list[list[Any]]:
        """All rows of a small result."""
        return await self._limited(
            lambda: self.link.rows(statement, stage, table), stage, table=table
        )

    async def execute(self, statement: Statement, stage: Stage, *, table: str) -> None:
        """Send a statement and wait until its rows begin."""
        await self._limited(lambda: self.link.execute(statement, stage, table), stage, table=table)

    async def run(self, work: Callable[[], T]) -> T:
        """Blocking work on the link. Cancelled, the server is asked to stop."""
        return await self._thread.run(work)

    async def rest(self) -> None:
        """End the transaction, and see that it has ended."""
        await self.rows(Statement(_ROLLBACK), Stage.SESSION)
        rows = await self.rows(Statement(_OPEN_TRANSACTIONS), Stage.SESSION)
        if self._stopping_since is not None or rows != [[0]]:
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def resume(self, *, statement_seconds: float, lock_seconds: float) -> None:
        """Prepare a session that waited; this also shows that the server answers."""
        self.statement_seconds = statement_seconds
        await self._prepare(lock_seconds)

    async def close(self) -> None:
        """Stop what the server still does, then hang up: 2 seconds, shielded. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self.link.is_busy:
                with trio.CancelScope(shield=True), trio.move_on_after(self._stopping_seconds()):
                    await self._thread.run(self.link.stop)
        finally:
            if self._killer is not None:
                self._killer.cancel()
            self.link.shut()
            self.link.close()

    async def _prepare(self, lock_seconds: float) -> None:
        setup = _SETUP.format(lock=max(1, math.ceil(lock_seconds * 1000)))
        await self.rows(Statement(setup), Stage.SESSION)

    async def _limited(self, work: Callable[[], T], stage: Stage, *, table: str | None) -> T:
        """The server has no limit of its own for a statement: ours sends attention."""
        with trio.move_on_after(self.statement_seconds):
            return await self._thread.run(work)
        raise SourceFailure(stage, TIMEOUT, table=table)

    def _interrupt(self) -> None:
        """The running call ends: by the server's answer to attention, else by the socket's end."""
        if self._stopping_since is None and not self._is_closed and self.link.ask_to_stop():
            self._stopping_since = trio.current_time()
            self._killer = threading.Timer(CANCEL_SECONDS, self.link.shut)
            self._killer.daemon = True
            self._killer.start()
        else:
            self.link.shut()

    def _stopping_seconds(self) -> float:
        if self._stopping_since is None:
            return CANCEL_SECONDS
        return max(0.0, self._stopping_since + CANCEL_SECONDS - trio.current_time())
