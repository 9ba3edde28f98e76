"""SQL Server: TLS, login, silence and cancellation, by the real driver against the fake server."""

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
import trio

from fetcher.datasources.host_guard import HostGuard, HostList
from fetcher.datasources.sqlserver import connect as connect_module
from fetcher.datasources.sqlserver import rows as rows_module
from fetcher.datasources.sqlserver import session as session_module
from fetcher.domain.connections import Connection, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import TENANT, document, engines
from tests.integration.datasources.relay import relay
from tests.integration.datasources.sqlserver import Definition, answering, server_context, source
from tests.servers.certificates import authority
from tests.servers.tds import Answer, Column, ServerError, TdsServer, tds_server
from tests.servers.waiting import eventually

ORDERS = {("dbo", "orders"): [("id", "bigint")]}
ONE = Answer(columns=[Column("bigint")], rows=[(1,)])


def a_server(rows: Answer = ONE, **settings: object) -> TdsServer:
    answers = {"FROM [dbo].[orders]": rows}
    return TdsServer(answer=answering(ORDERS, answers), **settings)  # type: ignore[arg-type]


async def outcome(connection: Connection) -> tuple[str, str] | None:
    """Stage and reason of a test that failed; nothing of anybody's words may stand in it."""
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        try:
            await engine.test_connection(TENANT, connection.config_name)
        except EngineError as error:
            told = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
            assert "canary" not in told
            assert "secret" not in told
            return str(error.stage), str(error.reason)
    return None


@pytest.mark.parametrize("password", ["p@ss w\u00f6rd%/?#:'\"\\;{}", "p@ss w/rd+%"])
async def test_login_says_who_we_are_and_that_we_only_read(password: str) -> None:
    """Case 20: names and password travel as they are."""
    database = "app?host=10.0.0.9;encrypt=no"
    server = a_server(users={"o'brien": password}, databases=frozenset({database}))
    async with tds_server(server):
        connection = source(server, user="o'brien", password=password, database=database)
        assert await outcome(connection) is None
    (login,) = server.logins
    assert (login.user, login.password, login.database) == ("o'brien", password, database)
    assert login.application == "fetcher"
    assert login.read_only
    setup = server.requests[0].text
    for word in ("LOCK_TIMEOUT 30000", "XACT_ABORT ON", "DEADLOCK_PRIORITY LOW"):
        assert word in setup


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"password_encrypted": "wrong"}, "auth"),
        ({"username": "nobody"}, "auth"),
        ({"database_name": "missing"}, "database_missing"),
    ],
)
async def test_refused_login_has_a_reason(change: Mapping[str, str], reason: str) -> None:
    async with tds_server(a_server()) as server:
        connection = replace(source(server), **change)  # type: ignore[arg-type]
        with trio.fail_after(3):
            assert await outcome(connection) == ("auth", reason)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (18470, "auth"),
        (18488, "auth"),
        (916, "forbidden"),
        (17809, "too_many_connections"),
        (10928, "too_many_connections"),
        (18401, "starting_up"),
        (99999, "unknown"),
    ],
)
async def test_servers_number_decides_the_reason(number: int, reason: str) -> None:
    server = a_server(login_errors=[ServerError(number)])
    async with tds_server(server):
        assert await outcome(source(server)) == ("auth", reason)


async def test_closed_port_and_other_protocols() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = a_server(port=free.getsockname()[1])
        assert await outcome(source(server)) == ("tcp", "refused")

    async def web(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(1000)
            await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, web, listeners)
        server = a_server(port=listeners[0].socket.getsockname()[1])
        assert await outcome(source(server)) == ("tls", "protocol")
        nursery.cancel_scope.cancel()


CA = authority()
OTHER = authority()
TLS_CASES = [
    # mode and CA, host, certificate's name, requires TLS, stage and reason, login encrypted
    (None, "127.0.0.1", "127.0.0.1", False, None, False),
    (TlsSettings(mode="disable"), "127.0.0.1", "127.0.0.1", False, None, False),
    (None, "127.0.0.1", "127.0.0.1", True, ("tls", "tls_required"), None),
    (TlsSettings(mode="false"), "127.0.0.1", "other.example", False, None, True),
    (TlsSettings(mode="false"), "127.0.0.1", "other.example", True, None, True),
    (TlsSettings(mode="true", ca=CA.ca), "127.0.0.1", "127.0.0.1", False, None, True),
    (TlsSettings(mode="true", ca=CA.ca), "localhost", "localhost", True, None, True),
    (TlsSettings(mode="true", ca=CA.ca), "localhost", "db.example", False, ("tls", "tls"), None),
    (TlsSettings(mode="true", ca=OTHER.ca), "localhost", "localhost", False, ("tls", "tls"), None),
    (TlsSettings(mode="true", ca="no PEM"), "localhost", "localhost", False, ("tls", "tls"), None),
    (TlsSettings(mode="true"), "localhost", "localhost", False, ("tls", "tls"), None),
    (TlsSettings(mode="strict", ca=CA.ca), "localhost", "localhost", False,
     ("session", "strict_unsupported"), None),
]  # fmt: skip


