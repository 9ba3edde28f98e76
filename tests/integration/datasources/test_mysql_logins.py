"""Logins that only MySQL has, and servers that lie or fall silent, on a small server of ours."""

import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.datasources import dialing
from fetcher.datasources.mysql import connect, session
from fetcher.datasources.mysql.fenced_packets import FENCE
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import TENANT, a_connection, engines, rows_of
from tests.servers import mysql_wire
from tests.servers.certificates import Authority, authority
from tests.servers.mysql_wire import EOF, OK, Answer, Failure, FakeMysql, Rows, Wire, serving

PASSWORD = "canary-p\xe4ss"
ZERO = b"\0"


@pytest.fixture(scope="module")
def signer() -> Authority:
    return authority()


@pytest.fixture(scope="module")
def tls(signer: Authority, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    identity = signer.certificate("localhost")
    folder: Path = tmp_path_factory.mktemp("tls")
    (folder / "cert").write_text(identity.cert, encoding="utf-8")
    (folder / "key").write_text(identity.key, encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context


def to(server: FakeMysql, mode: str = "false", ca: str = "") -> Connection:
    return a_connection(
        source_type=SourceType.MYSQL,
        host="localhost",
        port=server.port,
        database="shop",
        user="reader",
        password=PASSWORD,
        tls=TlsSettings(mode=mode, ca=ca),
    )


async def reach(connection: Connection) -> None:
    async with engines() as opened:
        engine = opened.engine_for([connection], JobOptions())
        await engine.test_connection(TENANT, connection.config_name)


async def failure_of(connection: Connection) -> tuple[str, str]:
    with capture_logs() as logs, pytest.raises(EngineError) as caught:
        await reach(connection)
    assert "canary" not in repr(logs)
    return told(caught.value)


def told(error: EngineError) -> tuple[str, str]:
    """Stage and reason; nothing that was secret, or the server's own, is in it."""
    everything = repr((error, str(error), error.__cause__, error.__context__, vars(error)))
    for secret in ("canary", "own words", "reader", "localhost"):
        assert secret not in everything
    return str(error.stage), str(error.reason)


def words(wire: Wire) -> list[bytes]:
    """What was heard that holds the password as it is."""
    return [one for one in wire.heard if PASSWORD.encode() in one]


# --- methods of login --------------------------------------------------------------------------


async def test_caching_sha2_by_its_fast_path_sends_no_password() -> None:
    server = FakeMysql(plugin="caching_sha2_password", exchange=mysql_wire.fast_caching_sha2)
    async with serving(server) as wires:
        await reach(to(server))
    assert words(wires[0]) == []


async def test_caching_sha2_in_full_without_tls_is_sealed_by_the_servers_key() -> None:
    server = FakeMysql(plugin="caching_sha2_password", exchange=mysql_wire.full_caching_sha2)
    async with serving(server) as wires:
        await reach(to(server))
    # deciphered by the server; nothing before it
    assert words(wires[0]) == [PASSWORD.encode() + ZERO]
    assert wires[0].heard.index(PASSWORD.encode() + ZERO) == 3


@pytest.mark.parametrize("mode", ["true", "skip-verify", "preferred"])
async def test_caching_sha2_in_full_over_tls(
    signer: Authority, tls: ssl.SSLContext, mode: str
) -> None:
    exchange = mysql_wire.full_caching_sha2
    server = FakeMysql(plugin="caching_sha2_password", exchange=exchange, tls=tls)
    async with serving(server) as wires:
        await reach(to(server, mode, signer.ca))
    assert wires[0].is_secure
    assert words(wires[0]) == [PASSWORD.encode() + ZERO]


@pytest.mark.parametrize("method", ["mysql_clear_password", "dialog"])
async def test_only_a_verified_server_may_ask_for_the_password_itself(
    signer: Authority, tls: ssl.SSLContext, method: str
) -> None:
    exchange = mysql_wire.switching_to(method)
    server = FakeMysql(exchange=exchange, tls=tls)
    async with serving(server) as wires:
        for mode in ("false", "skip-verify", "preferred"):
            assert await failure_of(to(server, mode)) == ("auth", "auth")
    assert [words(wire) for wire in wires] == [[], [], []]


async def test_verified_server_gets_the_password_that_it_asks_for(
    signer: Authority, tls: ssl.SSLContext
) -> None:
    server = FakeMysql(exchange=mysql_wire.switching_to("mysql_clear_password"), tls=tls)
    async with serving(server) as wires:
        await reach(to(server, "true", signer.ca))
    assert words(wires[0]) == [PASSWORD.encode() + ZERO]


@pytest.mark.parametrize("method", ["mysql_old_password", "client_ed25519", "auth_gssapi_client"])
async def test_methods_that_are_not_spoken_are_a_refused_login(method: str) -> None:
    server = FakeMysql(exchange=mysql_wire.switching_to(method))
    async with serving(server) as wires:
        assert await failure_of(to(server)) == ("auth", "auth")
    assert words(wires[0]) == []


# --- TLS that is taken away ---------------------------------------------------------------------


async def test_server_without_tls_is_left_unless_that_is_allowed() -> None:
    server = FakeMysql()
    async with serving(server) as wires:
        for mode in ("true", "skip-verify"):
            assert await failure_of(to(server, mode)) == ("tls", "tls")
        assert [wire.heard for wire in wires] == [[], []]
        await reach(to(server, "preferred"))
    assert not wires[2].is_secure


# --- a MySQL that is none of MariaDB's ---------------------------------------------------------


def fenced(text: bytes) -> tuple[bytes]:
    """A row as the statement asks for it."""
    return (FENCE + text + FENCE,)


def mysql(statement: str) -> Answer:
    """A database ``shop`` with the table ``runs``, as MySQL 8.0 tells of it."""
    if "TABLE_ROWS FROM information_schema.TABLES" in statement:
        return Rows(3, [("shop", "runs", "2")])
    if "information_schema.TABLES" in statement:
        return Rows(2, [("shop", "runs")])
    if "information_schema.COLUMNS" in statement:
        return Rows(
            8,
            [
                ("runs", "id", "int", "int", "NO", None, None, None),
                ("runs", "doc", "json", "json", "YES", None, None, None),
            ],
        )
    if "information_schema.STATISTICS" in statement:
        return Rows(2, [("runs", "id")])
    if statement.startswith("SELECT CONCAT") or " FROM `shop`.`runs`" in statement:
        return Rows(1, [fenced(b'{"doc":{"a": 1.10},"id":1}'), fenced(b'{"doc":null,"id":2}')])
    return OK


async def test_mysql_is_asked_in_its_own_words() -> None:
    server = FakeMysql(answer=mysql)
    async with serving(server), engines() as opened:
        rows = await rows_of(opened, to(server), "runs", ["id", "doc"])
    assert [row["id"] for row in rows] == [1, 2]
    setup = [one for one in server.statements if one.startswith("SET SESSION sql_mode")]
    assert all("max_execution_time = 120000" in one for one in setup)
    assert not any("max_statement_time" in one for one in server.statements)
    # MariaDB's alone
    assert not any("CHECK_CONSTRAINTS" in one for one in server.statements)
    (query,) = (one for one in server.statements if " FROM `shop`.`runs`" in one)
    assert "JSON_COMPACT" not in query
    # those around the row
    assert query.count(FENCE.hex()) == 2
    assert "CAST(CONVERT(`t`.`doc` USING utf8mb4) AS BINARY)" in query


async def test_backslashes_that_do_not_escape_are_refused() -> None:
    server = FakeMysql(answer=lambda _: b"\x00\x00\x00\x02\x02\x00\x00")
    async with serving(server):
        assert await failure_of(to(server)) == ("session", "protocol")


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("5.6.51", False),
        ("5.7.44", True),
        ("8.4.3", True),
        ("9.1.0", True),
        ("5.5.5-10.1.48-MariaDB", False),
        ("5.5.5-10.2.44-MariaDB", True),
        ("11.8.2-MariaDB-log", True),
        ("8", False),
    ],
)
async def test_versions(version: str, known: bool) -> None:
    server = FakeMysql(version=version)
    async with serving(server):
        if known:
            await reach(to(server))
        else:
            assert await failure_of(to(server)) == ("session", "unsupported_version")


