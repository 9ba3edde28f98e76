"""MySQL servers that lie or fall silent: a small server of ours."""

import socket
import ssl
from dataclasses import replace

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.datasources import dialing
from fetcher.datasources.mysql import connect, session
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import TENANT, engines, rows_of
from tests.integration.datasources.mysql_server import (
    ROW,
    failure_of,
    fenced,
    mysql,
    reach,
    to,
    told,
)
from tests.servers.mysql_wire import EOF, OK, Answer, Failure, FakeMysql, Rows, Wire, serving

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
