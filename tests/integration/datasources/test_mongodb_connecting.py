"""Connecting to MongoDB: credentials, TLS, deadlines, and what each failure is called."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio

from fetcher.datasources.mongodb import client, connect
from fetcher.domain.connections import Connection, Origin, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    category_while_connecting,
    engines,
)
from tests.integration.datasources.mongo_server import make_users, running_server
from tests.integration.datasources.relay import relay
from tests.servers.certificates import Authority, Identity, authority

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

PASSWORD = "p@ss wörd%/?#:'\"\\"
PLUS = "p@ss w/rd+%"
USER = "o'brien"
DATABASE = "app?host=10&sslmode=disable"


@dataclass(frozen=True)
class Secured:
    """A server with TLS whose clients must have a certificate and a user."""

    port: int
    signer: Authority
    client: Identity


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that asks for a password."""
    folder = tmp_path_factory.mktemp("guarded")
    with running_server(folder, is_kept=True) as port:
        make_users(
            port, [(USER, PASSWORD, "admin"), ("plus", PLUS, "admin"), ("local", "own", "crm_7")]
        )
    with running_server(folder, auth=True) as port:
        yield port


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    signer = authority()
    with running_server(
        tmp_path_factory.mktemp("secured"),
        identity=signer.certificate("localhost"),
        client_ca=signer.ca,
    ) as port:
        yield Secured(port, signer, signer.certificate("reader", client=True))


def a_source(port: int, *, host: str = "127.0.0.1", **changes: Any) -> Connection:
    metadata = changes.pop("metadata", {})
    made = a_connection(
        source_type=SourceType.MONGODB,
        host=host,
        port=port,
        **{"database": "somewhere", **changes},
    )
    return replace(made, metadata=metadata)


