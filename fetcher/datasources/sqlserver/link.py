"""python-tds, blocking, for one thread at a time: the one module that knows its insides.

``pytds.connect`` is not used: it tries again by itself, for seconds, also what cannot succeed; it
follows a server's redirection to wherever that points; and it loses the server's error numbers but
the last. Below it the same driver does just one login on the transport it is given.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, cast

from pytds import tds_base, tds_types  # type: ignore[import-untyped]
from pytds.connection import NonMarsConnection  # type: ignore[import-untyped]
from pytds.cursor import NonMarsCursor  # type: ignore[import-untyped]
from pytds.tds_socket import _TdsSocket  # type: ignore[import-untyped]

from fetcher.datasources.sqlserver.errors import connect_failure, statement_failure
from fetcher.datasources.sqlserver.tls import TlsPlan
from fetcher.datasources.sqlserver.wire import Wire
from fetcher.datasources.targets import Target
from fetcher_engine import SourceFailure, Stage

# it would write statements, hosts and databases into the log
logging.getLogger("pytds").setLevel(logging.CRITICAL + 1)

APPLICATION: Final = "fetcher"
_ERROR_TOKEN: Final = tds_base.TDS_ERROR_TOKEN
_PACKET_BYTES: Final = 16384
_SHORT_CHARS: Final = 4000
_LOGIN_BYTES: Final = 1024 * 1024
_MAX_SERVER_CHARS: Final = 128
"""What the login's field holds; nothing depends on it."""

Bound: TypeAlias = str | float
"""What a parameter is bound as: ``nvarchar``, which the statement converts, or ``float``."""


