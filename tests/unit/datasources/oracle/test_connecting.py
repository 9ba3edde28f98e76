"""What the driver is called with, and what its answers mean."""

import ssl
from collections.abc import Sequence
from typing import Any

import oracledb
import pytest
import trio

from fetcher.datasources.oracle import connect
from fetcher.datasources.oracle.connect import service_of
from fetcher.datasources.oracle.errors import connect_failure, statement_failure
from fetcher.datasources.oracle.line import SOCKETS
from fetcher.datasources.oracle.session import SETUP
from fetcher.datasources.oracle.tls import NamedContext, tls_context
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage
from tests.servers.certificates import authority
from tests.unit.datasources.oracle.fake_driver import (
    ADDRESS,
    FakeDatabase,
    a_connector,
    a_target,
    client_error,
    driver_error,
)


@pytest.mark.parametrize(
    ("user", "password"), [("o'brien", "p@ss wörd%/?#:'\"\\"), ("hr/x@y", "p@ss w/rd+%")]
)
async def test_keywords_are_literal_and_nothing_comes_from_elsewhere(
    user: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = FakeDatabase().install(monkeypatch)
    connector = a_connector(target=a_target(user=user, password=password))
    await connector.test_connection()
    await connector.close()
    assert database.keywords == [
        {
            "user": user,
            "password": password,
            "host": ADDRESS,
            "port": 1521,
            "protocol": "tcp",
            "service_name": "ORDERS",
            "sid": None,
            "ssl_context": None,
            "ssl_server_dn_match": False,
            "config_dir": "/dev/null/none",
            "tcp_connect_timeout": 5.0,
            "retry_count": 0,
            "expire_time": 0,
            "program": "fetcher",
            "machine": "fetcher",
            "osuser": "fetcher",
            "terminal": "unknown",
            "driver_name": "fetcher",
        }
    ]
    oracledb.ConnectParams(**database.keywords[0])  # the driver knows them all


async def test_a_session_is_prepared_and_closed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    database = FakeDatabase().install(monkeypatch)
    connector = a_connector(statement_seconds=90)
    await connector.test_connection()
    (connection,) = database.connections
    assert database.statements == [SETUP, "SELECT USER FROM DUAL", "SELECT USER FROM DUAL"]
    assert "TIME_ZONE='UTC'" in SETUP
    assert (connection.module, connection.action) == ("fetcher", "read")
    assert (connection.client_identifier, connection.autocommit) == ("fetcher", False)
    assert set(connection.timeouts) == {90_000}
    await connector.close()
    await connector.close()
    assert connection.is_closed
    assert database.peers[0].recv(1) == b""


@pytest.mark.parametrize(
    ("metadata", "name", "sid"),
    [
        ({"serviceName": " ORDERS.acme.test "}, "ORDERS.acme.test", None),
        ({"sid": "XE"}, None, "XE"),
        ({"serviceName": " ", "sid": "XE"}, None, "XE"),
        ({"serviceName": "A", "sid": "XE"}, "A", None),
    ],
)
def test_service_name_comes_before_sid(
    metadata: dict[str, object], name: str | None, sid: str | None
) -> None:
    found = service_of(a_target(metadata=metadata))
    assert (found.name, found.sid) == (name, sid)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"serviceName": "  "},
        {"serviceName": 7},
        {"serviceName": "a)(ADDRESS=(HOST=10.0.0.9"},
        {"sid": "a b"},
        {"sid": "a\0"},
        {"serviceName": 'a"b'},
    ],
)
async def test_a_service_that_cannot_be_one_is_refused_before_dialling(
    metadata: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = FakeDatabase().install(monkeypatch)
    with pytest.raises(SourceFailure) as caught:
        await a_connector(target=a_target(metadata=metadata)).test_connection()
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "invalid_setting")
    assert not database.dialled


async def test_the_next_address_is_tried_until_one_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = FakeDatabase().install(monkeypatch)
    dial = database.dial

    async def one_is_down(addresses: Sequence[str], port: int) -> Any:
        if addresses == ["192.0.2.1"]:
            raise SourceFailure(Stage.TCP, "refused")
        return await dial(addresses, port)

    async def resolve(*_: object, **__: object) -> tuple[str, ...]:
        return ("192.0.2.1", "192.0.2.2", "192.0.2.3")

    monkeypatch.setattr(connect, "dial", one_is_down)
    monkeypatch.setattr(connect, "resolve", resolve)
    connector = a_connector(target=a_target(host="db.acme.test"))
    await connector.test_connection()
    await connector.close()
    assert [each["host"] for each in database.keywords] == ["192.0.2.2"]