# --- servers that lie --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "stage", "reason"),
    [
        # wants a file of ours
        (b"\xfb/etc/passwd", "session", "protocol"),
        (b"\xfb", "session", "protocol"),
        (b"", "session", "protocol"),
        (Failure(1040), "session", "unknown"),
        (Failure(1227), "session", "forbidden"),
    ],
)
async def test_what_is_no_answer_to_a_statement(answer: Answer, stage: str, reason: str) -> None:
    def to_setup(statement: str) -> Answer:
        return answer if statement.startswith("SET SESSION sql_mode") else OK

    server = FakeMysql(answer=to_setup)
    async with serving(server) as wires:
        assert await failure_of(to(server)) == (stage, reason)
    assert not any(b"root:" in one for one in wires[0].heard)


async def failure_of_rows(server: FakeMysql, rows: Answer) -> tuple[str, str, str | None]:
    def answer(statement: str) -> Answer:
        return rows if " FROM `shop`.`runs`" in statement else mysql(statement)

    server.answer = answer
    async with serving(server), engines() as opened:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, to(server), "runs", ["id", "doc"])
    return *told(caught.value), caught.value.table


ROW = fenced(b'{"doc":null,"id":1}')


@pytest.mark.parametrize(
    ("rows", "stage", "reason"),
    [
        (Failure(1142), "query", "forbidden"),
        (Failure(1146), "schema", "schema changed"),
        (Failure(1412), "schema", "schema changed"),
        (Failure(9999), "query", "unknown"),
        (OK, "query", "protocol"),
        (b"\xfb/etc/passwd", "query", "protocol"),
        (Rows(2, [("a", "b")]), "query", "protocol"),
        (Rows(1, [ROW] * 9, Failure(3024)), "rows", "timeout"),
        (Rows(1, [ROW] * 9, Failure(1317)), "rows", "interrupted"),
        (Rows(1, [ROW] * 9, Failure(1053)), "rows", "shut_down"),
        (Rows(1, [ROW] * 9, b"\xfe"), "rows", "protocol"),
        (Rows(1, [ROW] * 9, b"\xfe\x00\x00\x0a\x00"), "rows", "protocol"),
        (Rows(1, [ROW] * 9, b"\x09short"), "rows", "protocol"),
        (Rows(1, [ROW, (None,)], EOF), "rows", "protocol"),
        (Rows(1, [ROW, fenced(b'{"doc":null,"id":"\xf3"}')], EOF), "rows", "invalid_text"),
        (Rows(1, [("\x01!5,90000000",)], EOF), "rows", "cell_too_large"),
    ],
)
async def test_results_that_go_wrong_fail_and_are_named(
    rows: Answer, stage: str, reason: str
) -> None:
    assert await failure_of_rows(FakeMysql(), rows) == (stage, reason, "runs")


