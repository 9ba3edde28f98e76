"""Connecting to MariaDB: credentials, TLS, deadlines, and what each failure is called."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from fetcher.datasources.mysql import connect
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    category_while_connecting,
    engines,
)
from tests.integration.datasources.mariadb import TlsServer, run_sql, running_server
from tests.servers.certificates import authority

pytestmark = pytest.mark.integration

PASSWORD = "p@ss wörd%/?#:'\"\\"
USER = "o'brien"
DATABASE = "app?host=10.0.0.9&sslmode=disable"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    with running_server(tmp_path_factory.mktemp("mariadb") / "server") as started:
        quoted = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        run_sql(
            started.admin,
            f"CREATE DATABASE `{DATABASE}`",
            "CREATE DATABASE shop",
            "CREATE DATABASE closed",
            f"CREATE USER 'o\\'brien'@'%' IDENTIFIED BY '{quoted}'",
            f"GRANT SELECT ON `{DATABASE}`.* TO 'o\\'brien'@'%'",
            "CREATE USER plain@'%' IDENTIFIED BY 'plain'",
            "CREATE USER plus@'%' IDENTIFIED BY 'p@ss w/rd+%'",
            "GRANT SELECT ON shop.* TO plus@'%'",
            "GRANT SELECT ON shop.* TO plain@'%'",
            "CREATE USER resting@'%' IDENTIFIED BY 'plain' ACCOUNT LOCK",
            "CREATE USER cert_only@'%' IDENTIFIED BY 'plain' REQUIRE X509",
            "GRANT SELECT ON shop.* TO cert_only@'%'",
        )
        yield started


@pytest.fixture
def plain(server: TlsServer) -> Connection:
    return a_connection(
        source_type=SourceType.MYSQL,
        host="127.0.0.1",
        port=server.admin.port,
        database="shop",
        user="plain",
        password="plain",
    )


async def reach(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        await engine.test_connection(TENANT, connection.config_name)


async def failure_of(connection: Connection) -> tuple[str, str]:
    """Stage and reason; nothing of the connection's own words may stand in the error."""
    with pytest.raises(EngineError) as caught:
        await reach(connection)
    error = caught.value
    assert error.category is category_while_connecting(error.reason)
    told = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
    for secret in (connection.password_encrypted, "127.0.0.1", "brien", "plain"):
        assert not secret or secret not in told
    return str(error.stage), str(error.reason)


async def test_password_user_and_database_are_taken_literally(plain: Connection) -> None:
    await reach(replace(plain, username=USER, password_encrypted=PASSWORD, database_name=DATABASE))
    await reach(replace(plain, username="plus", password_encrypted="p@ss w/rd+%"))


@pytest.mark.parametrize(
    ("change", "stage", "reason"),
    [
        ({"password_encrypted": "wrong"}, "auth", "auth"),
        ({"password_encrypted": ""}, "auth", "auth"),
        ({"username": "nobody"}, "auth", "auth"),
        ({"username": "resting"}, "auth", "auth"),
        ({"username": "cert_only"}, "auth", "auth"),
        ({"database_name": "missing"}, "auth", "forbidden"),
        ({"database_name": "closed"}, "auth", "forbidden"),
        ({"host": "no-such-host.invalid"}, "dns", "dns"),
        ({"password_encrypted": "nul\0"}, "session", "invalid_setting"),
    ],
)
async def test_refusals_are_told_apart(
    plain: Connection, change: dict[str, str], stage: str, reason: str
) -> None:
    assert await failure_of(replace(plain, **change)) == (stage, reason)  # type: ignore[arg-type] # the table's own keywords


async def test_missing_database_is_told_to_whom_may_know(server: TlsServer) -> None:
    admin = a_connection(
        source_type=SourceType.MYSQL,
        host="127.0.0.1",
        port=server.admin.port,
        database="missing",
        user=server.admin.user,
    )
    assert await failure_of(admin) == ("auth", "database_missing")


async def test_closed_port_is_refused(plain: Connection) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert await failure_of(replace(plain, port=closed.getsockname()[1])) == ("tcp", "refused")


@pytest.mark.parametrize(
    ("answer", "reason"), [(b"SSH-2.0-OpenSSH_9.2\r\n" * 9, "protocol"), (b"", "reset")]
)
async def test_another_kind_of_server_is_told_apart(
    plain: Connection, answer: bytes, reason: str
) -> None:
    async def speak(stream: trio.SocketStream) -> None:
        await stream.send_all(answer)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, speak, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        found = await failure_of(replace(plain, port=port))
        nursery.cancel_scope.cancel()
    assert found == ("auth", reason)


@pytest.mark.parametrize(("mode", "stage"), [("false", "auth"), ("true", "tls")])
async def test_server_that_accepts_and_stays_silent_times_out_at_its_stage(
    plain: Connection, monkeypatch: pytest.MonkeyPatch, mode: str, stage: str
) -> None:
    monkeypatch.setattr(connect, "LOGIN_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        connection = replace(plain, port=port, tls=TlsSettings(mode=mode))
        assert await failure_of(connection) == (stage, "timeout")


@pytest.mark.parametrize("mode", ["false", "true", "skip-verify", "preferred"])
async def test_every_mode_connects_to_the_right_server(
    server: TlsServer, plain: Connection, mode: str
) -> None:
    await reach(replace(plain, host="localhost", tls=TlsSettings(mode=mode, ca=server.ca)))


async def test_client_certificate_logs_in(server: TlsServer, plain: Connection) -> None:
    tls = TlsSettings(mode="true", ca=server.ca, cert=server.client.cert, key=server.client.key)
    await reach(replace(plain, host="localhost", username="cert_only", tls=tls))


async def test_wrong_certificates_are_refused(server: TlsServer, plain: Connection) -> None:
    right = TlsSettings(mode="true", ca=server.ca)
    wrong = [
        replace(plain, host="localhost", tls=replace(right, ca=authority().ca)),
        replace(plain, host="localhost", tls=replace(right, ca="")),
        replace(plain, host="127.0.0.1", tls=right),
        replace(plain, host="localhost", tls=replace(right, ca="no certificate")),
        replace(plain, host="localhost", tls=replace(right, mode="REQUIRE")),
    ]
    assert [await failure_of(each) for each in wrong] == [("tls", "tls")] * len(wrong)


async def test_expired_certificate_is_refused(tmp_path: Path, plain: Connection) -> None:
    signer = authority()
    with running_server(tmp_path / "server", expired=True, signer=signer) as late:
        tls = TlsSettings(mode="true", ca=signer.ca)
        connection = replace(plain, host="localhost", port=late.admin.port, tls=tls)
        assert await failure_of(connection) == ("tls", "tls")