async def reach(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        await engine.test_connection(TENANT, connection.config_name)


async def failure_of(connection: Connection) -> tuple[str, str]:
    """Stage and reason; nothing of the connection's own words may stand in the error."""
    with trio.fail_after(12), pytest.raises(EngineError) as caught:
        await reach(connection)
    error = caught.value
    assert error.category is category_while_connecting(error.reason)
    told = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
    for secret in (connection.password_encrypted, "127.0.0.1", "localhost", connection.username):
        assert not secret or secret not in told
    return str(error.stage), str(error.reason)


async def test_case_20_credentials_are_taken_literally(guarded: int) -> None:
    await reach(a_source(guarded, user=USER, password=PASSWORD, database=DATABASE))
    await reach(a_source(guarded, user="plus", password=PLUS))
    for broken in ("app?host=10.0.0.9", "a/b", 'a"b', "a\0b", "$a"):
        source = a_source(guarded, user=USER, password=PASSWORD, database=broken)
        assert await failure_of(source) == ("session", "invalid_setting")


async def test_where_users_are_known(guarded: int) -> None:
    """Stored connections: admin; internal ones: their database; else as the metadata says."""
    stored = a_source(guarded, user="local", password="own", database="crm_7")
    internal = replace(stored, origin=Origin.INTERNAL, password_encrypted="", plain_password="own")
    await reach(internal)
    assert await failure_of(stored) == ("auth", "auth")
    await reach(replace(stored, metadata={"authSource": "crm_7", "directConnection": "true"}))
    assert await failure_of(
        a_source(guarded, user=USER, password=PASSWORD, metadata={"authSource": "crm_7"})
    ) == ("auth", "auth")


async def test_wrong_and_missing_credentials(guarded: int) -> None:
    for user, password in ((USER, "wrong"), ("nobody", "x"), (USER, "")):
        assert await failure_of(a_source(guarded, user=user, password=password)) == ("auth", "auth")


async def test_tls_with_the_right_authority_and_certificate(secured: Secured) -> None:
    tls = TlsSettings(
        mode="true", ca=secured.signer.ca, cert=secured.client.cert, key=secured.client.key
    )
    await reach(a_source(secured.port, host="localhost", tls=tls))
    await reach(a_source(secured.port, host="localhost", tls=replace(tls, mode="enable")))
    unverified = replace(tls, mode="insecure", ca="")
    await reach(a_source(secured.port, tls=unverified))


async def test_tls_that_cannot_be(secured: Secured) -> None:
    good = TlsSettings(
        mode="true", ca=secured.signer.ca, cert=secured.client.cert, key=secured.client.key
    )
    other = authority()
    stranger = other.certificate("reader", client=True)
    for tls in (
        replace(good, ca=other.ca),
        replace(good, ca=""),  # the system does not know it
        replace(good, cert="", key=""),
        replace(good, key=""),
        replace(good, cert=stranger.cert, key=stranger.key),
        replace(good, mode="skip-verify"),
        replace(good, mode="True"),
        replace(good, ca="no PEM"),
        replace(good, ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ):
        source = a_source(secured.port, host="localhost", tls=tls)
        assert await failure_of(source) == ("tls", "tls"), tls
    # the certificate names localhost
    assert await failure_of(a_source(secured.port, host="127.0.0.1", tls=good)) == ("tls", "tls")
    # a server of TLS that is spoken to without
    stage, reason = await failure_of(a_source(secured.port))
    assert (stage, reason) in (("auth", "reset"), ("auth", "protocol"), ("auth", "timeout"))


async def test_without_tls_a_server_of_tls_shows_no_schema(secured: Secured) -> None:
    connection = a_source(secured.port)
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        with trio.fail_after(12), pytest.raises(EngineError) as caught:
            await engine.discover_schema(TENANT, connection.config_name)
    assert caught.value.category is ErrorCategory.CONNECT
    assert caught.value.stage == "auth"


async def test_an_expired_certificate(tmp_path: Path) -> None:
    signer = authority()
    expired = signer.certificate("localhost", expired=True)
    with running_server(tmp_path / "expired", identity=expired) as port:
        tls = TlsSettings(mode="true", ca=signer.ca)
        assert await failure_of(a_source(port, host="localhost", tls=tls)) == ("tls", "tls")


async def test_tls_to_a_server_without(mongo_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PHASE_MS", 800)
    port = int(mongo_uri.rstrip("/").rpartition(":")[2])
    source = a_source(port, tls=TlsSettings(mode="insecure"))
    # this server waits for more, a real one hangs up
    assert await failure_of(source) in (("tls", "timeout"), ("tls", "tls"))


async def test_names_and_ports_that_nobody_has() -> None:
    assert await failure_of(a_source(27017, host="no-such-host.invalid")) == ("dns", "dns")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert await failure_of(a_source(unused.getsockname()[1])) == ("tcp", "refused")


@pytest.mark.parametrize(("tls", "stage"), [(None, "auth"), (TlsSettings(mode="true"), "tls")])
async def test_case_13_a_server_that_never_answers(
    monkeypatch: pytest.MonkeyPatch, tls: TlsSettings | None, stage: str
) -> None:
    monkeypatch.setattr(connect, "PHASE_SECONDS", 1.0)
    monkeypatch.setattr(client, "_PHASE_MS", 800)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        with trio.fail_after(4):
            source = a_source(silent.getsockname()[1], tls=tls)
            assert await failure_of(source) == (stage, "timeout")


async def test_case_13_silence_in_the_login(guarded: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "PHASE_SECONDS", 1.0)
    for after in (300, 900, 1500):
        async with relay("127.0.0.1", guarded, silent_after=after) as between:
            with trio.fail_after(6):
                source = a_source(between.port, user=USER, password=PASSWORD)
                assert await failure_of(source) == ("auth", "timeout")


async def test_another_kind_of_server() -> None:
    async def talk(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, talk, 0)
        port = listeners[0].socket.getsockname()[1]
        stage, reason = await failure_of(a_source(port))
        assert (stage, reason) in (("auth", "protocol"), ("auth", "reset"))
        nursery.cancel_scope.cancel()
