"""Connecting to PostgreSQL: credentials, TLS, deadlines, and what each failure is called."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import trio
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict

from fetcher.datasources.host_guard import HostGuard, HostList
from fetcher.datasources.postgresql import connect
from fetcher.domain.connections import Connection, Origin, TlsSettings
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.cluster import Cluster, running_cluster
from tests.integration.datasources.harness import (
    TENANT,
    a_connection,
    category_while_connecting,
    document,
    engines,
)
from tests.servers.certificates import authority

pytestmark = pytest.mark.integration

PASSWORD = "p@ss wörd%/?#:'\"\\"
PLUS = "p@ss w/rd+%"
USER = "o'brien"
DATABASE = "app?host=10.0.0.9&sslmode=disable"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster", numbered=True)
    with running_cluster(folder / "server") as started:
        with psycopg.connect(started.conninfo, autocommit=True) as admin:
            for name, password in ((USER, PASSWORD), ("plain", "plain"), ("plus", PLUS)):
                admin.execute(
                    sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                        sql.Identifier(name), sql.Literal(password)
                    )
                )
            admin.execute("CREATE ROLE tls_only LOGIN")
            admin.execute("CREATE ROLE cert_only LOGIN")
            admin.execute("CREATE ROLE resting NOLOGIN PASSWORD 'plain'")
            admin.execute("CREATE ROLE crowded LOGIN PASSWORD 'plain' CONNECTION LIMIT 0")
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
            admin.execute("CREATE DATABASE closed")
            admin.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
        yield started


@pytest.fixture
def plain(cluster: Cluster) -> Connection:
    return a_connection(
        host="127.0.0.1", port=cluster.port, database="postgres", user="plain", password="plain"
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
    for secret in (connection.password_encrypted, "127.0.0.1", "obrien", "plain"):
        assert not secret or secret not in told
    return str(error.stage), str(error.reason)


async def test_password_user_and_database_are_taken_literally(cluster: Cluster) -> None:
    async with engines() as opened:
        connection = a_connection(
            host="127.0.0.1", port=cluster.port, database=DATABASE, user=USER, password=PASSWORD
        )
        engine = opened.engine_for([connection], JobOptions())
        assert (await engine.test_connection(TENANT, "src")).success


async def test_neither_a_plus_nor_a_percent_sign_of_a_password_is_decoded(
    plain: Connection,
) -> None:
    await reach(replace(plain, username="plus", password_encrypted=PLUS))


@pytest.mark.parametrize(
    ("change", "stage", "reason"),
    [
        ({"password_encrypted": "wrong"}, "auth", "auth"),
        ({"password_encrypted": ""}, "auth", "auth"),
        ({"username": "nobody"}, "auth", "auth"),
        ({"username": "resting"}, "auth", "auth"),
        ({"username": "crowded"}, "auth", "too_many_connections"),
        ({"database_name": "missing"}, "auth", "database_missing"),
        ({"database_name": "closed"}, "auth", "forbidden"),
        ({"username": "tls_only"}, "tls", "tls_required"),
        ({"host": "no-such-host.invalid"}, "dns", "dns"),
        ({"password_encrypted": "nul\0"}, "session", "invalid_setting"),
    ],
)
async def test_refusals_are_told_apart(
    plain: Connection, change: dict[str, str], stage: str, reason: str
) -> None:
    assert await failure_of(replace(plain, **change)) == (stage, reason)  # type: ignore[arg-type] # the table's own keywords


async def test_closed_port_is_refused(plain: Connection) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert await failure_of(replace(plain, port=closed.getsockname()[1])) == ("tcp", "refused")


async def test_a_name_with_several_addresses_goes_on_to_the_one_that_listens(
    plain: Connection,
) -> None:
    await reach(replace(plain, host="localhost"))


@pytest.mark.parametrize("mode", ["disable", "require"])
@pytest.mark.parametrize(
    ("answer", "reason"), [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"), (b"", "reset")]
)
async def test_another_kind_of_server_is_told_apart(
    plain: Connection, mode: str, answer: bytes, reason: str
) -> None:
    async def speak(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await stream.aclose()

    tls = TlsSettings(mode=mode) if mode != "disable" else None
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, speak, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        found = await failure_of(replace(plain, port=port, tls=tls))
        nursery.cancel_scope.cancel()
    assert found == ("auth" if mode == "disable" else "tls", reason)


@pytest.mark.parametrize(("mode", "stage"), [("disable", "auth"), ("require", "tls")])
async def test_server_that_accepts_and_stays_silent_times_out_at_its_stage(
    plain: Connection, monkeypatch: pytest.MonkeyPatch, mode: str, stage: str
) -> None:
    monkeypatch.setattr(connect, "ADDRESS_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        connection = replace(plain, port=port, tls=TlsSettings(mode=mode))
        assert await failure_of(connection) == (stage, "timeout")


async def test_server_that_does_not_even_accept_times_out_in_tcp(
    plain: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "ADDRESS_SECONDS", 0.3)
    full = socket.socket()
    waiting = []
    with full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            # the queue of an accepting socket is full: the kernel drops whoever else knocks
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        try:
            assert await failure_of(replace(plain, port=full.getsockname()[1])) == (
                "tcp",
                "timeout",
            )
        finally:
            for one in waiting:
                one.close()


async def test_the_whole_attempt_is_bounded(
    plain: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "TOTAL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = replace(plain, port=silent.getsockname()[1])
        with trio.fail_after(2):
            assert await failure_of(connection) == ("auth", "timeout")


# --- TLS ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["allow", "prefer", "require", "verify-ca", "verify-full"])
async def test_modes_that_trust_the_given_authority_connect(
    cluster: Cluster, plain: Connection, mode: str
) -> None:
    tls = TlsSettings(mode=mode, ca=cluster.ca)
    await reach(replace(plain, host="localhost", tls=tls))


async def test_require_without_authority_checks_nothing(plain: Connection) -> None:
    await reach(replace(plain, username="tls_only", tls=TlsSettings(mode="require")))


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_another_authority_is_not_trusted(plain: Connection, mode: str) -> None:
    tls = TlsSettings(mode=mode, ca=authority().ca)
    assert await failure_of(replace(plain, host="localhost", tls=tls)) == ("tls", "tls")


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
async def test_without_authority_the_systems_trust_decides(plain: Connection, mode: str) -> None:
    connection = replace(plain, host="localhost", tls=TlsSettings(mode=mode))
    assert await failure_of(connection) == ("tls", "tls")


async def test_verify_full_compares_the_name_and_verify_ca_does_not(
    cluster: Cluster, plain: Connection
) -> None:
    full = replace(plain, tls=TlsSettings(mode="verify-full", ca=cluster.ca))
    assert await failure_of(full) == ("tls", "tls")
    await reach(replace(plain, tls=TlsSettings(mode="verify-ca", ca=cluster.ca)))


async def test_client_certificate_logs_in_and_leaves_no_file(
    cluster: Cluster, plain: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []
    real = pq.PGconn.connect_start

    def noted(conninfo: bytes) -> pq.abc.PGconn:
        keywords = conninfo_to_dict(conninfo.decode())
        for keyword in ("sslrootcert", "sslcert", "sslkey"):
            path = Path(str(keywords[keyword]))
            seen.append((str(path), path.stat().st_mode & 0o777))
        return real(conninfo)

    starting = SimpleNamespace(connect_start=noted)
    monkeypatch.setattr(connect, "pq", SimpleNamespace(**{**vars(pq), "PGconn": starting}))
    tls = TlsSettings(
        mode="verify-full", ca=cluster.ca, cert=cluster.client.cert, key=cluster.client.key
    )
    await reach(replace(plain, host="localhost", username="cert_only", tls=tls))
    assert {mode for _, mode in seen} == {0o600}
    left = {name for folder in {Path(path).parent for path, _ in seen} for name in _names(folder)}
    assert left == set()


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


async def test_text_that_is_no_certificate_fails_in_tls(plain: Connection) -> None:
    connection = replace(plain, tls=TlsSettings(mode="require", ca="nonsense"))
    assert await failure_of(connection) == ("tls", "tls")


async def test_environment_and_home_folder_decide_nothing(
    cluster: Cluster, plain: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    password_file = tmp_path / "pgpass"
    password_file.write_text("*:*:*:*:plain\n", encoding="utf-8")
    password_file.chmod(0o600)
    for name, value in {
        "PGPASSWORD": "plain",
        "PGPASSFILE": str(password_file),
        "PGHOSTADDR": "10.0.0.9",
        "PGOPTIONS": "-c nonsense=1",
        "PGSSLMODE": "verify-full",
        "PGTARGETSESSIONATTRS": "standby",
    }.items():
        monkeypatch.setenv(name, value)
    await reach(plain)
    assert await failure_of(replace(plain, password_encrypted="")) == ("auth", "auth")


# --- host guard ------------------------------------------------------------------------------


async def refusal(connection: Connection, guard: HostGuard) -> tuple[str, str]:
    """Of a whole extraction, as a worker makes it: nobody tested the connection before."""
    async with engines(judge=guard.judge) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, connection, {"pg_am": ["amname"]})
    return str(caught.value.stage), str(caught.value.reason)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_worker_dials_no_refused_host(plain: Connection, host: str) -> None:
    found = await refusal(replace(plain, host=host), HostGuard())
    assert found == ("dns", "host_refused")


async def test_guarded_worker_does_not_tell_an_open_port_from_a_closed_one(
    plain: Connection,
) -> None:
    guard = HostGuard(allow=HostList.of(["127.0.0.0/8"]))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        shut = await refusal(replace(plain, port=closed.getsockname()[1]), guard)
    unknown = await refusal(replace(plain, host="no-such-host.invalid"), guard)
    untrusted = await refusal(
        replace(plain, tls=TlsSettings(mode="require", ca=authority().ca)), guard
    )
    assert {shut, unknown, untrusted} == {("tcp", "network")}


async def test_allowed_hosts_and_internal_sources_are_reached(plain: Connection) -> None:
    allowing = HostGuard(allow=HostList.of(["127.0.0.0/8"]))
    for guard, connection in (
        (allowing, plain),
        (
            HostGuard(),
            replace(plain, origin=Origin.INTERNAL, plain_password=plain.password_encrypted),
        ),
    ):
        async with engines(judge=guard.judge) as opened:
            engine = opened.engine_for([connection], JobOptions())
            assert (await engine.test_connection(TENANT, "src")).success
