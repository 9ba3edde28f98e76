"""The transport under python-tds: PRELOGIN and TLS are ours, the driver sees a plain connection.

The driver's own TLS cannot trust a CA from memory, cannot leave a certificate unchecked, and reads
host names out of certificates by itself. So we agree on encryption and shake hands here, with the
standard library's TLS, and answer the driver's own PRELOGIN ourselves: ``not supported``.
"""

import socket
import ssl
import struct
import threading
from typing import Final

from fetcher.datasources.giving_way import GivesWay
from fetcher.datasources.sqlserver.tls import Encryption, TlsPlan
from fetcher_engine import SourceFailure, Stage

PRELOGIN: Final = 0x12
REPLY: Final = 0x04
LOGIN7: Final = 0x10
ATTENTION: Final = 0x06
_REQUESTS: Final = frozenset({0x01, 0x03, 0x0E})
"""SQL batch, RPC, transaction: what the server answers, and attention stops."""

_HEADER: Final = struct.Struct(">BBHHBB")
_END_OF_MESSAGE: Final = 0x01
_MAX_PACKET_BYTES: Final = 32767
_CHUNK_BYTES: Final = 65536

_VERSION, _ENCRYPTION, _MARS, _TERMINATOR = 0x00, 0x01, 0x04, 0xFF


class AnswerTooLarge(Exception):
    """The server sends more than anybody waits for."""


