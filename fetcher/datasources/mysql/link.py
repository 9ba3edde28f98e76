"""The driver's connection: everything of PyMySQL that this source uses, public or not, is here.

PyMySQL logs in, sends statements and reads short results. The rows of an extraction are cut out of
the socket's bytes here (decision 024): a row is a packet with one text, and nothing is made of it
but that text. All of it blocks.
"""

import io
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import pymysql  # type: ignore[import-untyped] # its stubs are no dependency: this module is the edge
from pymysql.constants import CLIENT  # type: ignore[import-untyped]
from pymysql.converters import encoders  # type: ignore[import-untyped]

from fetcher.datasources.giving_way import PoliteReader
from fetcher.datasources.mysql.errors import LOST, UNKNOWN_METHOD
from fetcher.datasources.mysql.fenced_packets import CutRows, FencedPackets
from fetcher.datasources.mysql.tls import IF_OFFERED, VERIFIED, WatchedContext
from fetcher.datasources.targets import Target

RECEIVE_BYTES: Final = 256 * 1024
"""A slow reader finds that much; fewer, larger pieces mean fewer waits for the interpreter."""

RESULT_BYTES: Final = 64 * 1024
"""Of a short result that are read at once."""

_RESET_CONNECTION: Final = 0x1F
"""A command of the protocol that the driver does not know; servers do from 5.7 and 10.2 on."""

Row = tuple[str | None, ...]


class _Refused:
    """For methods of login that are not spoken."""

    def __init__(self, _driver: object) -> None:
        pass

    def authenticate(self, _packet: object) -> None:
        raise pymysql.err.OperationalError(UNKNOWN_METHOD, "")


_UNSPOKEN: Final = {"mysql_old_password": _Refused} | (
    # the driver needs PyNaCl for it
    {} if find_spec("nacl") else {"client_ed25519": _Refused}
)

_IN_THE_CLEAR: Final = {"mysql_clear_password": _Refused, "dialog": _Refused}
"""They would send the password as it is."""


class Link:
    """One connection, not logged in yet. It owns the socket that :meth:`log_in` is given."""

    def __init__(self, target: Target, mode: str, context: WatchedContext | None) -> None:
        self._driver: Any = pymysql.connections.Connection(
            host=target.host,
            port=target.port,
            user=target.user,
            # a text would be sent in Latin-1
            password=target.password.encode(),
            database=target.database,
            charset="utf8mb4",
            conv=encoders,
            autocommit=None,
            local_infile=False,
            program_name="fetcher",
            ssl=context,
            ssl_disabled=context is None,
            # only a server whose name was checked may ask for the password itself
            auth_plugin_map=_UNSPOKEN if mode == VERIFIED else _UNSPOKEN | _IN_THE_CLEAR,
            defer_connect=True,
        )
        # an empty name would become the operating system's user
        self._driver.user = target.user
        if mode == IF_OFFERED:
            self._driver._ssl_required = False
            self._driver.client_flag &= ~CLIENT.SSL
        self._packets = FencedPackets(0, 2)
        self._received = b""

    def log_in(self, connected: socket.socket) -> None:
        """Raise whatever the driver does."""
        self._driver.connect(connected)
        # nothing has come that was not asked for: the driver's own reader holds no byte
        raw = PoliteReader(self._driver._sock.makefile("rb", buffering=0))
        self._driver._rfile = io.BufferedReader(raw, RESULT_BYTES)

    @property
    def thread_id(self) -> int:
        return int(self._driver.thread_id())

    @property
    def server_version(self) -> str:
        return str(self._driver.server_version)

    @property
    def escapes_backslashes(self) -> bool:
        """Whether the server, as it said last, takes a backslash in a text for an escape."""
        return not self._driver.server_status & 0x200  # SERVER_STATUS_NO_BACKSLASH_ESCAPES

    @property
    def is_in_transaction(self) -> bool:
        """As the server said last."""
        return bool(self._driver.server_status & 0x01)  # SERVER_STATUS_IN_TRANS

    def reset(self) -> None:
        """As after the login: no transaction, and nothing that was set since."""
        self._driver._execute_command(_RESET_CONNECTION, b"")
        self._driver._read_ok_packet()
        self._driver.set_character_set("utf8mb4")

    def run(self, statement: str) -> Sequence[Row]:
        """All rows of a short result."""
        self._driver.query(statement)
        result = self._driver._result
        rows: Sequence[Row] = result.rows if result is not None and result.rows else ()
        return rows

    def begin_rows(self, statement: str, *, fences: int) -> None:
        """Send a statement of one column, so many fences in each row.

        The rows come by :meth:`receive_rows`.
        """
        self._driver.query(statement, unbuffered=True)
        result = self._driver._result
        # else the driver would read all rows to their end before it lets go of the result
        result.unbuffered_active = False
        if result.field_count != 1:
            message = "not one column"
            raise pymysql.err.InternalError(message)
        self._packets = FencedPackets(self._driver._next_seq_id, fences)
        reader = self._driver._rfile
        self._received = reader.read(len(reader.peek()))

    def receive_rows(self) -> tuple[CutRows, bool]:
        """What has come since, perhaps no whole row, and whether that was the end.

        The end is the protocol's alone; a connection that ends raises.
        """
        received = self._received or self._driver._sock.recv(RECEIVE_BYTES)
        self._received = b""
        if not received:
            raise pymysql.err.OperationalError(LOST, "")
        return self._packets.cut(received), self._packets.ended

    def take_leave(self) -> None:
        """Say good-bye and close; never raises. At once for a connection that is not open."""
        try:
            self._driver.close()
        except (pymysql.err.Error, OSError):
            self._driver._force_close()

    def drop(self) -> None:
        """Close without a word."""
        self._driver._force_close()
