"""Logins and words that only MySQL has: a small server of ours."""

import ssl
from dataclasses import replace

import pytest
import trio

from fetcher.datasources.mysql import connect
from fetcher.datasources.mysql.fenced_packets import FENCE
from tests.integration.datasources.harness import engines, rows_of
from tests.integration.datasources.mysql_server import (
    PASSWORD,
    ROW,
    ZERO,
    failure_of,
    mysql,
    reach,
    to,
    words,
)
from tests.servers import mysql_wire
from tests.servers.certificates import Authority
from tests.servers.mysql_wire import FakeMysql, Rows, serving

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
