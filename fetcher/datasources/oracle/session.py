"""One Oracle session: blocking calls in threads, ended from outside when need be.

A cancelled call is stopped on the server by the driver's ``cancel``; what has not returned 2
seconds later is ended by shutting the connection.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import oracledb
import trio

from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.oracle.connect import CALLS, Connected, connect
from fetcher.datasources.oracle.errors import (
    PROTOCOL,
    TIMEOUT,
    refuses_snapshot,
    statement_failure,
)
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import SourceThreads, ThreadKind
from fetcher_engine import SourceFailure, Stage

T = TypeVar("T")

CANCEL_SECONDS: Final = 2.0
SETUP_SECONDS: Final = 5.0
CATALOGUE_ROWS: Final = 2000

_CLOSERS: Final = ThreadKind(32)

SETUP: Final = (
    "ALTER SESSION SET NLS_LANGUAGE='AMERICAN' NLS_TERRITORY='AMERICA' NLS_CALENDAR='GREGORIAN'"
    " NLS_SORT='BINARY' NLS_COMP='BINARY' NLS_LENGTH_SEMANTICS='BYTE'"
    " NLS_NUMERIC_CHARACTERS='. '"
    " NLS_DATE_FORMAT='SYYYY-MM-DD HH24:MI:SS'"
    " NLS_TIMESTAMP_FORMAT='SYYYY-MM-DD HH24:MI:SS.FF9'"
    " NLS_TIMESTAMP_TZ_FORMAT='SYYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM' TIME_ZONE='UTC'"
)
"""Spec datasources 12.2. The territory sets formats, so it comes before them."""

CURRENT_USER: Final = "SELECT USER FROM DUAL"
SNAPSHOT: Final = "SET TRANSACTION READ ONLY"


class Session:
    """Owned by one task. Every method but :meth:`close` raises SourceFailure."""

    def __init__(
        self, connected: Connected, threads: SourceThreads, *, statement_seconds: float
    ) -> None:
        self._connection = connected.connection
        self._line = connected.line
        self._statement_seconds = statement_seconds
        self._thread = DriverThread(threads.of(CALLS), self._interrupt)
        self._closers = threads.of(_CLOSERS)
        self._watchdog: threading.Timer | None = None
        self._is_closed = False
        self._is_stopped = False
        self.user = ""

    @classmethod
    async def open(cls, target: Target, *, statement_seconds: float) -> "Session":
        """Connect and prepare the session; cancelled or failed, it is closed again."""
        session = cls(await connect(target), target.threads, statement_seconds=statement_seconds)
        is_prepared = False
        try:
            with trio.move_on_after(SETUP_SECONDS):
                await session.run(session._prepare, Stage.SESSION)
                is_prepared = True
            if not is_prepared:
                raise SourceFailure(Stage.SESSION, TIMEOUT)
        finally:
            if not is_prepared:
                await session.close()
        return session

    async def begin_snapshot(self) -> bool:
        """Every read until the end of the session sees the state of this moment. False: the server
        refuses that, and each statement sees what is committed when it begins."""

        def begin(connection: oracledb.Connection) -> bool:
            connection.rollback()
            with connection.cursor() as cursor:
                try:
                    cursor.execute(SNAPSHOT)
                except oracledb.DatabaseError as error:
                    if not refuses_snapshot(error):
                        raise
                    return False
            return True

        return await self.run(begin, Stage.SESSION)

    async def rows(
        self, statement: str, values: Sequence[object], stage: Stage
    ) -> list[tuple[object, ...]]:
        """All rows of a catalogue's statement."""

        def read(connection: oracledb.Connection) -> list[tuple[object, ...]]:
            with connection.cursor() as cursor:
                cursor.arraysize = CATALOGUE_ROWS
                cursor.prefetchrows = CATALOGUE_ROWS + 1
                cursor.execute(statement, list(values))
                return list(cursor.fetchall())

        return await self.run(read, stage)

    async def run(
        self,
        work: Callable[[oracledb.Connection], T],
        stage: Stage,
        *,
        table: str | None = None,
        round_trip_seconds: float | None = None,
    ) -> T:
        """Run ``work`` in a thread and wait for it; cancelled, it is stopped and waited for.

        No round trip takes longer than the statement may. Raise SourceFailure, its own or one for
        what the driver says.
        """
        seconds = min(round_trip_seconds or self._statement_seconds, self._statement_seconds)
        outcomes: list[T | SourceFailure] = []

        def contained() -> None:
            try:
                if self._is_stopped:
                    outcomes.append(SourceFailure(stage, TIMEOUT, table=table))
                    return
                self._connection.call_timeout = max(1, int(seconds * 1000))
                outcomes.append(work(self._connection))
            except SourceFailure as failure:
                outcomes.append(failure)
            except Exception as error:  # noqa: BLE001 - foreign code; its text stays here
                outcomes.append(statement_failure(stage, error, table=table))
            finally:
                if self._watchdog is not None:
                    self._watchdog.cancel()

        await self._thread.run(contained)
        if not outcomes:
            raise SourceFailure(stage, PROTOCOL, table=table)
        outcome = outcomes[0]
        if isinstance(outcome, SourceFailure):
            raise outcome
        return outcome

    async def rest(self) -> None:
        """End the snapshot; a session whose statement was stopped is refused."""
        if self._is_stopped:
            raise SourceFailure(Stage.SESSION, TIMEOUT)
        await self.run(lambda connection: connection.rollback(), Stage.SESSION)

    async def resume(self, *, statement_seconds: float) -> None:
        """Prepare a session that waited; this also shows that the server answers."""
        self._statement_seconds = statement_seconds
        await self.run(self._prepare, Stage.SESSION)

    async def close(self) -> None:
        """Log off and close; idempotent, never raises, takes 2 seconds at most.

        A session whose statement was stopped is not spoken to any more.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self._is_stopped:
                with trio.CancelScope(shield=True), trio.move_on_after(CANCEL_SECONDS):
                    leaving = DriverThread(self._closers, self._line.shut)
                    await leaving.run(self._log_off)
        finally:
            self._line.close()

    def _log_off(self) -> None:
        # foreign code, and a session that cannot be logged off is cut
        with suppress(Exception):
            self._connection.call_timeout = int(CANCEL_SECONDS * 1000)
            self._connection.close()

    def _interrupt(self) -> None:
        """Ask the server to stop; both from threads, since either could wait for the network."""
        self._is_stopped = True
        self._watchdog = threading.Timer(CANCEL_SECONDS, self._line.shut)
        self._watchdog.daemon = True
        self._watchdog.start()
        threading.Thread(target=self._cancel, name="oracle-cancel", daemon=True).start()

    def _cancel(self) -> None:
        # foreign code, and what it does not stop the watchdog does
        with suppress(Exception):
            self._connection.cancel()

    def _prepare(self, connection: oracledb.Connection) -> None:
        connection.autocommit = False
        connection.module = "fetcher"
        connection.action = "read"
        connection.client_identifier = "fetcher"
        with connection.cursor() as cursor:
            cursor.execute(SETUP)
            cursor.execute(CURRENT_USER)
            row = cursor.fetchone()
        user = row[0] if row else None
        if not isinstance(user, str) or not user:
            raise SourceFailure(Stage.SESSION, PROTOCOL)
        self.user = user