@pytest.mark.parametrize(("tls", "host", "name", "requires", "failure", "encrypted"), TLS_CASES)
async def test_tls_modes(
    tmp_path: Path,
    tls: TlsSettings | None,
    host: str,
    name: str,
    requires: bool,
    failure: tuple[str, str] | None,
    encrypted: bool | None,
) -> None:
    context = server_context(CA.certificate(name), tmp_path)
    server = a_server(tls=context, requires_tls=requires)
    async with tds_server(server):
        assert await outcome(source(server, host=host, tls=tls)) == failure
    assert [login.encrypted for login in server.logins] == (
        [] if encrypted is None else [encrypted]
    )


async def test_expired_certificate_is_refused(tmp_path: Path) -> None:
    context = server_context(CA.certificate("127.0.0.1", expired=True), tmp_path)
    async with tds_server(a_server(tls=context)) as server:
        tls = TlsSettings(mode="true", ca=CA.ca)
        assert await outcome(source(server, tls=tls)) == ("tls", "tls")


async def test_server_without_tls_is_refused_where_it_is_wanted() -> None:
    async with tds_server(a_server()) as server:
        tls = TlsSettings(mode="true", ca=CA.ca)
        assert await outcome(source(server, tls=tls)) == ("tls", "tls")
        assert not server.logins
        assert await outcome(source(server, tls=TlsSettings(mode="false"))) is None


async def test_unverified_only_where_the_connection_or_the_operator_says_so(tmp_path: Path) -> None:
    context = server_context(CA.certificate("other.example"), tmp_path)
    async with tds_server(a_server(tls=context)) as server:
        connection = source(server, tls=TlsSettings(mode="true"))
        trusting = replace(connection, metadata={"trustServerCertificate": "true"})
        assert await outcome(connection) == ("tls", "tls")
        assert await outcome(trusting) is None
        async with engines(sqlserver_trusts_all=True) as opened:
            engine = opened.engine_for([connection], JobOptions())
            assert (await engine.test_connection(TENANT, "src")).success


async def test_rows_travel_encrypted_and_are_the_same(tmp_path: Path) -> None:
    context = server_context(CA.certificate("127.0.0.1"), tmp_path)
    many = Answer(columns=[Column("bigint")], rows=[(n,) for n in range(50_000)])
    plain, secret = a_server(many), a_server(many, tls=context)
    async with tds_server(plain), tds_server(secret), engines() as opened:
        expected = await document(opened, source(plain), {"orders": ["id"]})
        connection = source(secret, tls=TlsSettings(mode="true", ca=CA.ca))
        assert await document(opened, connection, {"orders": ["id"]}) == expected


@pytest.mark.parametrize(
    ("where", "stage"), [("prelogin", "tls"), ("tls", "tls"), ("login", "auth")]
)
async def test_silent_server_ends_by_its_phases_limit(
    where: str, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_module, "PHASE_SECONDS", 0.2)
    context = server_context(CA.certificate("127.0.0.1"), tmp_path)
    async with tds_server(a_server(tls=context, silent_at=where)) as server:
        connection = source(server, tls=TlsSettings(mode="true", ca=CA.ca))
        with trio.fail_after(3):
            assert await outcome(connection) == (stage, "timeout")


