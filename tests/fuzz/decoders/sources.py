"""What the databases' servers say before their rows. MySQL's, Oracle's, MongoDB's and PostgreSQL's
handshakes are their drivers'; of SQL Server PRELOGIN is ours, and the driver runs on our socket."""

import socket
import ssl
from typing import Final, cast

from fetcher.datasources.sqlserver.link import Link, Statement
from fetcher.datasources.sqlserver.tls import Encryption, TlsPlan
from fetcher.datasources.sqlserver.wire import Wire, _packet, _prelogin
from fetcher.datasources.targets import Target
from fetcher_engine import SourceFailure, Stage
from tests.fuzz.decoders.decoder import Decoder
from tests.servers.tds import tokens

_REPLY: Final = 0x04
TARGET: Final = Target(host="h", port=1433, database="db", user="u", password="p")
_PLAIN: Final = TlsPlan(Encryption.NOT_SUPPORTED, None)
_GREETING: Final = _packet(_REPLY, _prelogin(Encryption.NOT_SUPPORTED))
_MOST_ROWS: Final = 1000
_MOST_ASKED: Final = 1000
"""Times that the end of a connection is read: whoever asks on would for ever."""


class AsksOn(BaseException):
    """No failure of the server's."""


class Said:
    """A connected socket whose server says this, and is gone."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._asked = 0

    def sendall(self, data: bytes) -> None:
        pass

    def settimeout(self, timeout: float | None) -> None:
        pass

    def gettimeout(self) -> float | None:
        return None

    def shutdown(self, how: int) -> None:
        pass

    def recv(self, size: int) -> bytes:
        piece, self._data = self._data[:size], self._data[size:]
        if not piece and size:
            self._asked += 1
            if self._asked > _MOST_ASKED:
                raise AsksOn
        return piece

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0) -> int:
        piece = self.recv(size or len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def decoders() -> dict[str, Decoder]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    encrypted = TlsPlan(Encryption.ON, context)
    offer = _packet(_REPLY, _prelogin(Encryption.ON)) + _packet(_REPLY, b"\x16\x03\x03\0\x04")
    return {
        "SQL Server's PRELOGIN": Decoder(
            seeds=[_GREETING, b"\x04\0" + _GREETING[2:] + _GREETING],
            decode=lambda data: _wire(data).agree(_PLAIN, "h"),
            refusals=(SourceFailure, OSError),
        ),
        "SQL Server's TLS": Decoder(
            seeds=[offer, _GREETING],
            decode=lambda data: _link(data).encrypt(encrypted, "h"),
            refusals=(SourceFailure,),
        ),
        "SQL Server's session": Decoder(
            seeds=[
                _GREETING + _packet(_REPLY, _accepted()) + _packet(_REPLY, answer)
                for answer in (_rows(), _refused())
            ],
            decode=_session,
            refusals=(SourceFailure,),
        ),
    }


def _wire(data: bytes) -> Wire:
    return Wire(cast("socket.socket", Said(data)))


def _link(data: bytes) -> Link:
    return Link(_wire(data), max_row_bytes=1 << 20)


def _accepted() -> bytes:
    accepted = tokens.text_change(1, "db") + tokens.collation_change()
    accepted += tokens.text_change(4, "4096") + tokens.login_token()
    return accepted + tokens.done_token(tokens.DONE, 0)


def _rows() -> bytes:
    columns = [tokens.Column(each) for each in ("int", "nvarchar", "varbinary(max)", "float")]
    rows: list[list[object]] = [[1, "a", b"bc", 2.5], [None, None, None, None]]
    data = tokens.columns_token(columns)
    data += b"".join(tokens.row_token(columns, row) for row in rows)
    return data + tokens.done_token(tokens.DONE, tokens.COUNT, len(rows))


def _refused() -> bytes:
    error = tokens.error_token(tokens.ServerError(208))
    return error + tokens.done_token(tokens.DONE, tokens.ERROR)


def link_that_hears(message: bytes, *, is_logged_in: bool) -> Link:
    """In answer to the login, or to the first statement after it."""
    accepted = _packet(_REPLY, _accepted()) if is_logged_in else b""
    link = _link(_GREETING + accepted + _packet(_REPLY, message))
    link.encrypt(_PLAIN, "h")
    if is_logged_in:
        link.log_in(TARGET)
    return link


def link_within_its_rows(statement: Statement) -> Link:
    link = _link(_GREETING + _packet(_REPLY, _accepted()) + _packet(_REPLY, _rows()))
    link.encrypt(_PLAIN, "h")
    link.log_in(TARGET)
    link.execute(statement, Stage.QUERY)
    return link


def _session(data: bytes) -> None:
    """From the first byte to the end of the rows, a large cell in pieces among them."""
    link = _link(data)
    link.encrypt(_PLAIN, "h")
    if link.log_in(TARGET) is not None:
        return
    link.execute(Statement("SELECT 1"), Stage.QUERY)
    link.buffer(2, 100)
    for _ in range(_MOST_ROWS):
        if link.row(Stage.ROWS) is None:
            return