# --- silence (case 13) -------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "LOGIN_SECONDS", 1.0)
    monkeypatch.setattr(session, "SETUP_SECONDS", 1.0)


async def test_silence_of_the_network_is_one_of_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "ADDRESS_SECONDS", 0.3)
    waiting = []
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            # the queue of an accepting socket is full: the kernel drops whoever else knocks
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        try:
            server = FakeMysql(port=full.getsockname()[1])
            connection = replace(to(server), host="127.0.0.1")
            with pytest.raises(EngineError) as caught:
                await reach(connection)
        finally:
            for one in waiting:
                one.close()
    assert told(caught.value) == ("tcp", "timeout")


async def test_the_whole_attempt_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "TOTAL_SECONDS", 0.5)
    server = FakeMysql(exchange=silent)
    async with serving(server):
        with trio.fail_after(4):
            assert await failure_of(to(server)) == ("auth", "timeout")


async def test_values_of_rows_and_filters_are_in_no_failure() -> None:
    row = fenced(b'{"doc":"canary","id":1}')
    server = FakeMysql()
    assert await failure_of_rows(server, Rows(1, [row], Failure(1317, "canary"))) == (
        "rows",
        "interrupted",
        "runs",
    )
    server = FakeMysql(answer=mysql)
    async with serving(server), engines() as opened:
        for condition in ({"eq": ["canary"]}, {"like": ["canary%"]}, {"between": ["canary"]}):
            with capture_logs() as logs, pytest.raises(EngineError) as caught:
                await rows_of(opened, to(server), "runs", ["id"], where={"id": condition})
            assert told(caught.value)[0] == "query"
            assert "canary" not in repr(logs)
    assert not any("canary" in one for one in server.statements)


