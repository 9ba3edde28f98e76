"""One PostgreSQL session, spoken to without a thread: libpq parses, trio waits.

libpq is asked only for what never blocks. A task that is cancelled while it waits leaves at once;
:meth:`Session.close` then also ends what the server is still doing.
"""

import math
from typing import Any, Final

import psycopg
import trio
from psycopg import pq, sql

from fetcher.datasources.postgresql.connect import connect
from fetcher.datasources.postgresql.errors import (
    PROTOCOL,
    RESET,
    SNAPSHOT_REFUSED_STATES,
    TIMEOUT,
    state_of,
    statement_failure,
)
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import SourceThreads
from fetcher_engine import SourceFailure, Stage

CANCEL_SECONDS: Final = 2.0
SETUP_SECONDS: Final = 5.0
OLDEST_VERSION: Final = 110_000

_SETTINGS: Final = """SELECT pg_catalog.set_config('TimeZone', 'UTC', true),
 pg_catalog.set_config('DateStyle', 'ISO, MDY', true),
 pg_catalog.set_config('IntervalStyle', 'postgres', true),
 pg_catalog.set_config('extra_float_digits', '3', true),
 pg_catalog.set_config('standard_conforming_strings', 'on', true),
 pg_catalog.set_config('search_path', '', true),
 pg_catalog.set_config('jit', 'off', true),
 pg_catalog.set_config('max_parallel_workers_per_gather', '0', true),
 pg_catalog.set_config('statement_timeout', {statement}, true),
 pg_catalog.set_config('lock_timeout', {lock}, true),
 pg_catalog.set_config('idle_in_transaction_session_timeout', {statement}, true)"""
"""Spec datasources 12.2. ``extra_float_digits`` 3 gives exact floats before version 12 too.
Compiling a statement that runs once costs more than it saves: seconds, where arrays are unpacked.
One process a query is what we take of somebody else's server, and rows keep the order of a scan.

They end with their transaction: behind a pooler the session goes on to somebody else.
"""

_SNAPSHOT: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_ALONE: Final = b"SET TRANSACTION READ ONLY"
"""Begins a message of several statements, which are one transaction without a block: even a pooler
that hands out its sessions by the statement lets them through."""

_OWN_PROCESS: Final = b"SELECT pg_catalog.pg_backend_pid()"