@dataclass(frozen=True, slots=True)
class Statement:
    """T-SQL with ``@P1``, ``@P2`` … for its values."""

    text: str
    values: tuple[Bound, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where the server wants us to go instead."""

    host: str
    port: int


class CellBuffer:
    """Takes one large cell in pieces, and no more of it than may be: python-tds's stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, piece: bytes) -> None:
        """Past the limit the rest is dropped: what was taken is too large already."""
        if self._size <= self._max_bytes:
            self._pieces.append(bytes(piece))
            self._size += len(piece)

    def taken(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return data


class Link:
    """One connection. Every method but the last three blocks, and raises SourceFailure."""

    def __init__(self, wire: Wire, *, max_row_bytes: int) -> None:
        """Of one row, and of any other answer, the server may send ``max_row_bytes``."""
        self._wire = wire
        self._row_bytes = max_row_bytes
        self._tds: _TdsSocket | None = None
        self._connection: NonMarsConnection | None = None
        self._cursor: NonMarsCursor | None = None
        self._buffers: dict[int, CellBuffer] = {}

    def encrypt(self, plan: TlsPlan, server_name: str) -> None:
        """Agree on encryption and shake hands."""
        failure: SourceFailure
        try:
            self._wire.agree(plan, server_name)
        except SourceFailure as refused:
            failure = refused
        except Exception as error:  # noqa: BLE001 - whatever comes of foreign bytes
            failure = connect_failure(Stage.TLS, error, ())
        else:
            return
        raise failure

    def log_in(self, target: Target) -> Redirection | None:
        """Log in; what the server answers where it wants another one to be asked."""
        failure: SourceFailure
        self._wire.allowance = _LOGIN_BYTES
        try:
            self._tds = _TdsSocket(
                sock=cast("Any", self._wire),
                login=_login(target),
                row_strategy=_same_row,
                autocommit=True,
            )
            reader = self._tds.main_session._reader
            reader.recv = partial(_some_of, reader.recv)
            route = self._tds.login()
        except Exception as error:  # noqa: BLE001 - whatever comes of foreign bytes
            failure = connect_failure(Stage.AUTH, error, self._numbers())
        else:
            if route is not None:
                return Redirection(route["server"], route["port"])
            # nobody needs it any more
            self._tds._login.password = ""
            self._connection = NonMarsConnection(
                pooling=False, key=cast("Any", ()), tds_socket=self._tds
            )
            return None
        raise failure

    def execute(self, statement: Statement, stage: Stage, table: str | None = None) -> None:
        """Send one statement and wait for its first result."""
        failure: SourceFailure
        self._wire.allowance = self._row_bytes
        try:
            if self._connection is None:
                raise tds_base.ClosedConnectionError  # noqa: TRY301 - mapped below like the driver's own
            self._buffers = {}
            self._cursor = self._connection.cursor()
            if statement.values:
                bound = {
                    str(number): _bound(value) for number, value in enumerate(statement.values)
                }
                self._cursor.execute(statement.text.replace("%", "%%"), bound)
            else:
                self._cursor.execute(statement.text)
        except Exception as error:  # noqa: BLE001 - whatever comes of foreign bytes
            failure = statement_failure(stage, error, self._numbers(), table=table)
        else:
            return
        raise failure

    def limit_silence(self, seconds: float | None) -> None:
        """How long the server may send nothing before a call fails with ``timeout``."""
        self._wire.settimeout(seconds)

    def buffer(self, column: int, max_bytes: int, table: str | None = None) -> None:
        """Take no more than ``max_bytes`` of this column's cells (and a piece, which shows it)."""
        buffer = CellBuffer(max_bytes)
        failure: SourceFailure
        if self._cursor is None:
            return
        try:
            self._cursor.set_stream(column, buffer)
        except Exception as error:  # noqa: BLE001 - the server has other columns than it was asked for
            failure = statement_failure(Stage.QUERY, error, self._numbers(), table=table)
        else:
            self._buffers[column] = buffer
            return
        raise failure

    def row(self, stage: Stage, table: str | None = None) -> Sequence[object] | None:
        """The next row, good until the next call; None after the last one, by the protocol's end.

        The server must have counted as many rows, and have said nothing of an error.
        """
        failure: SourceFailure
        self._wire.allowance = self._row_bytes
        try:
            row = cast("list[object] | None", self._cursor.fetchone()) if self._cursor else None
            if row is not None:
                for column, buffer in self._buffers.items():
                    if row[column] is buffer:
                        row[column] = buffer.taken()
                return row
            if self._has_ended_well():
                return None
            failure = statement_failure(
                stage, tds_base.InterfaceError(), self._numbers(), table=table
            )
        except Exception as error:  # noqa: BLE001 - whatever comes of foreign bytes
            failure = statement_failure(stage, error, self._numbers(), table=table)
        raise failure

    def rows(self, statement: Statement, stage: Stage, table: str | None = None) -> list[list[Any]]:
        """All rows of a small result."""
        self.execute(statement, stage, table)
        found: list[list[Any]] = []
        if self._cursor is None or self._cursor.description is None:
            return found
        while (row := self.row(stage, table)) is not None:
            found.append(list(row))
        return found

    def stop(self) -> None:
        """Wait until the server has stopped what it does; never raises."""
        try:
            if self._cursor is not None:
                self._cursor.cancel()
        except Exception:  # noqa: BLE001 - closing is next
            return

    @property
    def is_busy(self) -> bool:
        """Whether the server has not yet answered to the end."""
        return self._tds is not None and self._tds.main_session.state in (
            tds_base.TDS_PENDING,
            tds_base.TDS_READING,
            tds_base.TDS_QUERYING,
        )

    def ask_to_stop(self) -> bool:
        """Send attention from another thread; False where there is nothing to stop."""
        if self._tds is None:
            return False
        session = self._tds.main_session
        session.in_cancel, was = True, session.in_cancel
        try:
            asked = self._wire.ask_to_stop()
        except (OSError, ValueError):
            return False
        if not asked:
            session.in_cancel = was
        return asked

    def shut(self) -> None:
        """From any thread: whoever waits for the server fails."""
        self._wire.shut()

    def close(self) -> None:
        self._wire.close()

    def _numbers(self) -> tuple[int, ...]:
        """The server's errors since the last request, in its order."""
        if self._tds is None:
            return ()
        messages = self._tds.main_session.messages
        return tuple(each["msgno"] for each in messages if each["marker"] == _ERROR_TOKEN)

    def _has_ended_well(self) -> bool:
        """Read on to the end of the whole answer."""
        if self._cursor is None or self._tds is None:
            return False
        session = self._tds.main_session
        counted, read = session.rows_affected, session.res_info.row_count
        while session.next_set():
            # a statement has one result: more is no answer to it
            return False
        return not self._numbers() and counted in (read, -1) and not self.is_busy


def _same_row(_names: object) -> Any:
    """The driver's own list, which it fills anew for each row."""

    def same(row: Any) -> Any:
        return row

    return same


def _some_of(receive: Callable[[int], bytes], size: int) -> bytes:
    """The driver asks on and on for the rest of a cell whose message has ended: no byte comes by
    the socket then, so that no deadline would end it."""
    data = receive(size)
    if size and not data:
        raise tds_base.ClosedConnectionError
    return data


def _login(target: Target) -> tds_base._TdsLogin:
    login = tds_base._TdsLogin()
    login.client_host_name = APPLICATION
    login.library = APPLICATION
    login.app_name = APPLICATION
    login.server_name = target.host[:_MAX_SERVER_CHARS]
    login.port = target.port
    login.user_name = target.user
    login.password = target.password
    login.database = target.database
    login.client_lcid = 0x0409
    login.enc_flag = tds_base.PreLoginEnc.ENCRYPT_NOT_SUP
    login.option_flag2 = tds_base.TDS_ODBC_ON
    login.blocksize = _PACKET_BYTES
    login.readonly = True
    login.bytes_to_unicode = True
    return login


def _bound(value: Bound) -> tds_base.Param:
    if isinstance(value, float):
        return tds_base.Param(type=tds_types.FloatType(), value=value)
    if len(value.encode("utf-16-le")) <= 2 * _SHORT_CHARS:
        return tds_base.Param(type=tds_types.NVarCharType(_SHORT_CHARS), value=value)
    return tds_base.Param(type=tds_types.NVarCharMaxType(), value=value)
