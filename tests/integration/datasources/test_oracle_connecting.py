"""The real driver against listeners of ours, up to the point where a database would have to answer.

Oracle's own server cannot be had for tests: everything after this is tested at the driver's edge.
"""

import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from fetcher.datasources.oracle import connect as connecting
from fetcher.datasources.oracle.connect import connect
from fetcher.datasources.targets import Target
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage
from tests.servers.certificates import Authority, Identity, authority

pytestmark = pytest.mark.integration

Answer = Callable[[socket.socket], None]
MEBIBYTE = 1024 * 1024


class Listener:
    """Accepts, perhaps in TLS, and keeps what came first."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.received: list[bytes] = []
        self._answer = answer
        self._context = context
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._server.accept()
                with accepted, suppress(OSError):
                    accepted.settimeout(20)
                    self._talk(accepted)

    def _talk(self, accepted: socket.socket) -> None:
        if self._context is None:
            self.received.append(accepted.recv(MEBIBYTE))
            self._answer(accepted)
            return
        with self._context.wrap_socket(accepted, server_side=True) as encrypted:
            self.received.append(encrypted.recv(MEBIBYTE))
            self._answer(encrypted)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)


@contextmanager
def a_listener(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[Listener]:
    listener = Listener(answer, context)
    try:
        yield listener
    finally:
        listener.close()


def a_target(port: int, **changes: object) -> Target:
    settings: dict[str, object] = {
        "host": "127.0.0.1",
        "port": port,
        "database": "ignored",
        "user": "hr",
        "password": "canary",
        "metadata": {"serviceName": "ORDERS"},
    }
    return Target(**{**settings, **changes})  # type: ignore[arg-type]


async def failure(target: Target) -> tuple[str, str]:
    with pytest.raises(SourceFailure) as caught:
        await connect(target)
    assert caught.value.__context__ is None
    assert "canary" not in repr(vars(caught.value))
    return caught.value.stage, caught.value.reason


def hang_up(_: socket.socket) -> None:
    pass


def speak_http(accepted: socket.socket) -> None:
    """And keep the connection."""
    accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    accepted.recv(1)


def stay_silent(accepted: socket.socket) -> None:
    accepted.recv(1)  # until the other side has gone


def refuse_with(code: int) -> Answer:
    """A REFUSE packet: type 4, two reasons, a length, and the listener's words."""

    def refuse(accepted: socket.socket) -> None:
        text = f"(DESCRIPTION=(ERR={code})(VSNNUM=0)(ERROR_STACK=(ERROR=(CODE={code})(EMFI=4))))"
        accepted.sendall(a_packet(4, struct.pack("!BBH", 34, 0, len(text)) + text.encode()))
        accepted.recv(1)

    return refuse


def redirect_to(port: int) -> Answer:
    """A REDIRECT packet (type 5), then a DATA packet (6): the address, NUL, what to tell there."""

    def redirect(accepted: socket.socket) -> None:
        address = f"(ADDRESS=(PROTOCOL=tcp)(HOST=127.0.0.1)(PORT={port}))"
        data = f"{address}\0(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=ORDERS)))".encode()
        accepted.sendall(a_packet(5, struct.pack("!H", len(data))) + a_packet(6, b"\0\0" + data))
        accepted.recv(1)

    return redirect


def a_packet(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHBBH", 8 + len(body), 0, kind, 0, 0) + body


async def test_what_the_listener_is_told_is_what_was_given() -> None:
    with a_listener(hang_up) as listener:
        assert await failure(a_target(listener.port)) == (Stage.AUTH, "reset")
        await failure(a_target(listener.port, metadata={"sid": "XE"}))
    told, by_sid = (received.decode("latin-1") for received in listener.received)
    assert "(SERVICE_NAME=ORDERS)" in told
    assert "(SID=XE)" in by_sid
    assert "(PROGRAM=fetcher)(HOST=fetcher)(USER=fetcher)" in told
    assert "canary" not in told


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (12514, "database_missing"),
        (12505, "database_missing"),
        (12519, "too_many_connections"),
        (12528, "starting_up"),
    ],
)
async def test_a_listener_that_refuses_says_why(code: int, reason: str) -> None:
    with a_listener(refuse_with(code)) as listener:
        assert await failure(a_target(listener.port)) == (Stage.AUTH, reason)


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert await failure(a_target(port)) == (Stage.TCP, "refused")


async def test_another_kind_of_server_is_told_apart() -> None:
    with a_listener(speak_http) as listener:
        assert await failure(a_target(listener.port)) == (Stage.AUTH, "protocol")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_silent_server_ends_by_the_deadline(
    encrypted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "LOGIN_SECONDS", 0.3)
    tls = TlsSettings(mode="skip-verify") if encrypted else None
    with a_listener(stay_silent) as listener:
        begun = trio.current_time()
        stage, reason = await failure(a_target(listener.port, tls=tls))
        assert trio.current_time() - begun < 3
    assert (stage, reason) == (Stage.TLS if encrypted else Stage.AUTH, "timeout")


