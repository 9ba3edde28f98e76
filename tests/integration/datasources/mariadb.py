"""MariaDB in tests: databases of a test's own, and a server with TLS and passwords."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymysql  # type: ignore[import-untyped] # its stubs are no dependency

from fetcher.domain.connections import Connection, SourceType
from tests.integration.datasources.harness import a_connection
from tests.servers.addresses import SqlAddress
from tests.servers.certificates import Authority, Identity, authority
from tests.servers.waiting import eventually_sync

START_SECONDS = 60
ADMIN = "fetcher_owner"


def connection_to(address: SqlAddress) -> Connection:
    return a_connection(
        source_type=SourceType.MYSQL,
        host=address.host,
        port=address.port,
        database=address.database,
        user=address.user,
        password=address.password,
    )


@contextmanager
def admin_of(address: SqlAddress) -> Iterator[Any]:
    """A plain driver connection, committing at once."""
    connection = pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password.encode(),
        database=address.database,
        autocommit=True,
        charset="utf8mb4",
        ssl_disabled=True,
    )
    try:
        yield connection
    finally:
        connection.close()


def run_sql(address: SqlAddress, *statements: str) -> None:
    with admin_of(address) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rows_in(address: SqlAddress, statement: str) -> Sequence[tuple[Any, ...]]:
    with admin_of(address) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        found: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return found


@contextmanager
def own_database(server: SqlAddress) -> Iterator[SqlAddress]:
    """A fresh database in UTF-8, dropped at the end."""
    name = f"fetcher_src_{uuid4().hex[:12]}"
    run_sql(server, f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield SqlAddress(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password,
            database=name,
        )
    finally:
        run_sql(server, f"DROP DATABASE {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsServer:
    """``ca`` signed the server's certificate, which names ``localhost``."""

    admin: SqlAddress
    ca: str
    client: Identity
    """Signed by the same CA."""


@contextmanager
def running_server(
    folder: Path,
    *,
    expired: bool = False,
    signer: Authority | None = None,
    options: Sequence[str] = (),
) -> Iterator[TlsServer]:
    """Make the server in ``folder`` and stop it at the end."""
    folder.mkdir()
    data = folder / "data"
    user = ["--user=root"] if os.geteuid() == 0 else []
    common = ["--no-defaults", f"--datadir={data}", *user]
    _run(_program("mariadb-install-db"), *common, "--auth-root-authentication-method=normal")
    signer = signer or authority()
    server = signer.certificate("localhost", expired=expired)
    for name, text in (("crt", server.cert), ("key", server.key), ("ca", signer.ca)):
        (folder / name).write_text(text, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    init = folder / "init.sql"
    init.write_text(
        f"CREATE USER {ADMIN}@'%';\nGRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION;\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [
            _program("mariadbd"),
            *common,
            f"--port={port}",
            "--bind-address=127.0.0.1",
            f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'pid'}",
            f"--init-file={init}",
            f"--ssl-cert={folder / 'crt'}",
            f"--ssl-key={folder / 'key'}",
            f"--ssl-ca={folder / 'ca'}",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=16M",
            "--skip-name-resolve",
            *options,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = SqlAddress(host="127.0.0.1", port=port, user=ADMIN, database="mysql")
    try:
        eventually_sync(lambda: _answers(address), deadline_seconds=START_SECONDS)
        yield TlsServer(
            admin=address, ca=signer.ca, client=signer.certificate("client", client=True)
        )
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    assert found, f"{name} is missing: run `make services`"
    return found


def _answers(address: SqlAddress) -> bool:
    try:
        run_sql(address, "SELECT 1")
    except pymysql.err.Error:
        return False
    return True


def _run(*command: str) -> None:
    subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=START_SECONDS,
    )
