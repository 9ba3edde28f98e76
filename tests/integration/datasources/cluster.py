"""A PostgreSQL server of a test's own: with passwords and TLS."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.certificates import Authority, Identity, authority

OWNER = "fetcher_owner"
START_SECONDS = 60
NOT_RUNNING = 3
"""What ``pg_ctl status`` exits with then."""

_HBA = """
local all all trust
host all {owner} 127.0.0.1/32 trust
hostssl all tls_only 127.0.0.1/32 trust
hostssl all cert_only 127.0.0.1/32 cert
host all plain,plus,nobody,resting,crowded,"o'brien" 127.0.0.1/32 scram-sha-256
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where it listens, and who signed its certificate, which names ``localhost`` if not told."""

    port: int
    authority: Authority
    ca: str
    client: Identity
    """Signed by the same CA, for the user ``cert_only``."""
    conninfo: str


@contextmanager
def running_cluster(
    folder: Path, *, host_name: str = "localhost", expired: bool = False
) -> Iterator[Cluster]:
    """Make the server in ``folder`` and stop it at the end."""
    for parent in folder.parents:
        # the server's own user must be able to get there
        if parent.is_relative_to(Path("/tmp")) and parent != Path("/tmp"):  # noqa: S108 - pytest's own folders
            parent.chmod(0o755)
    bin_folder = _bin_folder()
    folder.mkdir()
    _give_to_server_user(folder)
    data = folder / "data"
    _run(bin_folder / "initdb", "-D", data, "-U", OWNER, "--auth=trust", "--no-sync", "-E", "UTF8")
    signer = authority()
    server = signer.certificate(host_name, expired=expired)
    client = signer.certificate("cert_only", client=True)
    port = _free_port()
    for name, text in (
        ("server.crt", server.cert),
        ("server.key", server.key),
        ("ca.crt", signer.ca),
        ("pg_hba.conf", _HBA.format(owner=OWNER)),
    ):
        path = data / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        _give_to_server_user(path)
    with (data / "postgresql.conf").open("a", encoding="utf-8") as settings:
        settings.write(
            f"\nport = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n"
            "ssl = on\nssl_ca_file = 'ca.crt'\nfsync = off\nshared_buffers = '16MB'\n"
        )
    control = bin_folder / "pg_ctl"
    _run(control, "-D", data, "-w", "-t", str(START_SECONDS), "-l", folder / "log", "start")
    try:
        yield Cluster(
            port=port,
            authority=signer,
            ca=signer.ca,
            client=client,
            conninfo=f"host=127.0.0.1 port={port} user={OWNER} dbname=postgres",
        )
    finally:
        # one that was gone already is told by pg_ctl as a failure; that it is gone is what counts
        _run(control, "-D", data, "-w", "-m", "immediate", "stop", expected=(0, 1))
        _run(control, "-D", data, "status", expected=(NOT_RUNNING,))


def _bin_folder() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    beside_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    assert beside_path, "PostgreSQL's server programs are missing: run `make services`"
    return Path(beside_path).parent


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; its package brings this user."""
    return "postgres" if os.geteuid() == 0 else None


def _give_to_server_user(path: Path) -> None:
    if (user := _server_user()) is not None:
        shutil.chown(path, user)


def _run(*command: str | Path, expected: Sequence[int] = (0,)) -> None:
    # the server inherits what pg_ctl has: a pipe would never end
    ended = subprocess.run(
        list(map(str, command)),
        check=False,
        user=_server_user(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=START_SECONDS,
    )
    assert ended.returncode in expected, ended


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