async def silent(_: Wire) -> None:
    await trio.sleep_forever()


async def deaf_in_tls(wire: Wire, _: ssl.SSLContext) -> None:
    await silent(wire)


async def test_silence_in_the_handshake_is_one_of_tls(
    quick: None, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wire, "encrypt", deaf_in_tls)
    server = FakeMysql(tls=tls)
    async with serving(server):
        assert await failure_of(to(server, "skip-verify")) == ("tls", "timeout")


@pytest.mark.parametrize("mode", ["false", "skip-verify"])
async def test_silence_in_the_login_is_one_of_it(
    quick: None, tls: ssl.SSLContext, mode: str
) -> None:
    server = FakeMysql(tls=tls, exchange=silent)
    async with serving(server):
        assert await failure_of(to(server, mode)) == ("auth", "timeout")


async def test_silence_in_the_set_up_is_one_of_the_session(quick: None) -> None:
    server = FakeMysql(answer=lambda one: None if "sql_mode" in one else OK)
    async with serving(server):
        assert await failure_of(to(server)) == ("session", "timeout")


async def test_silence_in_the_catalogue_is_one_of_the_schema(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeMysql(answer=lambda one: None if "information_schema" in one else OK)
    async with serving(server), engines(query_timeout_seconds=0.2) as opened:
        engine = opened.engine_for([to(server)], JobOptions())
        with pytest.raises(EngineError) as caught:
            await engine.discover_schema(TENANT, "src")
    assert told(caught.value) == ("schema", "timeout")


@pytest.mark.parametrize("rows", [None, Rows(1, [], None)])
async def test_silence_before_the_first_row_is_one_of_the_query(quick: None, rows: Answer) -> None:
    def answer(statement: str) -> Answer:
        return rows if " FROM `shop`.`runs`" in statement else mysql(statement)

    server = FakeMysql(answer=answer)
    async with serving(server), engines(query_timeout_seconds=0.2) as opened:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, to(server), "runs", ["id", "doc"])
    assert told(caught.value) == ("query", "timeout")
    assert caught.value.table == "runs"


# --- ending a statement -------------------------------------------------------------------------


async def test_statement_is_ended_at_the_address_where_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name is resolved once: a second answer may name somebody else."""
    asked: list[str] = []

    async def resolve(host: str, *_: object, **__: object) -> tuple[str, ...]:
        asked.append(host)
        return ("127.0.0.1",) if len(asked) < 3 else ("127.0.0.99",)

    monkeypatch.setattr(connect, "resolve", resolve)
    server = FakeMysql(
        answer=lambda one: Rows(1, [ROW], None) if " FROM `shop`.`runs`" in one else mysql(one)
    )
    async with serving(server) as wires, engines() as opened:
        with trio.move_on_after(1):
            await rows_of(opened, replace(to(server), host="db.example.com"), "runs", ["id"])
    assert "KILL QUERY 7" in server.statements
    # one that planned, one that read, one that ended
    assert len(wires) <= 3
    assert set(asked) == {"db.example.com"}
    assert len(asked) == len(wires) - 1
