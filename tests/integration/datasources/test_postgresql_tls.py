"""Every TLS mode of PostgreSQL against right and wrong certificates (spec datasources 3.2)."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

import psycopg
import pytest
import trio

from fetcher.datasources.host_guard import HostGuard, HostList
from fetcher.datasources.postgresql.connect import connect
from fetcher.datasources.targets import Target
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure
from tests.integration.datasources.cluster import Cluster, running_cluster
from tests.servers.certificates import authority

pytestmark = pytest.mark.integration

PLAIN, ENCRYPTED, UNTRUSTED = "plain", "encrypted", "tls: tls"

MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Cluster]]:
    """One for each kind of certificate; each knows a user that must come encrypted."""
    folder = tmp_path_factory.mktemp("tls")
    with ExitStack() as stack:
        started = {
            "right": stack.enter_context(running_cluster(folder / "right")),
            "expired": stack.enter_context(running_cluster(folder / "expired", expired=True)),
            "other_name": stack.enter_context(
                running_cluster(folder / "other", host_name="db.acme.test")
            ),
        }
        for cluster in started.values():
            with psycopg.connect(cluster.conninfo, autocommit=True) as admin:
                admin.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
                admin.execute("CREATE ROLE tls_only LOGIN")
                admin.execute("CREATE ROLE cert_only LOGIN")
        yield started


def target(cluster: Cluster, mode: str, *, user: str = "plain", **tls: str) -> Target:
    return Target(
        host="localhost",
        port=cluster.port,
        database="postgres",
        user=user,
        password="plain",
        tls=TlsSettings(mode=mode, **tls),
    )


async def outcome(wanted: Target) -> str:
    """How the session came about, or at which stage it failed and why."""
    try:
        connection = await connect(wanted)
    except SourceFailure as failure:
        return str(failure)
    encrypted = connection.pgconn.ssl_in_use
    connection.close()
    return ENCRYPTED if encrypted else PLAIN


# --- the server's certificate -------------------------------------------------------------------

WITH_AUTHORITY: Final = {
    #             disable allow prefer    require    verify-ca  verify-full
    "right":      (PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, ENCRYPTED, ENCRYPTED),
    "other_name": (PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, ENCRYPTED, UNTRUSTED),
    "expired":    (PLAIN, PLAIN, ENCRYPTED, UNTRUSTED, UNTRUSTED, UNTRUSTED),
    "wrong":      (PLAIN, PLAIN, ENCRYPTED, UNTRUSTED, UNTRUSTED, UNTRUSTED),
}  # fmt: skip
WITHOUT_AUTHORITY: Final = (PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, UNTRUSTED, UNTRUSTED)


@pytest.mark.parametrize("kind", list(WITH_AUTHORITY))
async def test_each_mode_with_an_authority(servers: Mapping[str, Cluster], kind: str) -> None:
    cluster = servers["right" if kind == "wrong" else kind]
    ca = authority().ca if kind == "wrong" else cluster.ca
    found = [await outcome(target(cluster, mode, ca=ca)) for mode in MODES]
    assert dict(zip(MODES, found, strict=True)) == dict(
        zip(MODES, WITH_AUTHORITY[kind], strict=True)
    )


@pytest.mark.parametrize("kind", ["right", "other_name", "expired"])
async def test_each_mode_by_the_systems_trust(servers: Mapping[str, Cluster], kind: str) -> None:
    found = [await outcome(target(servers[kind], mode)) for mode in MODES]
    assert dict(zip(MODES, found, strict=True)) == dict(zip(MODES, WITHOUT_AUTHORITY, strict=True))


@pytest.mark.parametrize("kind", ["right", "other_name", "expired", "wrong"])
async def test_user_that_must_come_encrypted(servers: Mapping[str, Cluster], kind: str) -> None:
    """``allow`` and ``prefer`` check nothing, with an authority or without."""
    cluster = servers["right" if kind == "wrong" else kind]
    ca = authority().ca if kind == "wrong" else cluster.ca
    reached = partial(target, cluster, user="tls_only", ca=ca)
    assert await outcome(reached("disable")) == "tls: tls_required"
    assert await outcome(reached("allow")) == ENCRYPTED
    assert await outcome(reached("prefer")) == ENCRYPTED


async def test_name_is_compared_and_not_the_address(servers: Mapping[str, Cluster]) -> None:
    cluster = servers["right"]
    by_address = replace(target(cluster, "verify-full", ca=cluster.ca), host="127.0.0.1")
    assert await outcome(by_address) == UNTRUSTED


async def test_judged_address_is_dialled_and_the_name_is_kept_for_tls(
    servers: Mapping[str, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resolver that answers differently the second time is not asked a second time."""
    answers = ["127.0.0.1", "10.0.0.3", "10.0.0.3"]

    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        assert host == "db.acme.test"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    cluster = servers["other_name"]
    guard = HostGuard(allow=HostList.of(["127.0.0.0/8"]))
    wanted = replace(
        target(cluster, "verify-full", ca=cluster.ca), host="db.acme.test", judge=guard.judge
    )
    assert await outcome(wanted) == ENCRYPTED
    assert len(answers) == 2
    assert await outcome(wanted) == "dns: host_refused"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("require", UNTRUSTED), ("verify-ca", UNTRUSTED), ("verify-full", UNTRUSTED)],
)
async def test_server_without_tls(mode: str, expected: str) -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"N")
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, refuse, 0, host="127.0.0.1"))
        wanted = Target(
            host="127.0.0.1",
            port=listeners[0].socket.getsockname()[1],
            database="postgres",
            user="plain",
            password="plain",
            tls=TlsSettings(mode=mode, ca=authority().ca),
        )
        found = await outcome(wanted)
        nursery.cancel_scope.cancel()
    assert found == expected


