"""How each server is started from its package: for tests, on loopback, without durability.

A launch gets a folder of its own that does not exist yet, and ports that are free. RabbitMQ's may
be repeated on its folder and port after its end: durable queues keep what they held.
"""

import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.servers.daemons import (
    SYSTEM_FOLDERS,
    Daemon,
    free_port,
    give_to,
    run_step,
    start,
    unprivileged_user,
)

STEP_SECONDS = 120.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server may put things: its data, which goes away with it, and its log."""

    data: Path
    log: Path
    port: int


Started = Callable[[Daemon], None]
"""Told of each process as soon as it runs, so that none is lost when the next step fails."""

Launch = Callable[[Place, Started], None]
"""Starts a server and what it needs, the server last; raises DaemonError or VenvError."""


def executable(*names: str, folders: Sequence[Path] = ()) -> str | None:
    """The first of the names found in the folders, on the path or among the system's folders."""
    where = [*map(str, folders), "", *SYSTEM_FOLDERS]
    found = (shutil.which(name, path=folder or None) for name in names for folder in where)
    return next(filter(None, found), None)


def postgres_folders(root: Path = Path("/usr/lib/postgresql")) -> list[Path]:
    """Debian keeps each major version's programs apart; the newest first."""
    versions = [entry for entry in root.glob("*/bin") if entry.parent.name.isdigit()]
    return sorted(versions, key=lambda entry: int(entry.parent.name), reverse=True)


def find_postgres() -> Launch | None:
    server = executable("postgres", folders=postgres_folders())
    initdb = executable("initdb", folders=postgres_folders())
    if not (server and initdb):
        return None

    def launch(place: Place, started: Started) -> None:
        user = unprivileged_user("postgres")
        home = give_to(place.data, user)
        cluster = str(home / "cluster")
        run_step(
            "PostgreSQL",
            [
                initdb,
                "-D",
                cluster,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ],
            log=place.log,
            folder=home,
            user=user,
            deadline_seconds=STEP_SECONDS,
        )
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(place.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_wal_size": "4GB",
            "shared_buffers": "256MB",
            "max_connections": "200",
        }
        options = [word for item in settings.items() for word in ("-c", "=".join(item))]
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for its clients to leave
        started(
            start(
                "PostgreSQL",
                [server, "-D", cluster, *options],
                log=place.log,
                folder=home,
                user=user,
                end_signal=signal.SIGINT,
            )
        )

    return launch


def find_mariadb() -> Launch | None:
    server = executable("mariadbd", "mysqld")
    install = executable("mariadb-install-db", "mysql_install_db")
    if not (server and install):
        return None

    def launch(place: Place, started: Started) -> None:
        user = unprivileged_user("mysql")
        home = give_to(place.data, user)
        data = f"--datadir={home / 'data'}"
        run_step(
            "MariaDB",
            [
                install,
                "--no-defaults",
                data,
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            log=place.log,
            folder=home,
            user=user,
            deadline_seconds=STEP_SECONDS,
        )
        started(
            start(
                "MariaDB",
                [
                    server,
                    "--no-defaults",
                    data,
                    f"--bind-address={LOOPBACK}",
                    f"--port={place.port}",
                    f"--socket={home / 's'}",
                    f"--pid-file={home / 'pid'}",
                    "--skip-name-resolve",
                    "--character-set-server=utf8mb4",
                    "--innodb-buffer-pool-size=256M",
                    "--innodb-flush-log-at-trx-commit=0",
                ],
                log=place.log,
                folder=home,
                user=user,
            )
        )

    return launch


def find_redis() -> Launch | None:
    server = executable("redis-server", "valkey-server")
    if not server:
        return None

    def launch(place: Place, started: Started) -> None:
        user = unprivileged_user("redis")
        home = give_to(place.data, user)
        command = [
            server,
            "--bind",
            LOOPBACK,
            "--port",
            str(place.port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(home),
        ]
        started(start("Redis", command, log=place.log, folder=home, user=user))

    return launch


def find_rabbitmq() -> Launch | None:
    # Debian's /usr/sbin/rabbitmq-server admits root and one user only: the script behind it first
    server = executable("rabbitmq-server", folders=[Path("/usr/lib/rabbitmq/bin")])
    control = executable("rabbitmqctl", folders=[Path("/usr/lib/rabbitmq/bin")])
    epmd = executable("epmd")
    if not (server and control and epmd):
        return None

    def launch(place: Place, started: Started) -> None:
        user = unprivileged_user("rabbitmq")
        home = give_to(place.data, user)
        for name in ("mnesia", "log", "schema", "config"):
            give_to(home / name, user)
        (home / "env.conf").touch(mode=0o644)
        (home / "enabled_plugins").write_text("[].\n")
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {LOOPBACK}:{place.port}\n"
            "disk_free_limit.absolute = 64MB\n"
            "log.console = true\nlog.console.level = info\n"
        )
        epmd_port = free_port()
        environment = {
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(epmd_port),
            "RABBITMQ_NODENAME": f"fetcher-{place.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONF_ENV_FILE": str(home / "env.conf"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(home / "config"),
            "RABBITMQ_SCHEMA_DIR": str(home / "schema"),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(home / "pid"),
            # the start script then becomes the server, which so gets our signal itself
            "RUNNING_UNDER_SYSTEMD": "true",
        }
        # Tests make virtual hosts with it: it finds this broker and no other.
        command = home / f"rabbitmqctl-{place.port}"
        command.write_text(
            f"#!/bin/sh\nexport HOME='{home}' RABBITMQ_NODENAME='fetcher-{place.port}@localhost'"
            f" ERL_EPMD_PORT='{epmd_port}' RABBITMQ_CONF_ENV_FILE='{home / 'env.conf'}'\n"
            f"exec '{control}' \"$@\"\n"
        )
        command.chmod(0o755)
        # The Erlang port mapper would start itself as a daemon that nobody could find again.
        started(
            start(
                "RabbitMQ's port mapper",
                [epmd, "-port", str(epmd_port), "-address", LOOPBACK],
                log=place.log,
                folder=home,
                user=user,
            )
        )
        started(
            start(
                "RabbitMQ", [server], log=place.log, folder=home, user=user, environment=environment
            )
        )

    return launch


def mongo_launch(server: Path) -> Launch:
    """The MongoDB-compatible test server from its own virtual environment, on a fresh folder."""

    def launch(place: Place, started: Started) -> None:
        home = give_to(place.data, None)
        command = [
            str(server),
            "--host",
            LOOPBACK,
            "--port",
            str(place.port),
            "--storage-path",
            str(home / "storage"),
            "--log-level",
            "WARNING",
        ]
        started(start("MongoDB", command, log=place.log, folder=home))

    return launch


def s3_launch(server: Path) -> Launch:
    """moto's S3 server, which keeps everything in memory."""

    def launch(place: Place, started: Started) -> None:
        home = give_to(place.data, None)
        command = [str(server), "-H", LOOPBACK, "-p", str(place.port)]
        started(start("S3", command, log=place.log, folder=home))

    return launch
