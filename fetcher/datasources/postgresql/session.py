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
from fetcher_engine import SourceFailure, Stage

UTF_8: Final = "utf-8"
CANCEL_SECONDS: Final = 2.0
SETUP_SECONDS: Final = 5.0
OLDEST_VERSION: Final = 110_000

_SETUP: Final = """SELECT set_config('TimeZone', 'UTC', false),
 set_config('DateStyle', 'ISO, MDY', false),
 set_config('IntervalStyle', 'postgres', false),
 set_config('extra_float_digits', '3', false),
 set_config('standard_conforming_strings', 'on', false),
 set_config('search_path', '', false),
 set_config('jit', 'off', false),
 set_config('max_parallel_workers_per_gather', '0', false),
 set_config('statement_timeout', {statement}, false),
 set_config('lock_timeout', {lock}, false),
 set_config('idle_in_transaction_session_timeout', {statement}, false),
 current_setting('server_encoding')"""
"""Spec datasources 12.2. ``extra_float_digits`` 3 gives exact floats before version 12 too.
Compiling a statement that runs once costs more than it saves: seconds, where arrays are unpacked.
One process a query is what we take of somebody else's server, and rows keep the order of a scan.
"""

CODECS: Final = {
    "SQL_ASCII": "utf-8",
    "LATIN1": "iso8859-1",
    "LATIN2": "iso8859-2",
    "LATIN3": "iso8859-3",
    "LATIN4": "iso8859-4",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16",
    "ISO_8859_5": "iso8859-5",
    "ISO_8859_6": "iso8859-6",
    "ISO_8859_7": "iso8859-7",
    "ISO_8859_8": "iso8859-8",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
    "WIN866": "cp866",
    "WIN874": "cp874",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN1252": "cp1252",
    "WIN1253": "cp1253",
    "WIN1254": "cp1254",
    "WIN1255": "cp1255",
    "WIN1256": "cp1256",
    "WIN1257": "cp1257",
    "WIN1258": "cp1258",
}
"""Encodings of databases that hold what cannot be converted to UTF-8, by the codecs that read them
as the server does."""

_SNAPSHOT: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SETTINGS: Final = """SELECT current_setting('TimeZone') = 'UTC'
 AND current_setting('DateStyle') = 'ISO, MDY'
 AND current_setting('IntervalStyle') = 'postgres'
 AND current_setting('extra_float_digits') = '3'
 AND current_setting('search_path') = ''"""
"""What decides how values are written and names are read."""

_OK: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class Session:
    """Owned by one task. Every method but :meth:`close` raises SourceFailure."""

    def __init__(
        self, connection: psycopg.Connection[tuple[Any, ...]], *, statement_seconds: float
    ) -> None:
        self._connection = connection
        self._statement_seconds = statement_seconds
        self.pgconn = connection.pgconn
        self.server_encoding = ""
        self._last_state: str | None = None
        self.codec = UTF_8
        """What texts of results are written in."""

    @classmethod
    async def open(
        cls, target: Target, *, statement_seconds: float, lock_seconds: float
    ) -> "Session":
        """Connect and prepare the session; cancelled or failed, it is closed again."""
        session = cls(await connect(target), statement_seconds=statement_seconds)
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

    async def execute(
        self, statement: sql.Composable | bytes, stage: Stage, *, table: str | None = None
    ) -> pq.abc.PGresult:
        """Run one statement to its end. A COPY ends here with its first message still unread."""
        result: pq.abc.PGresult | None = None
        with trio.move_on_after(self._statement_seconds + SETUP_SECONDS):
            text = statement if isinstance(statement, bytes) else self.quoted(statement)
            await self._send(text, stage, table)
            result = await self.result(stage, table=table)
        if result is None:
            raise SourceFailure(stage, TIMEOUT, table=table)
        return result

    async def begin_snapshot(self) -> bool:
        """Read from here on as of one moment. False: the server says that it begins none; the
        session is of no use any more."""
        self._last_state = None
        try:
            await self.execute(_SNAPSHOT, Stage.SESSION)
        except SourceFailure:
            if not self._was_refused():
                raise
            return False
        return True

    async def check_settings(self) -> None:
        """Fail where a later statement does not meet what was set before: one that is read would
        come in whatever form somebody else set."""
        result = await self.execute(sql.SQL(_SETTINGS), Stage.SESSION)
        if result.get_value(0, 0) != b"t":
            raise SourceFailure(Stage.SESSION, "settings_lost")

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

    async def receive_unconverted(self) -> None:
        """From now on let texts come as they are stored, where the server would refuse to send
        what is invalid in them: in SQL_ASCII, and in the encodings of single bytes.

        What is sent from now on must be in the codec's encoding.
        """
        codec = CODECS.get(self.server_encoding)
        if codec is None:
            return
        statement = sql.SQL("SET client_encoding TO {}").format(sql.Literal(self.server_encoding))
        await self.execute(statement, Stage.SESSION)
        self.codec = codec

    def quoted(self, statement: sql.Composable) -> bytes:
        """The statement as this session's server reads it."""
        return statement.as_bytes(self._connection)

    async def rest(self) -> None:
        """Nothing of what was asked of the session is left in it: it may wait for other work."""
        if self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            await self.execute(b"ROLLBACK", Stage.SESSION)
        await self.execute(b"DISCARD ALL", Stage.SESSION)
        if self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            raise SourceFailure(Stage.SESSION, PROTOCOL)

    async def resume(self, *, statement_seconds: float, lock_seconds: float) -> None:
        """Prepare a session that waited; this also shows that the server answers."""
        self._statement_seconds = statement_seconds
        await self._prepare(statement_seconds, lock_seconds)

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

    async def _prepare(self, statement_seconds: float, lock_seconds: float) -> None:
        if self.pgconn.server_version < OLDEST_VERSION:
            raise SourceFailure(Stage.SESSION, "unsupported_version")
        setup = sql.SQL(_SETUP).format(
            statement=sql.Literal(_milliseconds(statement_seconds)),
            lock=sql.Literal(_milliseconds(lock_seconds)),
        )
        result = await self.execute(setup, Stage.SESSION)
        self.server_encoding = (result.get_value(0, 11) or b"").decode()
        # our statements hold quoted values: these two decide how the server reads them
        strings = self.pgconn.parameter_status(b"standard_conforming_strings")
        encoding = self.pgconn.parameter_status(b"client_encoding")
        if strings != b"on" or encoding != b"UTF8":
            raise SourceFailure(Stage.SESSION, PROTOCOL)
        self.codec = UTF_8

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
