"""Where the test servers are: the environment first, then what ``make services`` wrote down."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SERVICES_ENV = Path(__file__).resolve().parents[2] / ".services" / "env"
HOW_TO_GET_SERVERS = "run `make services` (it finds, starts or installs the test servers)"


class ServerMissingError(Exception):
    """A test server isn't configured or doesn't answer; the text says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAddress:
    """One database on a SQL server, in the words every driver understands."""

    host: str
    port: int
    user: str
    database: str
    password: str = field(default="", repr=False)

    @property
    def conninfo(self) -> str:
        """libpq's connection string, for PostgreSQL only."""
        return make_conninfo(
            "",
            host=self.host,
            port=self.port,
            user=self.user,
            dbname=self.database,
            password=self.password or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """An S3 endpoint and the keys it accepts."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"


def read_settings(
    env_file: Path = SERVICES_ENV, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Every ``FETCHER_TEST_*`` setting: ``KEY=VALUE`` lines of the file, then the environment."""
    lines = env_file.read_text(encoding="utf-8").splitlines() if env_file.exists() else []
    settings = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    settings.update({k: v for k, v in environment.items() if k.startswith("FETCHER_TEST_") and v})
    return settings


def postgres_address(settings: Mapping[str, str]) -> SqlAddress:
    keywords = conninfo_to_dict(_setting(settings, "FETCHER_TEST_POSTGRES_DSN"))
    address = SqlAddress(
        host=str(keywords.get("host") or "127.0.0.1"),
        port=int(keywords.get("port") or 5432),
        user=str(keywords.get("user") or "postgres"),
        password=str(keywords.get("password") or ""),
        database=str(keywords.get("dbname") or "postgres"),
    )
    _answers("PostgreSQL", address.host, address.port)
    return address


def mariadb_address(settings: Mapping[str, str]) -> SqlAddress:
    address = SqlAddress(
        host=_setting(settings, "FETCHER_TEST_MARIADB_HOST"),
        port=int(_setting(settings, "FETCHER_TEST_MARIADB_PORT")),
        user=_setting(settings, "FETCHER_TEST_MARIADB_USER"),
        password=settings.get("FETCHER_TEST_MARIADB_PASSWORD", ""),
        database="mysql",
    )
    _answers("MariaDB", address.host, address.port)
    return address


def s3_address(settings: Mapping[str, str]) -> S3Access:
    endpoint = url_of(settings, "FETCHER_TEST_S3_ENDPOINT", default_port=80)
    return S3Access(
        endpoint=endpoint,
        access_key=settings.get("FETCHER_TEST_S3_ACCESS_KEY", "fetcher-test"),
        secret_key=settings.get("FETCHER_TEST_S3_SECRET_KEY", "fetcher-test-secret"),
        region=settings.get("FETCHER_TEST_S3_REGION", "us-east-1"),
    )


def url_of(settings: Mapping[str, str], name: str, *, default_port: int) -> str:
    """The URL in the setting ``name``, once something accepts connections there.

    Raises:
        ServerMissingError: it is not set, or nothing listens.
    """
    url = _setting(settings, name)
    parts = urlsplit(url)
    _answers(name, parts.hostname or "127.0.0.1", parts.port or default_port)
    return url


def _setting(settings: Mapping[str, str], name: str) -> str:
    value = settings.get(name, "")
    if not value:
        message = f"{name} is not set: {HOW_TO_GET_SERVERS}"
        raise ServerMissingError(message)
    return value


def _answers(name: str, host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as refused:
        message = f"{name}: nothing answers at {host}:{port} ({refused}): {HOW_TO_GET_SERVERS}"
        raise ServerMissingError(message) from None