# --- the client's certificate -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["prefer", "require", "verify-ca", "verify-full"])
async def test_client_certificate_that_is_required(
    servers: Mapping[str, Cluster], mode: str
) -> None:
    cluster = servers["right"]
    reached = partial(target, cluster, mode, user="cert_only", ca=cluster.ca)
    given = cluster.client
    assert await outcome(reached(cert=given.cert, key=given.key)) == ENCRYPTED
    assert await outcome(reached()) == "auth: auth"


async def test_client_certificate_that_nobody_asks_for(servers: Mapping[str, Cluster]) -> None:
    cluster = servers["right"]
    given = cluster.client
    wanted = target(cluster, "verify-full", ca=cluster.ca, cert=given.cert, key=given.key)
    assert await outcome(wanted) == ENCRYPTED


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("another_user", "auth: auth"),
        ("another_authority", UNTRUSTED),
        ("expired", UNTRUSTED),
        ("a_servers", UNTRUSTED),
        ("another_key", UNTRUSTED),
        ("no_certificate", UNTRUSTED),
    ],
)
async def test_client_certificate_that_does_not_do(
    servers: Mapping[str, Cluster], kind: str, expected: str
) -> None:
    cluster = servers["right"]
    signer = cluster.authority
    right = signer.certificate("cert_only", client=True)
    given = {
        "another_user": signer.certificate("somebody", client=True),
        "another_authority": authority().certificate("cert_only", client=True),
        "expired": signer.certificate("cert_only", client=True, expired=True),
        "a_servers": signer.certificate("cert-only"),
        "another_key": replace(right, key=signer.certificate("cert_only", client=True).key),
        "no_certificate": replace(right, cert="-----BEGIN CERTIFICATE-----\nbm8=\n-----END"),
    }[kind]
    wanted = target(
        cluster, "require", user="cert_only", ca=cluster.ca, cert=given.cert, key=given.key
    )
    assert await outcome(wanted) == expected