class Wire:
    """One connected socket, blocking. For one thread at a time, but ``ask_to_stop`` and ``shut``.

    Implements what python-tds calls a transport, by the names of ``socket.socket``.
    """

    def __init__(self, raw: socket.socket) -> None:
        """Takes the socket over: :meth:`close` closes it."""
        self._raw = raw
        self._lock = threading.Lock()
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._login_only = False
        self._canned = b""
        self.allowance: int | None = None
        """How many more bytes the server may send: what it announces, the driver would keep."""
        self._turn = threading.Lock()
        self._is_sending = False
        self._is_awaiting_answer = False
        self._is_unwanted = False
        self._gives_way = GivesWay()

    def agree(self, plan: TlsPlan, server_name: str) -> None:
        """PRELOGIN, then TLS as agreed. Raise SourceFailure, OSError or ssl.SSLError."""
        self._raw.sendall(_packet(PRELOGIN, _prelogin(plan.wanted)))
        kind, answer = self._message()
        if kind != REPLY:
            raise SourceFailure(Stage.TLS, "protocol")
        offered = _encryption_in(answer)
        encrypts = offered is not Encryption.NOT_SUPPORTED
        if plan.context is None:
            if offered in (Encryption.ON, Encryption.REQUIRED):
                raise SourceFailure(Stage.TLS, "tls_required")
            encrypts = False
        elif plan.wanted is Encryption.ON and offered not in (Encryption.ON, Encryption.REQUIRED):
            raise SourceFailure(Stage.TLS, "tls")
        if encrypts and plan.context is not None:
            self._login_only = offered is Encryption.OFF
            self._shake_hands(plan.context, server_name)

    def ask_to_stop(self) -> bool:
        """Send attention, at once or behind the packet that is on its way; from any thread.

        False where no request was sent that the server could stop. Raise OSError or ValueError.
        """
        with self._turn:
            if self._is_sending:
                self._is_unwanted = True
                return True
            if not self._is_awaiting_answer:
                return False
        self._send(_packet(ATTENTION, b""))
        return True

    def shut(self) -> None:
        """Wake whoever waits for this socket. Safe from any thread; never raises."""
        try:
            self._raw.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    # --- what the driver calls ----------------------------------------------------------------

    def sendall(self, data: bytes | bytearray, flags: int = 0) -> None:  # noqa: ARG002 - a transport's form
        """One packet of the driver's."""
        kind, status = data[0], data[1]
        if kind == PRELOGIN:
            answer = _packet(REPLY, _prelogin(Encryption.NOT_SUPPORTED))
            self._canned = answer
            return
        is_last = bool(status & _END_OF_MESSAGE)
        with self._turn:
            self._is_awaiting_answer = False
            self._is_sending = kind in _REQUESTS
        self._send(bytes(data))
        with self._turn:
            is_unwanted, self._is_unwanted = self._is_unwanted, False
            self._is_sending = False
            self._is_awaiting_answer = is_last and kind in _REQUESTS
        if is_unwanted:
            self._stop_what_was_sent()
        if is_last and kind == LOGIN7 and self._login_only:
            self._tls = None

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0, flags: int = 0) -> int:  # noqa: ARG002
        """At least one byte; 0 at the end of the connection."""
        wanted = size or len(buffer)
        if self._canned:
            data, self._canned = self._canned[:wanted], self._canned[wanted:]
        elif self._tls is None:
            return self._counted(self._raw.recv_into(buffer, wanted))
        else:
            data = self._decrypted(self._tls, wanted)
        buffer[: len(data)] = data
        return self._counted(len(data))

    def _counted(self, received: int) -> int:
        self._gives_way()
        if self.allowance is not None:
            self.allowance -= received
            if self.allowance < 0:
                raise AnswerTooLarge
        return received

    def recv(self, bufsize: int, flags: int = 0) -> bytes:  # noqa: ARG002
        buffer = bytearray(bufsize)
        return bytes(buffer[: self.recv_into(buffer, bufsize)])

    def gettimeout(self) -> float | None:
        return self._raw.gettimeout()

    def settimeout(self, timeout: float | None) -> None:
        self._raw.settimeout(timeout)

    def is_connected(self) -> bool:
        return self._raw.fileno() >= 0

    def shutdown(self, how: int = 0) -> None:  # noqa: ARG002
        self.shut()

    def close(self) -> None:
        """Idempotent; never raises."""
        self._raw.close()

    # --- packets and TLS ----------------------------------------------------------------------

    def _stop_what_was_sent(self) -> None:
        if self._is_awaiting_answer:
            self._send(_packet(ATTENTION, b""))
        else:
            # half a request: nothing else ends it
            self.shut()

    def _send(self, data: bytes) -> None:
        tls = self._tls
        if tls is None:
            self._raw.sendall(data)
            return
        with self._lock:
            tls.write(data)
            sealed = self._outgoing.read()
        self._raw.sendall(sealed)

    def _decrypted(self, tls: ssl.SSLObject, wanted: int) -> bytes:
        while True:
            with self._lock:
                try:
                    return tls.read(wanted)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return b""
            data = self._raw.recv(_CHUNK_BYTES)
            if not data:
                return b""
            with self._lock:
                self._incoming.write(data)

    def _shake_hands(self, context: ssl.SSLContext, server_name: str) -> None:
        """TLS, its messages inside of PRELOGIN packets (MS-TDS 2.2.6.5)."""
        tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                break
            if self._outgoing.pending:
                self._raw.sendall(_packet(PRELOGIN, self._outgoing.read()))
            kind, data = self._message()
            if kind not in (PRELOGIN, REPLY):
                raise SourceFailure(Stage.TLS, "protocol")
            self._incoming.write(data)
        if self._outgoing.pending:
            self._raw.sendall(_packet(PRELOGIN, self._outgoing.read()))
        self._tls = tls

    def _message(self) -> tuple[int, bytes]:
        """A whole message of the server, before the driver reads any. Raise SourceFailure."""
        body = b""
        while True:
            kind, status, size, *_ = _HEADER.unpack(self._exactly(_HEADER.size))
            if kind not in (PRELOGIN, REPLY) or not _HEADER.size <= size <= _MAX_PACKET_BYTES:
                raise SourceFailure(Stage.TLS, "protocol")
            body += self._exactly(size - _HEADER.size)
            if len(body) > 4 * _CHUNK_BYTES:
                raise SourceFailure(Stage.TLS, "protocol")
            if status & _END_OF_MESSAGE:
                return kind, body

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._raw.recv(size - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return data


def _packet(kind: int, body: bytes) -> bytes:
    return _HEADER.pack(kind, _END_OF_MESSAGE, _HEADER.size + len(body), 0, 1, 0) + body


def _prelogin(encryption: Encryption) -> bytes:
    options = ((_VERSION, bytes(6)), (_ENCRYPTION, bytes([encryption])), (_MARS, b"\0"))
    offset = 5 * len(options) + 1
    index = b""
    for token, value in options:
        index += struct.pack(">BHH", token, offset, len(value))
        offset += len(value)
    return index + bytes([_TERMINATOR]) + b"".join(value for _, value in options)


def _encryption_in(body: bytes) -> Encryption:
    """What the server says of encryption; raise SourceFailure where it speaks something else."""
    position = 0
    while position < len(body) and body[position] != _TERMINATOR:
        if position + 5 > len(body):
            break
        token, offset, length = struct.unpack_from(">BHH", body, position)
        if token == _ENCRYPTION and length >= 1 and offset < len(body):
            if body[offset] in list(Encryption):
                return Encryption(body[offset])
            break
        position += 5
    raise SourceFailure(Stage.TLS, "protocol")