_OK: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class Session:
    """Owned by one task. Every method but :meth:`close` raises SourceFailure."""

    def __init__(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        threads: SourceThreads,
        *,
        statement_seconds: float,
    ) -> None:
        self._connection = connection
        self._statement_seconds = statement_seconds
        self._settings = b""
        self._last_state: str | None = None
        self.pgconn = connection.pgconn
        self.threads = threads

    @classmethod
    async def open(
        cls, target: Target, *, statement_seconds: float, lock_seconds: float
    ) -> "Session":
        """Connect; cancelled or failed, nothing stays open."""
        session = cls(await connect(target), target.threads, statement_seconds=statement_seconds)
        is_fit = False
        try:
            session._check_server()
            session._limit(statement_seconds, lock_seconds)
            is_fit = True
        finally:
            if not is_fit:
                await session.close()
        return session

    @property
    def server_encoding(self) -> str:
        return (self.pgconn.parameter_status(b"server_encoding") or b"").decode()

    async def execute(
        self, statement: sql.Composable | bytes, stage: Stage, *, table: str | None = None
    ) -> pq.abc.PGresult:
        """Run one statement to its end. A COPY ends here with its first message still unread.

        Outside of a snapshot it is a read-only transaction of its own, with our settings.
        """
        text = statement if isinstance(statement, bytes) else self.quoted(statement)
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            text = b"; ".join((_ALONE, self._settings, text))
        return await self._run(text, stage, table)

    async def begin_snapshot(self) -> bool:
        """Read from here on as of one moment. False: the server says that it begins none; the
        session is of no use any more."""
        self._last_state = None
        try:
            with trio.move_on_after(SETUP_SECONDS) as setup:
                await self._run(b"; ".join((_SNAPSHOT, self._settings)), Stage.SESSION)
        except SourceFailure:
            if not self._was_refused():
                raise
            return False
        if setup.cancelled_caught:
            raise SourceFailure(Stage.SESSION, TIMEOUT)
        self.check_quoting()
        return True

    async def begin_again(self) -> None:
        """After a failed statement: where a snapshot was begun, begin another one."""
        if self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            await self._run(b"ROLLBACK", Stage.SESSION)
            await self.begin_snapshot()

    def check_quoting(self) -> None:
        """Fail where the server would read our constants otherwise than they are written."""
        self._check_encoding()
        if self.pgconn.parameter_status(b"standard_conforming_strings") != b"on":
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def result(self, stage: Stage, *, table: str | None = None) -> pq.abc.PGresult:
        """Wait for the statement's result, or for the start of a COPY."""
        last: pq.abc.PGresult | None = None
        while (found := await self._next_result(stage, table)) is not None:
            last = found
            self._last_state = state_of(found)
            if found.status == pq.ExecStatus.COPY_OUT:
                return found
        if last is None:
            raise SourceFailure(stage, PROTOCOL, table=table)
        if last.status not in _OK:
            raise statement_failure(stage, state_of(last), table=table)
        return last

    async def wait_for_input(self, stage: Stage, *, table: str | None = None) -> None:
        """Wait until the server has sent more, and let libpq take it."""
        try:
            await trio.lowlevel.wait_readable(self.pgconn.socket)
        except psycopg.Error:
            lost = True
        else:
            lost = False
        if lost:
            raise SourceFailure(stage, RESET, table=table)
        self.take_input(stage, table=table)

    def take_input(self, stage: Stage, *, table: str | None = None) -> None:
        """Let libpq take what lies in the socket: at most its buffer, perhaps nothing."""
        try:
            self.pgconn.consume_input()
        except psycopg.Error:
            lost = True
        else:
            lost = False
        if lost:
            raise SourceFailure(stage, RESET, table=table)

    def quoted(self, statement: sql.Composable) -> bytes:
        """The statement as this session's server reads it."""
        return statement.as_bytes(self._connection)

    async def rest(self) -> None:
        """Nothing of what was asked of the session is left in it: it may wait for other work.

        Behind a pooler, which tells of a process that is not the server's, it had better end:
        others wait for its place, and what else is in it is theirs.
        """
        is_idle = self.pgconn.transaction_status == pq.TransactionStatus.IDLE
        ending = b"" if is_idle else b"ROLLBACK; "
        result = await self._run(ending + _OWN_PROCESS, Stage.SESSION)
        if int(result.get_value(0, 0) or 0) != self.pgconn.backend_pid:
            raise SourceFailure(Stage.SESSION, "pooled")
        await self._run(b"DISCARD ALL", Stage.SESSION)
        if self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def resume(self, *, statement_seconds: float, lock_seconds: float) -> None:
        """Prepare a session that waited; this also shows that the server answers."""
        self._limit(statement_seconds, lock_seconds)
        await self._run(_OWN_PROCESS, Stage.SESSION)

    async def close(self) -> None:
        """End the session, here and on the server; never raises, takes 2 seconds at most.

        A statement that still runs is cancelled by a request first: the server would notice the
        closed socket only when it next sends. One that is blocked in sending notices that at once.
        """
        if self._connection.closed:
            return
        try:
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                with trio.CancelScope(shield=True), trio.move_on_after(CANCEL_SECONDS):
                    await self._request_cancel()
        finally:
            self._connection.close()

    def _check_server(self) -> None:
        if self.pgconn.server_version < OLDEST_VERSION:
            raise SourceFailure(Stage.SESSION, "unsupported_version")
        self._check_encoding()

    def _check_encoding(self) -> None:
        if self.pgconn.parameter_status(b"client_encoding") != b"UTF8":
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    def _limit(self, statement_seconds: float, lock_seconds: float) -> None:
        self._statement_seconds = statement_seconds
        settings = sql.SQL(_SETTINGS).format(
            statement=sql.Literal(_milliseconds(statement_seconds)),
            lock=sql.Literal(_milliseconds(lock_seconds)),
        )
        self._settings = self.quoted(settings)

    async def _run(self, text: bytes, stage: Stage, table: str | None = None) -> pq.abc.PGresult:
        result: pq.abc.PGresult | None = None
        with trio.move_on_after(self._statement_seconds + SETUP_SECONDS):
            await self._send(text, stage, table)
            result = await self.result(stage, table=table)
        if result is None:
            raise SourceFailure(stage, TIMEOUT, table=table)
        return result

    def _was_refused(self) -> bool:
        """Whether the server itself said so, before it hung up perhaps."""
        return self._last_state in SNAPSHOT_REFUSED_STATES

    async def _send(self, statement: bytes, stage: Stage, table: str | None) -> None:
        try:
            self.pgconn.send_query(statement)
            while self.pgconn.flush() != 0:
                await trio.lowlevel.wait_writable(self.pgconn.socket)
        except psycopg.Error:
            lost = True
        else:
            lost = False
        if lost:
            raise SourceFailure(stage, RESET, table=table)

    async def _next_result(self, stage: Stage, table: str | None) -> pq.abc.PGresult | None:
        while self.pgconn.is_busy():
            await self.wait_for_input(stage, table=table)
        return self.pgconn.get_result()

    async def _request_cancel(self) -> None:
        """The protocol's cancel request, on a connection of its own, as encrypted as ours."""
        try:
            request = self.pgconn.cancel_conn()
            try:
                request.start()
                while (status := request.poll()) != pq.PollingStatus.OK:
                    if status == pq.PollingStatus.READING:
                        await trio.lowlevel.wait_readable(request.socket)
                    elif status == pq.PollingStatus.WRITING:
                        await trio.lowlevel.wait_writable(request.socket)
                    else:
                        return
            finally:
                request.finish()
        except psycopg.Error:
            # nobody there to take it: closing the socket has to do
            return


def _milliseconds(seconds: float) -> str:
    return str(max(1, math.ceil(seconds * 1000)))
