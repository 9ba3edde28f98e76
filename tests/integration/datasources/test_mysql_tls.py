"""Every TLS mode on MariaDB against right and wrong certificates (spec datasources 3.2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from fetcher.datasources.mysql.connect import connect
from fetcher.datasources.targets import Target
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure
from tests.integration.datasources.mariadb import TlsServer, run_sql, running_server
from tests.servers.certificates import Authority, Identity, authority

pytestmark = pytest.mark.integration

PLAIN, ENCRYPTED, UNTRUSTED = "plain", "encrypted", "tls: tls"

MODES: Final = ("false", "preferred", "skip-verify", "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    server: TlsServer
    signer: Authority
    folder: Path

    @contextmanager
    def showing(self, identity: Identity) -> Iterator[None]:
        """Let the server show another certificate for a while."""
        paths = [self.folder / "crt", self.folder / "key"]
        before = [path.read_text(encoding="utf-8") for path in paths]
        self._show(paths, [identity.cert, identity.key])
        try:
            yield
        finally:
            self._show(paths, before)

    def _show(self, paths: list[Path], texts: list[str]) -> None:
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        run_sql(self.server.admin, "FLUSH SSL")

    def target(self, mode: str, *, user: str = "plain", **tls: str) -> Target:
        return Target(
            host="localhost",
            port=self.server.admin.port,
            database="shop",
            user=user,
            password="plain",
            tls=TlsSettings(mode=mode, **tls),
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("mariadb") / "server"
    signer = authority()
    with running_server(folder, signer=signer) as server:
        run_sql(
            server.admin,
            "CREATE DATABASE shop",
            "CREATE USER plain@'%' IDENTIFIED BY 'plain'",
            "CREATE USER tls_only@'%' IDENTIFIED BY 'plain' REQUIRE SSL",
            "CREATE USER cert_only@'%' IDENTIFIED BY 'plain' REQUIRE X509",
            "GRANT SELECT ON shop.* TO plain@'%', tls_only@'%', cert_only@'%'",
        )
        yield Served(server=server, signer=signer, folder=folder)


async def outcome(wanted: Target) -> str:
    """How the session came about, or at which stage it failed and why."""
    try:
        opened = await connect(wanted)
    except SourceFailure as failure:
        return str(failure)
    ((_, cipher),) = opened.link.run("SHOW STATUS LIKE 'Ssl_cipher'")
    opened.link.take_leave()
    opened.release()
    return ENCRYPTED if cipher else PLAIN


def shown(served: Served, kind: str) -> Identity:
    names = ("db.acme.test",) if kind == "other_name" else ("localhost",)
    return served.signer.certificate(*names, expired=kind == "expired")


WITH_AUTHORITY: Final = {
    #             false  preferred  skip-verify  true
    "right":      (PLAIN, ENCRYPTED, ENCRYPTED, ENCRYPTED),
    "other_name": (PLAIN, ENCRYPTED, ENCRYPTED, UNTRUSTED),
    "expired":    (PLAIN, ENCRYPTED, ENCRYPTED, UNTRUSTED),
    "wrong":      (PLAIN, ENCRYPTED, ENCRYPTED, UNTRUSTED),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(WITH_AUTHORITY))
async def test_each_mode_with_an_authority(served: Served, kind: str) -> None:
    ca = authority().ca if kind == "wrong" else served.signer.ca
    with served.showing(shown(served, kind)):
        found = tuple([await outcome(served.target(mode, ca=ca)) for mode in MODES])
    assert found == WITH_AUTHORITY[kind]


async def test_each_mode_by_the_systems_trust(served: Served) -> None:
    found = tuple([await outcome(served.target(mode)) for mode in MODES])
    assert found == (PLAIN, ENCRYPTED, ENCRYPTED, UNTRUSTED)


async def test_name_is_compared_and_not_the_address(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged is dialled, under the name that the certificate must have."""
    by_address = served.target("true", ca=served.signer.ca)
    with served.showing(served.signer.certificate("db.acme.test")):
        opened = await connect(
            Target(
                host="db.acme.test",
                port=by_address.port,
                database="shop",
                user="plain",
                password="plain",
                tls=by_address.tls,
            ),
            address="127.0.0.1",
        )
        opened.cut()
        opened.release()


async def test_user_that_must_come_encrypted(served: Served) -> None:
    found = tuple(
        [await outcome(served.target(mode, user="tls_only", ca=served.signer.ca)) for mode in MODES]
    )
    # MariaDB says no more than to whoever has a wrong password
    assert found == ("auth: auth", ENCRYPTED, ENCRYPTED, ENCRYPTED)


async def test_server_that_takes_no_plain_connection_refuses_the_login(served: Served) -> None:
    admin = served.server.admin
    plain = served.target("false")
    over_tls = served.target("true", ca=served.signer.ca)
    run_sql(admin, "SET GLOBAL require_secure_transport = ON")
    try:
        found = await outcome(plain), await outcome(over_tls)
    finally:
        opened = await connect(
            Target(
                host="localhost",
                port=admin.port,
                database="mysql",
                user=admin.user,
                password="",
                tls=over_tls.tls,
            )
        )
        opened.link.run("SET GLOBAL require_secure_transport = OFF")
        opened.link.take_leave()
        opened.release()
    # MySQL has a number for it (3159: tls_required), MariaDB that of a wrong password
    assert found == ("auth: auth", ENCRYPTED)


async def test_client_certificates(served: Served) -> None:
    ca = served.signer.ca
    identities = {
        "right": served.signer.certificate("client", client=True),
        "expired": served.signer.certificate("client", client=True, expired=True),
        "of another": authority().certificate("client", client=True),
    }
    found = {
        kind: await outcome(
            served.target("true", user="cert_only", ca=ca, cert=each.cert, key=each.key)
        )
        for kind, each in identities.items()
    }
    found["none"] = await outcome(served.target("true", user="cert_only", ca=ca))
    assert found == {
        "right": ENCRYPTED,
        "expired": UNTRUSTED,
        "of another": UNTRUSTED,
        "none": "auth: auth",
    }
