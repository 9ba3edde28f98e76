"""A MongoDB-compatible server of a test's own: with users, and TLS where wanted."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pymongo
import pytest
from pymongo.errors import PyMongoError

from tests.servers.certificates import Identity
from tests.servers.waiting import eventually_sync

_PROGRAM = Path(__file__).parents[3] / ".venv-testserver" / "bin" / "secantusd-py"
START_SECONDS = 30.0


@contextmanager
def running_server(
    folder: Path,
    *,
    auth: bool = False,
    identity: Identity | None = None,
    client_ca: str | None = None,
    is_kept: bool = False,
) -> Iterator[int]:
    """The port of a server whose data lies in ``folder``; at the end it is killed, which is quick,
    or stopped in order where its data ``is_kept``.

    With ``client_ca`` it asks clients for a certificate of that authority's.
    """
    program = str(_PROGRAM) if _PROGRAM.is_file() else shutil.which("secantusd-py")
    if program is None:
        pytest.skip("the MongoDB-compatible test server is not installed")
    folder.mkdir(exist_ok=True)
    port = _free_port()
    options = ["--auth"] if auth else []
    if identity is not None:
        for name, text in (("cert", identity.cert), ("key", identity.key)):
            (folder / f"{name}.pem").write_text(text)
            options += [f"--tls-{name}-file", str(folder / f"{name}.pem")]
    if client_ca is not None:
        (folder / "ca.pem").write_text(client_ca)
        options += ["--tls-ca-file", str(folder / "ca.pem"), "--tls-require-client-cert"]
    command = [program, "--host", "127.0.0.1", "--port", str(port), *options]
    command += ["--storage-path", str(folder / "data"), "--log-level", "ERROR"]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env={**os.environ, "HOME": str(folder)}
        )
    try:
        eventually_sync(lambda: _answers(port), deadline_seconds=START_SECONDS)
        yield port
    finally:
        if is_kept:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
        process.kill()
        process.wait()


def make_users(port: int, users: Sequence[tuple[str, str, str]]) -> None:
    """Each with its password and the database that knows it, while the server asks for neither."""
    with pymongo.MongoClient[dict[str, Any]](
        "127.0.0.1", port, serverSelectionTimeoutMS=10_000, serverMonitoringMode="poll"
    ) as client:
        for name, password, database in users:
            with suppress(PyMongoError):
                client[database].command("dropUser", name)
            roles = [{"role": "readWriteAnyDatabase", "db": "admin"}]
            client[database].command("createUser", name, pwd=password, roles=roles)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
