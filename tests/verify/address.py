"""Where somebody's server is: the one place where a DSN is taken apart.

``mssql://user@host:1433/db?ssl=true&ca=ca.pem``. Passwords are never on a command line, where
everybody on the machine can read them: they come from the environment, or are asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from fetcher.datasources.targets import Target
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.ids import new_connection_id

PASSWORD_VARIABLE: Final = "FETCHER_VERIFY_PASSWORD"

_SCHEMES: Final = {
    "postgresql": (SourceType.POSTGRESQL, 5432),
    "postgres": (SourceType.POSTGRESQL, 5432),
    "mysql": (SourceType.MYSQL, 3306),
    "mariadb": (SourceType.MYSQL, 3306),
    "mssql": (SourceType.SQL_SERVER, 1433),
    "sqlserver": (SourceType.SQL_SERVER, 1433),
    "oracle": (SourceType.ORACLE, 1521),
    "mongodb": (SourceType.MONGODB, 27017),
}
_OPTIONS: Final = frozenset(
    {"ssl", "ca", "cert", "key", "schema", "sid", "authSource", "trustServerCertificate"}
)


class DsnRefused(Exception):
    """Says what is wrong, and nothing of what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, a database on it, and a user. For Oracle ``database`` is the service."""

    type: SourceType
    host: str
    port: int
    user: str
    database: str
    password: str = field(repr=False)
    schema: str | None = None
    tls: TlsSettings | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        mode = self.tls.mode if self.tls else "none"
        return f"{self.type} at {self.host}:{self.port}, database {self.database}, TLS mode {mode}"

    def target(self) -> Target:
        return Target(
            host=self.host,
            port=self.port,
            database=self.database,
            user=self.user,
            password=self.password,
            tls=self.tls,
            metadata=self.metadata,
        )

    def connection(self) -> Connection:
        """As the product keeps it; the engines of this tool take the stored text as it is."""
        now = datetime.now(UTC)
        return Connection(
            id=new_connection_id(),
            config_name="src",
            type=self.type,
            host=self.host,
            port=self.port,
            database_name=self.database,
            username=self.user,
            password_encrypted=self.password,
            encryption_key_version="1",
            created_at=now,
            updated_at=now,
            schema=self.schema,
            tls=self.tls,
            metadata=dict(self.metadata),
        )


def parsed(dsn: str, *, password: str) -> Address:
    """Raise DsnRefused. Files of ``ca``, ``cert`` and ``key`` are read."""
    try:
        parts = urlsplit(dsn)
        port = parts.port
    except ValueError:
        raise DsnRefused("the DSN is no address") from None
    if parts.password is not None:
        raise DsnRefused(f"no password on the command line: set {PASSWORD_VARIABLE}")
    if parts.scheme not in _SCHEMES:
        raise DsnRefused(f"the DSN begins with none of {', '.join(_SCHEMES)}")
    kind, usual_port = _SCHEMES[parts.scheme]
    database = unquote(parts.path.removeprefix("/"))
    options = _options(parts.query)
    if not parts.hostname or not (database or "sid" in options):
        raise DsnRefused("the DSN needs a host and a database: scheme://user@host:port/database")
    return Address(
        type=kind,
        host=parts.hostname,
        port=port or usual_port,
        user=unquote(parts.username or ""),
        database=database,
        password=password,
        schema=options.get("schema"),
        tls=_tls(options),
        metadata=_metadata(kind, database, options),
    )


def _options(query: str) -> dict[str, str]:
    found = {name: values[-1] for name, values in parse_qs(query).items()}
    if unknown := sorted(set(found) - _OPTIONS):
        raise DsnRefused(f"unknown options: {', '.join(unknown)}")
    return found


def _tls(options: Mapping[str, str]) -> TlsSettings | None:
    if "ssl" not in options:
        return None
    texts = {}
    for name in ("ca", "cert", "key"):
        try:
            texts[name] = Path(options[name]).read_text("ascii") if name in options else ""
        except (OSError, UnicodeDecodeError):
            raise DsnRefused(f"the file of {name} cannot be read") from None
    return TlsSettings(mode=options["ssl"], **texts)


def _metadata(kind: SourceType, database: str, options: Mapping[str, str]) -> dict[str, str]:
    names = ("sid", "authSource", "trustServerCertificate")
    found = {name: options[name] for name in names if name in options}
    if kind is SourceType.ORACLE and "sid" not in found:
        found["serviceName"] = database
    return found
