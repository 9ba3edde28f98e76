"""One MySQL or MariaDB session: short statements, and the rows of one long one at a time.

The driver blocks, so its calls run in a thread. A task that is cancelled gets it back by the socket
being shut; :meth:`Session.close` then also ends what the server is still doing.
"""

import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import trio

from fetcher.datasources.mysql.connect import Opened, connect
from fetcher.datasources.mysql.errors import (
    PROTOCOL,
    SNAPSHOT_REFUSED_CODES,
    TIMEOUT,
    code_of,
    statement_failure,
)
from fetcher.datasources.mysql.fenced_packets import CutRows
from fetcher.datasources.mysql.link import Link, Row
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import SourceThreads, ThreadKind
from fetcher_engine import SourceFailure, Stage

CANCEL_SECONDS: Final = 2.0
SETUP_SECONDS: Final = 5.0

LINGER_SECONDS: Final = 0.5
"""Rows that have come are handed on after this time, however few."""

_OLDEST: Final = {True: (10, 2), False: (5, 7)}
"""By whether it is MariaDB."""

_KILLERS: Final = ThreadKind(16)
"""Threads that end statements: they must not wait behind those that run them."""

_SETUP: Final = """SET SESSION sql_mode = '', time_zone = '+00:00', sql_auto_is_null = 0,
 sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_buffer_result = 0,
 net_write_timeout = 600, net_read_timeout = 600, wait_timeout = {idle},
 lock_wait_timeout = {lock}, innodb_lock_wait_timeout = {lock}, {limit}"""
"""Spec datasources 12.2. Without any ``sql_mode`` backslashes escape, ``char`` columns come without
padding, and dates that are none are shown as they are stored. A limit on rows or a NULL that means
"the last inserted" would quietly change what is read."""

_SETTINGS_HOLD: Final = (
    "SELECT @@SESSION.sql_mode, @@SESSION.time_zone, @@SESSION.sql_auto_is_null,"
    " @@SESSION.sql_select_limit"
)
_HELD: Final[Row] = ("", "+00:00", "0", "18446744073709551615")
"""Of all settings those that decide what a value or a condition means, and which rows come."""

_TRANSACTION: Final = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)

T = TypeVar("T")