async def test_a_redirect_is_followed_only_where_it_may_lead() -> None:
    def judge(_: str, port: int, addresses: object) -> None:
        del addresses
        if port == elsewhere.port:
            raise SourceFailure(Stage.DNS, "host_refused")

    with a_listener(hang_up) as elsewhere, a_listener(redirect_to(elsewhere.port)) as listener:
        assert await failure(a_target(listener.port, judge=judge)) == (Stage.DNS, "host_refused")
        assert elsewhere.received == []
        assert await failure(a_target(listener.port)) == (Stage.AUTH, "reset")
        assert b"ORDERS" in elsewhere.received[0]


# --- TLS -------------------------------------------------------------------------------------


def a_server_context(identity: Identity, *, client_ca: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_text(identity.cert + identity.key)
        context.load_cert_chain(path)
    if client_ca:
        context.load_verify_locations(cadata=client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def outcome_of_tls(server: ssl.SSLContext, tls: TlsSettings, host: str) -> tuple[str, str]:
    """``(auth, reset)``: TLS was up, and the listener then hung up."""
    with a_listener(hang_up, server) as listener:
        return await failure(a_target(listener.port, tls=tls, host=host))


UP = (Stage.AUTH, "reset")
FAILED = (Stage.TLS, "tls")


@pytest.mark.parametrize("mode", ["true", "enable", "verify"])
async def test_verifying_modes_want_the_right_ca_and_name(mode: str) -> None:
    ours = authority()
    right = a_server_context(ours.certificate("localhost"))
    wrong_name = a_server_context(ours.certificate("db.acme.test"))
    expired = a_server_context(ours.certificate("localhost", expired=True))
    foreign = a_server_context(Authority().certificate("localhost"))
    tls = TlsSettings(mode=mode, ca=ours.ca)
    assert await outcome_of_tls(right, tls, "localhost") == UP
    assert await outcome_of_tls(wrong_name, tls, "localhost") == FAILED
    assert await outcome_of_tls(expired, tls, "localhost") == FAILED
    assert await outcome_of_tls(foreign, tls, "localhost") == FAILED
    assert await outcome_of_tls(right, TlsSettings(mode=mode), "localhost") == FAILED


async def test_an_address_is_a_name_too() -> None:
    ours = authority()
    tls = TlsSettings(mode="true", ca=ours.ca)
    right = a_server_context(ours.certificate("db.acme.test", "127.0.0.1"))
    assert await outcome_of_tls(right, tls, "127.0.0.1") == UP
    wrong = a_server_context(ours.certificate("db.acme.test"))
    assert await outcome_of_tls(wrong, tls, "127.0.0.1") == FAILED


async def test_skip_verify_encrypts_and_takes_any_certificate() -> None:
    foreign = a_server_context(Authority().certificate("db.acme.test", expired=True))
    assert await outcome_of_tls(foreign, TlsSettings(mode="skip-verify"), "localhost") == UP


async def test_a_client_certificate_is_shown_where_it_is_required() -> None:
    ours = authority()
    server = a_server_context(ours.certificate("localhost"), client_ca=ours.ca)
    client = ours.certificate("hr", client=True)
    with_it = TlsSettings(mode="true", ca=ours.ca, cert=client.cert, key=client.key)
    assert await outcome_of_tls(server, with_it, "localhost") == UP


async def test_a_missing_client_certificate_is_not_a_working_session() -> None:
    ours = authority()
    server = a_server_context(ours.certificate("localhost"), client_ca=ours.ca)
    outcome = await outcome_of_tls(server, TlsSettings(mode="true", ca=ours.ca), "localhost")
    # TLS 1.3: the server's alert comes after the client's side of the handshake
    assert outcome == FAILED


async def test_a_server_without_tls_fails_at_tls() -> None:
    with a_listener(speak_http) as listener:
        tls = TlsSettings(mode="skip-verify")
        assert await failure(a_target(listener.port, tls=tls)) == FAILED


async def test_the_environment_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder with a wallet and aliases, as ``TNS_ADMIN`` names one."""
    ours = authority()
    (tmp_path / "ewallet.pem").write_text(ours.ca)
    (tmp_path / "tnsnames.ora").write_text("ORDERS = (DESCRIPTION=(ADDRESS=(HOST=10.0.0.9)))")
    monkeypatch.setenv("TNS_ADMIN", str(tmp_path))
    monkeypatch.setattr("oracledb.defaults.config_dir", str(tmp_path))
    server = a_server_context(ours.certificate("localhost"))
    assert await outcome_of_tls(server, TlsSettings(mode="true"), "localhost") == FAILED
