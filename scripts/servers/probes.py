"""Asks a server, in its own protocol, whether it is ours to use.

Each function returns when the server answers and admits the user, and raises
:class:`NotAdmittedError` otherwise. Nothing is written to the server. Every wait is bounded.
"""

import http.client
import socket
import struct
from contextlib import closing

WAIT_SECONDS = 5.0
LONGEST_ANSWER_BYTES = 1 << 20


class NotAdmittedError(Exception):
    """Nothing answers, something else answers, or the user is refused; the text says which."""


class Line:
    """A TCP connection that reads exact counts and speaks of failures in one way."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=WAIT_SECONDS)
        except OSError as failure:
            message = f"nothing answers at {host}:{port} ({failure})"
            raise NotAdmittedError(message) from None

    def close(self) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as failure:
            message = f"the connection broke ({failure})"
            raise NotAdmittedError(message) from None

    def receive(self, count: int) -> bytes:
        if count > LONGEST_ANSWER_BYTES:
            message = f"an answer of {count} bytes: another protocol"
            raise NotAdmittedError(message)
        received = bytearray()
        while len(received) < count:
            try:
                piece = self._socket.recv(count - len(received))
            except OSError as failure:
                message = f"no answer ({failure})"
                raise NotAdmittedError(message) from None
            if not piece:
                raise NotAdmittedError("the server closed the connection")
            received += piece
        return bytes(received)


def redis(host: str, port: int) -> None:
    """A Redis that wants no password."""
    with closing(Line(host, port)) as line:
        line.send(b"PING\r\n")
        answer = line.receive(5)
        if answer != b"+PONG":
            message = f"PING was answered by {answer!r}"
            raise NotAdmittedError(message)


def postgres(host: str, port: int, user: str) -> None:
    """A PostgreSQL that lets ``user`` in without a password and lets it create databases."""
    with closing(Line(host, port)) as line:
        words = b"user\0" + user.encode() + b"\0database\0postgres\0\0"
        line.send(struct.pack(">ii", len(words) + 8, 196608) + words)  # protocol 3.0
        while (kind := (message := _postgres_message(line))[:1]) != b"Z":
            if kind == b"E":
                raise NotAdmittedError(_postgres_reason(message))
            if kind == b"R" and message[1:] != b"\0\0\0\0":  # anything but AuthenticationOk
                text = f"a password is wanted for {user}"
                raise NotAdmittedError(text)
        question = b"SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user\0"
        line.send(b"Q" + struct.pack(">i", len(question) + 4) + question)
        answers = []
        while (kind := (message := _postgres_message(line))[:1]) != b"Z":
            if kind == b"E":
                raise NotAdmittedError(_postgres_reason(message))
            if kind == b"D":
                answers.append(message[7:])  # one column: count (2 bytes), length (4), value
        line.send(b"X\0\0\0\4")
        if answers != [b"t"]:
            text = f"{user} may not create databases"
            raise NotAdmittedError(text)


def _postgres_message(line: Line) -> bytes:
    kind, length = struct.unpack(">ci", line.receive(5))
    return bytes(kind) + line.receive(max(0, length - 4))


def _postgres_reason(message: bytes) -> str:
    fields = message[1:].split(b"\0")
    return next((f[1:].decode(errors="replace") for f in fields if f[:1] == b"M"), "refused")


def mariadb(host: str, port: int, user: str) -> None:
    """A MariaDB (no MySQL) that lets ``user`` in with an empty password."""
    with closing(Line(host, port)) as line:
        greeting = _mariadb_packet(line)
        if greeting[:1] != b"\x0a" or b"MariaDB" not in greeting.split(b"\0", 1)[0]:
            raise NotAdmittedError("it is no MariaDB")
        # protocol 4.1, secure connection, plugin authentication; utf8mb4; an empty answer
        flags = 0x00000200 | 0x00008000 | 0x00080000
        answer = struct.pack("<IIB23x", flags, 1 << 24, 45) + user.encode() + b"\0\0"
        answer += b"mysql_native_password\0"
        _send_mariadb(line, answer, number=1)
        reply = _mariadb_packet(line)
        if reply[:1] == b"\xfe":  # another plugin is asked for: an empty password again
            _send_mariadb(line, b"", number=3)
            reply = _mariadb_packet(line)
        if reply[:1] != b"\0":
            text = f"{user} is refused: {reply[9:].decode(errors='replace') or 'no reason given'}"
            raise NotAdmittedError(text)
        _send_mariadb(line, b"\x01", number=0)  # COM_QUIT


def _mariadb_packet(line: Line) -> bytes:
    head = line.receive(4)
    return line.receive(int.from_bytes(head[:3], "little"))


def _send_mariadb(line: Line, payload: bytes, *, number: int) -> None:
    line.send(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK, CLOSE = (
    struct.pack(">HH", 10, method) for method in (10, 11, 30, 31, 40, 41, 50)
)


def amqp(host: str, port: int, user: str, password: str) -> None:
    """An AMQP 0-9-1 broker that lets the user into the virtual host ``/``."""
    with closing(Line(host, port)) as line:
        line.send(b"AMQP\0\0\x09\x01")
        _amqp_answer(line, START)
        secret = b"\0" + user.encode() + b"\0" + password.encode()
        _send_amqp(
            line,
            START_OK
            + _table()
            + _short("PLAIN")
            + struct.pack(">I", len(secret))
            + secret
            + _short("en_US"),
        )
        limits = _amqp_answer(line, TUNE)
        _send_amqp(line, TUNE_OK + limits[:6] + b"\0\0")  # no heartbeat
        _send_amqp(line, OPEN + _short("/") + b"\0\0")
        _amqp_answer(line, OPEN_OK)
        _send_amqp(line, CLOSE + struct.pack(">H", 200) + _short("done") + b"\0\0\0\0")


def _table() -> bytes:
    # RabbitMQ says why it refuses only to those who can hear it
    name = _short("authentication_failure_close") + b"t\1"
    capabilities = _short("capabilities") + b"F" + struct.pack(">I", len(name)) + name
    return struct.pack(">I", len(capabilities)) + capabilities


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _send_amqp(line: Line, method: bytes) -> None:
    line.send(struct.pack(">BHI", 1, 0, len(method)) + method + b"\xce")


def _amqp_answer(line: Line, wanted: bytes) -> bytes:
    head = line.receive(7)
    if head[:3] != b"\1\0\0":
        raise NotAdmittedError("it speaks no AMQP 0-9-1")
    payload = line.receive(struct.unpack(">I", head[3:])[0] + 1)[:-1]
    if payload[:4] == CLOSE:
        raise NotAdmittedError(payload[7 : 7 + payload[6]].decode(errors="replace"))
    if payload[:4] != wanted:
        message = f"method {payload[:4].hex()} came instead of {wanted.hex()}"
        raise NotAdmittedError(message)
    return payload[4:]


def mongo(host: str, port: int) -> None:
    """A server that answers MongoDB's ``hello`` as a writable primary."""
    members = (
        b"\x10hello\0" + struct.pack("<i", 1) + b"\x02$db\0" + struct.pack("<i", 6) + b"admin\0"
    )
    document = struct.pack("<i", len(members) + 5) + members + b"\0"
    with closing(Line(host, port)) as line:
        # OP_MSG (2013): flags 0, one section of kind 0
        line.send(struct.pack("<iiiiIB", 21 + len(document), 1, 0, 2013, 0, 0) + document)
        length, _, answered, kind = struct.unpack("<iiii", line.receive(16))
        answer = line.receive(max(0, length - 16))
        if (answered, kind) != (1, 2013) or b"\x08isWritablePrimary\0\1" not in answer:
            raise NotAdmittedError("hello was not answered by a writable primary")


def s3(host: str, port: int) -> None:
    """Something that speaks HTTP."""
    connection = http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS)
    with closing(connection):
        try:
            connection.request("GET", "/")
            connection.getresponse().read(LONGEST_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as failure:
            message = f"no HTTP answer at {host}:{port} ({failure})"
            raise NotAdmittedError(message) from None
