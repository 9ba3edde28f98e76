"""What a running server must say to be used; everything else is refused with its reason."""

import socket
import struct
from collections.abc import Callable
from functools import partial

import pytest

from scripts.servers import probes
from scripts.servers.probes import NotAdmittedError
from tests.unit.scripts.scripted_server import scripted_server

HOST = "127.0.0.1"
postgres = partial(probes.postgres, user="postgres")
mariadb = partial(probes.mariadb, user="root")
amqp = partial(probes.amqp, user="guest", password="guest")
ALL = [probes.redis, postgres, mariadb, amqp, probes.mongo, probes.s3]


def postgres_message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack(">i", len(content) + 4) + content


POSTGRES_IN = postgres_message(b"R", b"\0\0\0\0") + postgres_message(b"Z", b"I")


def postgres_row(value: bytes) -> bytes:
    row = b"\0\1" + struct.pack(">i", len(value)) + value
    return postgres_message(b"D", row) + postgres_message(b"Z", b"I")


def mariadb_packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


MARIADB_GREETING = mariadb_packet(0, b"\x0a5.5.5-10.11.6-MariaDB\0" + bytes(60))


def amqp_frame(method: int, arguments: bytes) -> bytes:
    payload = struct.pack(">HH", 10, method) + arguments
    return struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce"


AMQP_START = amqp_frame(10, b"\0\x09\0\0\0\0" + b"\0\0\0\5PLAIN" + b"\0\0\0\5en_US")


def mongo_answer(content: bytes) -> bytes:
    return struct.pack("<iiii", 16 + len(content), 7, 1, 2013) + content


ADMITTED: list[tuple[Callable[[str, int], None], bytes, list[bytes]]] = [
    (probes.redis, b"", [b"+PONG\r\n"]),
    (postgres, b"", [POSTGRES_IN, postgres_row(b"t")]),
    (mariadb, MARIADB_GREETING, [mariadb_packet(2, b"\0\0\0\2\0\0\0")]),
    (
        mariadb,
        MARIADB_GREETING,
        [mariadb_packet(2, b"\xfemysql_native_password\0salt"), mariadb_packet(4, b"\0\0\0")],
    ),
    (amqp, b"", [AMQP_START, amqp_frame(30, bytes(8)), amqp_frame(41, b"\0")]),
    (probes.mongo, b"", [mongo_answer(b"\0\0\0\0\0....\x08isWritablePrimary\0\1\0")]),
    (probes.s3, b"", [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]),
]

REFUSED: list[tuple[Callable[[str, int], None], bytes, list[bytes], str]] = [
    (probes.redis, b"", [b"-NOAUTH Authentication required.\r\n"], "PING was answered by b'-NOAU'"),
    (postgres, b"", [postgres_message(b"R", b"\0\0\0\x0a")], "a password is wanted for postgres"),
    (
        postgres,
        b"",
        [postgres_message(b"E", b"SFATAL\0Mno pg_hba.conf entry\0\0")],
        "no pg_hba.conf entry",
    ),
    (postgres, b"", [POSTGRES_IN, postgres_row(b"f")], "postgres may not create databases"),
    (postgres, b"", [b"HTTP/1.1 400 Bad Request\r\n"], "another protocol"),
    (mariadb, mariadb_packet(0, b"\x0a8.0.36\0" + bytes(60)), [], "it is no MariaDB"),
    (
        mariadb,
        MARIADB_GREETING,
        [mariadb_packet(2, b"\xff\x15\x04#28000Access denied")],
        "root is refused: Access denied",
    ),
    (amqp, b"", [b"AMQP\0\0\x09\1"], "it speaks no AMQP 0-9-1"),
    (
        amqp,
        b"",
        [AMQP_START, amqp_frame(50, b"\x01\x93\x0eACCESS_REFUSED" + bytes(4))],
        "ACCESS_REFUSED",
    ),
    (amqp, b"", [AMQP_START, amqp_frame(99, b"")], "method 000a0063 came instead of 000a001e"),
    (probes.mongo, b"", [mongo_answer(b"\x08isWritablePrimary\0\0")], "no.* by a writable primary"),
    (probes.s3, b"", [b"+PONG\r\n"], "no HTTP answer"),
]


@pytest.mark.parametrize(("probe", "greeting", "answers"), ADMITTED)
def test_a_server_that_lets_us_in_is_used(
    probe: Callable[[str, int], None], greeting: bytes, answers: list[bytes]
) -> None:
    with scripted_server(*answers, greeting=greeting) as port:
        probe(HOST, port)


@pytest.mark.parametrize(("probe", "greeting", "answers", "reason"), REFUSED)
def test_a_server_that_does_not_is_refused_with_its_reason(
    probe: Callable[[str, int], None], greeting: bytes, answers: list[bytes], reason: str
) -> None:
    with (
        scripted_server(*answers, greeting=greeting) as port,
        pytest.raises(NotAdmittedError, match=reason),
    ):
        probe(HOST, port)


@pytest.mark.parametrize("probe", ALL)
def test_a_port_without_a_listener_is_refused(probe: Callable[[str, int], None]) -> None:
    with socket.socket() as deaf:
        deaf.bind((HOST, 0))
        with pytest.raises(NotAdmittedError, match=f"{HOST}:{deaf.getsockname()[1]}"):
            probe(HOST, deaf.getsockname()[1])


@pytest.mark.parametrize("probe", ALL)
def test_a_server_that_hangs_up_is_refused(probe: Callable[[str, int], None]) -> None:
    with scripted_server(hangs_up=True) as port, pytest.raises(NotAdmittedError):
        probe(HOST, port)


@pytest.mark.parametrize("probe", ALL)
def test_a_silent_server_is_refused_in_time(
    probe: Callable[[str, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "WAIT_SECONDS", 0.05)
    with socket.create_server((HOST, 0)) as silent, pytest.raises(NotAdmittedError):
        probe(HOST, silent.getsockname()[1])