async def test_the_judge_sees_every_address_before_it_is_dialled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = FakeDatabase().install(monkeypatch)

    def judge(host: str, port: int, addresses: Sequence[str]) -> None:
        assert (host, port, list(addresses)) == (ADDRESS, 1521, [ADDRESS])
        raise SourceFailure(Stage.DNS, "host_refused")

    with pytest.raises(SourceFailure, match="host_refused"):
        await a_connector(target=a_target(judge=judge)).test_connection()
    assert not database.dialled


async def test_a_redirect_is_judged_like_the_first_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The listener sends the driver on; it asks for a second connection."""
    judged = []

    def judge(host: str, port: int, addresses: Sequence[str]) -> None:
        judged.append((host, port, tuple(addresses)))
        if host != ADDRESS:
            raise SourceFailure(Stage.DNS, "host_refused")

    database = FakeDatabase().install(monkeypatch)

    def redirected(**keywords: Any) -> None:
        database.connect(**keywords)
        try:
            SOCKETS.create_connection(("10.0.0.9", 1522), 1)
        except SourceFailure:
            raise client_error("DPY-6005") from None

    monkeypatch.setattr(oracledb, "connect", redirected)
    with pytest.raises(SourceFailure) as caught:
        await a_connector(target=a_target(judge=judge)).test_connection()
    assert (caught.value.stage, caught.value.reason) == (Stage.DNS, "host_refused")
    assert judged == [(ADDRESS, 1521, (ADDRESS,)), ("10.0.0.9", 1522, ("10.0.0.9",))]
    assert database.peers[0].recv(1) == b""


async def test_a_driver_that_dials_by_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDatabase(takes_socket=False).install(monkeypatch)
    with pytest.raises(SourceFailure, match="protocol"):
        await a_connector().test_connection()


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (driver_error(1017), Stage.AUTH, "auth"),
        (driver_error(28000), Stage.AUTH, "auth"),
        (driver_error(28001), Stage.AUTH, "auth"),
        (driver_error(12514), Stage.AUTH, "database_missing"),
        (driver_error(12505), Stage.AUTH, "database_missing"),
        (client_error("DPY-6001"), Stage.AUTH, "database_missing"),
        (client_error("DPY-6003"), Stage.AUTH, "database_missing"),
        (driver_error(1045), Stage.AUTH, "forbidden"),
        (driver_error(12519), Stage.AUTH, "too_many_connections"),
        (
            client_error("DPY-6000", "Listener refused connection. (Similar to ORA-12520)"),
            Stage.AUTH,
            "too_many_connections",
        ),
        (driver_error(18), Stage.AUTH, "too_many_connections"),
        (driver_error(20), Stage.AUTH, "too_many_connections"),
        (driver_error(1033), Stage.AUTH, "starting_up"),
        (driver_error(12528), Stage.AUTH, "starting_up"),
        (driver_error(28860), Stage.TLS, "tls"),
        (driver_error(28868), Stage.TLS, "tls"),
        (client_error("DPY-6006"), Stage.TLS, "tls"),
        (client_error("DPY-4011"), Stage.AUTH, "reset"),
        (driver_error(3113), Stage.AUTH, "reset"),
        (client_error("DPY-4024"), Stage.AUTH, "timeout"),
        (client_error("DPY-5004"), Stage.AUTH, "protocol"),
        (client_error("DPY-3010"), Stage.AUTH, "unsupported_version"),
        (driver_error(9999), Stage.AUTH, "unknown"),
        (ValueError("canary"), Stage.AUTH, "unknown"),
    ],
)
async def test_a_refused_login_has_a_word_and_no_text(
    error: Exception, stage: Stage, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = FakeDatabase(refuses=error).install(monkeypatch)
    connector = a_connector()
    with pytest.raises(SourceFailure) as caught:
        await connector.test_connection()
    await connector.close()
    failure = caught.value
    assert (failure.stage, failure.reason) == (stage, reason)
    assert failure.__context__ is None
    assert "canary" not in repr((failure, vars(failure)))
    assert database.peers[0].recv(1) == b"", "nothing stays open"


def test_the_cause_behind_a_driver_error_decides() -> None:
    error = client_error("DPY-6005")
    error.__cause__ = ssl.SSLCertVerificationError("canary")
    assert connect_failure(Stage.TLS, error).reason == "tls"
    error.__cause__ = ConnectionRefusedError(111, "canary")
    assert connect_failure(Stage.TCP, error).reason == "refused"
    error.__cause__ = client_error("DPY-4011")
    assert connect_failure(Stage.AUTH, error).reason == "reset"


@pytest.mark.parametrize(
    ("error", "stage", "told", "reason"),
    [
        (driver_error(942), Stage.QUERY, Stage.SCHEMA, "schema changed"),
        (driver_error(904), Stage.QUERY, Stage.SCHEMA, "schema changed"),
        (driver_error(1722), Stage.QUERY, Stage.QUERY, "invalid_filter_value"),
        (driver_error(1722), Stage.ROWS, Stage.ROWS, "unknown"),
        (driver_error(932), Stage.QUERY, Stage.QUERY, "invalid_filter"),
        (driver_error(1031), Stage.QUERY, Stage.QUERY, "forbidden"),
        (driver_error(1555), Stage.ROWS, Stage.ROWS, "conflict"),
        (driver_error(1013), Stage.ROWS, Stage.ROWS, "timeout"),
        (client_error("DPY-4024"), Stage.ROWS, Stage.ROWS, "timeout"),
        (client_error("DPY-4011"), Stage.ROWS, Stage.ROWS, "reset"),
        (driver_error(3135), Stage.ROWS, Stage.ROWS, "reset"),
        (driver_error(54), Stage.QUERY, Stage.QUERY, "lock_timeout"),
        (driver_error(4031), Stage.QUERY, Stage.QUERY, "out_of_resources"),
        (
            UnicodeDecodeError("utf-8", b"\xf3", 0, 1, "canary"),
            Stage.ROWS,
            Stage.ROWS,
            "invalid_text",
        ),
        (BrokenPipeError(32, "canary"), Stage.ROWS, Stage.ROWS, "reset"),
    ],
)
def test_a_statement_that_fails_has_a_word(
    error: Exception, stage: Stage, told: Stage, reason: str
) -> None:
    failure = statement_failure(stage, error, table="STAFF")
    assert (failure.stage, failure.reason, failure.table) == (told, reason, "STAFF")


# --- TLS -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["", "disable", "false"])
def test_modes_without_tls(mode: str) -> None:
    assert tls_context(TlsSettings(mode=mode), "db.acme.test") is None
    assert tls_context(None, "db.acme.test") is None


@pytest.mark.parametrize("mode", ["true", "enable", "verify"])
def test_verifying_modes_check_chain_and_name(mode: str) -> None:
    context = tls_context(TlsSettings(mode=mode, ca=authority().ca), "db.acme.test")
    assert context is not None
    assert context.expected_name == "db.acme.test"
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(context.get_ca_certs()) == 1


def test_skip_verify_checks_nothing() -> None:
    context = tls_context(TlsSettings(mode="skip-verify"), "db.acme.test")
    assert context is not None
    assert (context.expected_name, context.verify_mode) == (None, ssl.CERT_NONE)


@pytest.mark.parametrize(
    "tls",
    [
        TlsSettings(mode="preferred"),
        TlsSettings(mode="verify-ca"),
        TlsSettings(mode="True"),
        TlsSettings(mode="true", ca="canary"),
        TlsSettings(mode="true", cert="canary", key="canary"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tls: TlsSettings) -> None:
    with pytest.raises(SourceFailure) as caught:
        tls_context(tls, "db.acme.test")
    assert (caught.value.stage, caught.value.reason) == (Stage.TLS, "tls")
    assert caught.value.__context__ is None


async def test_tls_is_asked_for_by_protocol_and_context(monkeypatch: pytest.MonkeyPatch) -> None:
    database = FakeDatabase().install(monkeypatch)
    connector = a_connector(target=a_target(tls=TlsSettings(mode="skip-verify")))
    await connector.test_connection()
    await connector.close()
    (keywords,) = database.keywords
    assert keywords["protocol"] == "tcps"
    assert isinstance(keywords["ssl_context"], NamedContext)
    assert keywords["ssl_server_dn_match"] is False


async def test_control_characters_in_the_user_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    database = FakeDatabase().install(monkeypatch)
    with pytest.raises(SourceFailure, match="invalid_setting"):
        await a_connector(target=a_target(user="h\nr")).test_connection()
    assert not database.dialled


async def test_a_cancelled_login_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    database = FakeDatabase().install(monkeypatch)
    started = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def silent(**keywords: Any) -> None:
        taken = SOCKETS.create_connection((keywords["host"], keywords["port"]), 1)
        trio.from_thread.run_sync(started.set, trio_token=token)
        taken.recv(1)  # until somebody shuts it
        raise client_error("DPY-4011")

    monkeypatch.setattr(oracledb, "connect", silent)
    connector = a_connector()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connector.test_connection)
        await started.wait()
        nursery.cancel_scope.cancel()
    await connector.close()
    assert database.peers[0].recv(1) == b""