async def test_redirection_is_judged_and_followed_once() -> None:
    guard = HostGuard(allow=HostList.of(["127.0.0.1"]))
    async with tds_server(a_server()) as second, engines(judge=guard.judge) as opened:
        found = []
        for host in ("127.0.0.1", "127.0.0.3", "metadata.google.internal", "2130706433"):
            async with tds_server(a_server(route=(host, second.port))) as first:
                engine = opened.engine_for([source(first)], JobOptions())
                try:
                    await engine.test_connection(TENANT, "src")
                    found.append("connected")
                except EngineError as refused:
                    found.append(str(refused.reason))
                assert len(first.logins) == 1
        assert len(second.logins) == 1
    assert found == ["connected", "host_refused", "host_refused", "host_refused"]
    looping = a_server()
    async with tds_server(looping):
        looping.route = ("127.0.0.1", looping.port)
        assert await outcome(source(looping)) == ("session", "redirected")


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("rows", [(), repeat((1,))])
async def test_cancelled_query_is_stopped_on_the_server(
    rows: Iterable[Sequence[object]],
    encrypted: bool,
    tmp_path: Path,
) -> None:
    """Before the first row, as for a table that is locked (case 12), and amid rows without end."""
    answer = Answer(columns=[Column("bigint")], rows=rows, hang=True)
    context = server_context(CA.certificate("127.0.0.1"), tmp_path) if encrypted else None
    tls = TlsSettings(mode="true", ca=CA.ca) if encrypted else None
    async with tds_server(a_server(answer, tls=context)) as server, engines() as opened:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(document, opened, source(server, tls=tls), {"orders": ["id"]})
            await server.running.wait()
            nursery.cancel_scope.cancel()
        assert server.attentions == 1
        await eventually(lambda: server.open_connections == 0, deadline_seconds=1)


async def test_server_that_is_deaf_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "CANCEL_SECONDS", 0.3)
    answer = Answer(columns=[Column("bigint")], hang=True, deaf=True)
    async with tds_server(a_server(answer)) as server, engines() as opened:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(document, opened, source(server), {"orders": ["id"]})
            await server.running.wait()
            began = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - began < 1
        assert server.attentions == 1


async def test_statement_that_takes_too_long_is_stopped() -> None:
    answer = Answer(hang=True)
    async with (
        tds_server(a_server(answer)) as server,
        engines(query_timeout_seconds=0.3) as opened,
    ):
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"orders": ["id"]})
    assert (caught.value.stage, caught.value.reason) == ("query", "timeout")
    assert server.attentions == 1


async def test_connection_cut_anywhere_is_never_a_shorter_success() -> None:
    answer = Answer(columns=[Column("bigint")], rows=[(n,) for n in range(20_000)])
    async with (
        tds_server(a_server(answer)) as server,
        engines(keeps_sessions=False) as opened,
    ):
        async with relay("127.0.0.1", server.port) as whole:
            direct = replace(source(server), port=whole.port)
            data = await document(opened, direct, {"orders": ["id"]})
        assert data.count(b'"id"') == 20_000
        total = whole.forwarded
        for cut_after in (0, 10, 200, total // 10, total // 2, total - 13, total - 1):
            async with relay("127.0.0.1", server.port, cut_after=cut_after) as cutting:
                with pytest.raises(EngineError):
                    await document(
                        opened, replace(source(server), port=cutting.port), {"orders": ["id"]}
                    )


async def test_nothing_of_the_source_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with tds_server(a_server()) as server:
        assert await outcome(source(server)) is None
        assert await outcome(replace(source(server), database_name="canary")) is not None
    assert not [record for record in caplog.records if record.name.startswith("pytds")]


async def test_silence_in_the_midst_of_rows_ends_by_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "NO_PROGRESS_SECONDS", 0.3)
    answer = Answer(columns=[Column("bigint")], rows=[(1,)], hang=True)
    async with tds_server(a_server(answer)) as server, engines() as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"orders": ["id"]})
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")
    assert server.attentions == 1


async def test_rows_without_end_are_stopped_by_the_statements_limit() -> None:
    answer = Answer(columns=[Column("bigint")], rows=repeat((1,)))
    async with (
        tds_server(a_server(answer)) as server,
        engines(query_timeout_seconds=0.5) as opened,
    ):
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"orders": ["id"]})
    assert (caught.value.stage, caught.value.reason) == ("rows", "timeout")
    assert server.attentions == 1


async def test_discovery_lists_the_default_schema_with_its_keys() -> None:
    tables: Mapping[tuple[str, str], Sequence[Definition]] = {
        ("dbo", "b"): [("id", "int"), ("x", "nvarchar", 10)],
        ("dbo", "a"): [("id", "int")],
        ("sales", "c"): [("id", "int")],
    }
    async with tds_server(TdsServer(answer=answering(tables, {}))) as server, engines() as opened:
        engine = opened.engine_for([source(server)], JobOptions())
        snapshot = await engine.discover_schema(TENANT, "src")
    assert [(table.name, table.fields) for table in snapshot.tables] == [
        ("a", ("id",)),
        ("b", ("id", "x")),
    ]
    (key, other) = snapshot.tables[1].columns
    assert (key.type, key.nullable, key.primary_key) == ("int", False, True)
    assert (other.type, other.nullable, other.primary_key) == ("nvarchar", True, False)