class Session:
    """Owned by one task. Every method but :meth:`close` raises SourceFailure."""

    def __init__(self, opened: Opened, target: Target, *, statement_seconds: float) -> None:
        self._opened = opened
        self._target = target
        self._statement_seconds = statement_seconds
        self._busy = False
        self._closed = False
        self._checks_settings = False
        self.threads: SourceThreads = target.threads
        self.is_mariadb = "mariadb" in opened.link.server_version.lower()

    @classmethod
    async def open(
        cls, target: Target, *, statement_seconds: float, lock_seconds: float
    ) -> "Session":
        """Connect and prepare the session; cancelled or failed, it is closed again."""
        session = cls(await connect(target), target, statement_seconds=statement_seconds)
        prepared = False
        try:
            with trio.move_on_after(SETUP_SECONDS):
                await session._prepare(statement_seconds, lock_seconds)
                prepared = True
            if not prepared:
                raise SourceFailure(Stage.SESSION, TIMEOUT)
        finally:
            if not prepared:
                await session.close()
        return session

    async def begin_snapshot(self) -> bool:
        """Read from here on as of one moment. False: the server says that it begins none."""
        for statement in _TRANSACTION:
            if not await self._begins(statement):
                return False
        return True

    async def check_settings(self) -> None:
        """For reading without a snapshot: now, and before each statement that gives rows.

        Raise SourceFailure ``pooled`` where a proxy lets another session answer than the one that
        was prepared: outside of a transaction it is free to.
        """
        self._checks_settings = True
        rows = await self.execute(_SETTINGS_HOLD, Stage.SESSION)
        if list(rows) != [_HELD]:
            raise SourceFailure(Stage.SESSION, "pooled")

    async def execute(
        self, statement: str, stage: Stage, *, table: str | None = None
    ) -> Sequence[Row]:
        """Run one short statement to its end."""
        rows: Sequence[Row] | None = None
        with trio.move_on_after(self._statement_seconds + SETUP_SECONDS):
            rows = await self._call(lambda: self._opened.link.run(statement), stage, table)
            self._busy = False
        if rows is None:
            raise SourceFailure(stage, TIMEOUT, table=table)
        return rows

    async def begin_rows(self, statement: str, *, fences: int, table: str, filtered: bool) -> None:
        """Send a statement whose rows :meth:`read_rows` gives; wait until they begin."""
        if self._checks_settings:
            await self.check_settings()
        begun = False
        with trio.move_on_after(self._statement_seconds + SETUP_SECONDS):
            await self._call(
                lambda: self._opened.link.begin_rows(statement, fences=fences),
                Stage.QUERY,
                table,
                filtered,
            )
            begun = True
        if not begun:
            raise SourceFailure(Stage.QUERY, TIMEOUT, table=table)

    async def read_rows(
        self, wanted_bytes: int, join: Callable[[CutRows], bytes], *, table: str
    ) -> tuple[bytes, int, bool]:
        """The next rows with commas between them, how many they are, and whether they are the last.

        ``join`` runs in the thread, on some rows at a time. They are handed on when there are
        ``wanted_bytes``, or some and time has passed.
        """
        answer = await self._call(
            lambda: _gathered(self._opened.link, wanted_bytes, join), Stage.ROWS, table
        )
        self._busy = not answer[2]
        return answer

    async def rest(self) -> None:
        """Nothing of what was asked of the session is left in it: it may wait for other work."""
        await self._call(self._opened.link.reset, Stage.SESSION, None)
        self._busy = False
        if self._opened.link.is_in_transaction:
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def resume(self, *, statement_seconds: float, lock_seconds: float) -> None:
        """Prepare a session that waited; this also shows that the server answers."""
        self._statement_seconds = statement_seconds
        await self._prepare(statement_seconds, lock_seconds)

    async def close(self) -> None:
        """Idempotent; never raises, takes 2 seconds at most."""
        if self._closed:
            return
        self._closed = True
        try:
            with trio.CancelScope(shield=True), trio.move_on_after(CANCEL_SECONDS):
                if self._busy:
                    await self._end_statement()
                else:
                    await self._opened.thread.run(self._opened.link.take_leave)
        finally:
            self._opened.cut()
            self._opened.release()

    async def _prepare(self, statement_seconds: float, lock_seconds: float) -> None:
        if (
            _version(self._opened.link.server_version, mariadb=self.is_mariadb)
            < _OLDEST[self.is_mariadb]
        ):
            raise SourceFailure(Stage.SESSION, "unsupported_version")
        limit = (
            f"max_statement_time = {max(0.001, statement_seconds):f}"
            if self.is_mariadb
            else f"max_execution_time = {max(1, math.ceil(statement_seconds * 1000))}"
        )
        await self.execute(
            _SETUP.format(
                idle=max(60, math.ceil(statement_seconds)),
                lock=max(1, math.ceil(lock_seconds)),
                limit=limit,
            ),
            Stage.SESSION,
        )
        if not self._opened.link.escapes_backslashes:
            # our LIKE conditions hold one
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def _begins(self, statement: str) -> bool:
        """Whether a step to the snapshot is taken; False only for the server's own refusal."""

        def attempt() -> bool:
            try:
                self._opened.link.run(statement)
            except Exception as error:
                if code_of(error) in SNAPSHOT_REFUSED_CODES:
                    return False
                raise
            return True

        with trio.move_on_after(self._statement_seconds + SETUP_SECONDS):
            is_taken = await self._call(attempt, Stage.SESSION, None)
            self._busy = False
            return is_taken
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def _call(
        self, work: Callable[[], T], stage: Stage, table: str | None, filtered: bool = False
    ) -> T:
        self._busy = True
        failure: SourceFailure | None = None
        answers: list[T] = []
        try:
            answers.append(await self._opened.thread.run(work))
        except SourceFailure as told:
            failure = told
        except Exception as error:  # noqa: BLE001 - every failure of the driver is classified
            failure = statement_failure(stage, error, table=table, filtered=filtered)
        if failure is not None:
            raise failure
        return answers[0]

    async def _end_statement(self) -> None:
        """From a session of its own, to the address where the statement runs."""
        try:
            killer = await connect(self._target, address=self._opened.address, kind=_KILLERS)
        except SourceFailure:
            # nobody there to take it: shutting the socket has to do
            return
        try:
            statement = f"KILL QUERY {self._opened.link.thread_id}"
            await killer.thread.run(lambda: killer.link.run(statement))
        except Exception:  # noqa: BLE001, S110 - a statement that has ended cannot be killed
            pass
        finally:
            killer.cut()
            killer.release()


def _gathered(
    link: Link, wanted_bytes: int, join: Callable[[CutRows], bytes]
) -> tuple[bytes, int, bool]:
    """Small pieces are joined: large ones would leave the processor's caches between two steps."""
    pieces: list[bytes] = []
    row_count, size, ended = 0, 0, False
    hand_on_at = time.monotonic() + LINGER_SECONDS
    while not ended and (not pieces or (size < wanted_bytes and time.monotonic() < hand_on_at)):
        rows, ended = link.receive_rows()
        if rows.count:
            pieces.append(join(rows))
            row_count += rows.count
            size += len(pieces[-1])
    return b",".join(pieces), row_count, ended


def _version(text: str, *, mariadb: bool) -> tuple[int, ...]:
    """``5.5.5-`` stands before the version of an older MariaDB, for replicas."""
    if mariadb:
        text = text.removeprefix("5.5.5-")
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
