"""A connection: how to reach one database that somebody else owns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from fetcher.domain.ids import ConnectionId
from fetcher.domain.json_values import JsonObject

INVALID_TEXT_OPTION: Final = "invalidText"
"""In a connection's metadata."""

FAIL_ON_INVALID_TEXT: Final = "fail"
REPLACE_INVALID_TEXT: Final = "replace"


class SourceType(StrEnum):
    """The databases of the API (spec datasources 1.1; ``SQLITE``: design section 8)."""

    POSTGRESQL = "POSTGRESQL"
    MYSQL = "MYSQL"
    ORACLE = "ORACLE"
    SQL_SERVER = "SQL_SERVER"
    MONGODB = "MONGODB"
    SQLITE = "SQLITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """TLS as the caller asked for it; certificates and key are PEM text."""

    mode: str
    ca: str = field(default="", repr=False)
    cert: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


class Origin(StrEnum):
    """Who wrote a connection down. It is not stored: what a store gives out was stored."""

    STORED = "stored"
    INTERNAL = "internal"
    """The operator, outside of the connection store (spec datasources 14)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One record of the connection store (spec rest-api 12.2), or an internal data source.

    ``password_encrypted`` is the stored text of spec worker-and-events 5.1 under
    ``encryption_key_version``; the plain password never stands in a stored record. An internal one
    has ``plain_password`` in its place, which lives in memory alone, and no key version.
    ``host``, ``port`` and ``username`` are empty or 0 where the type has no use for them (SQLITE).
    """

    id: ConnectionId
    config_name: str
    type: SourceType
    host: str
    port: int
    database_name: str
    username: str
    password_encrypted: str = field(repr=False)
    encryption_key_version: str
    created_at: datetime
    updated_at: datetime
    product_name: str = ""
    schema: str | None = None
    tls: TlsSettings | None = None
    metadata: JsonObject = field(default_factory=dict)
    deleted_at: datetime | None = None
    origin: Origin = Origin.STORED
    plain_password: str = field(default="", repr=False)
    listed_schema: str = ""
    """What a look at the whole lists where ``schema`` says nothing; a bare name never lies there
    for it (spec datasources 6.2)."""

    def is_as_read(self, before: "Connection") -> bool:
        """Whether nobody has written since it was ``before``. What is sealed counts by itself: a
        rotation of keys seals it anew, and moves no ``updated_at``."""
        return self._written_state == before._written_state

    @property
    def sealed_tls_key(self) -> str:
        """The private key of TLS as it is stored; empty without one."""
        return self.tls.key if self.tls is not None else ""

    @property
    def _written_state(self) -> tuple[datetime, str, str, str]:
        sealed = (self.password_encrypted, self.encryption_key_version, self.sealed_tls_key)
        return (self.updated_at, *sealed)

    @property
    def is_internal(self) -> bool:
        return self.origin is Origin.INTERNAL

    @property
    def replaces_invalid_text(self) -> bool:
        """Whether text that is not valid in its encoding is replaced; else it fails the job."""
        return self.metadata.get(INVALID_TEXT_OPTION) == REPLACE_INVALID_TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionQuery:
    """A page of live connections: newest first unless ``ascending``."""

    product_name: str | None = None
    type: str | None = None
    host: str | None = None
    database_name: str | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None
    """Half-open: records of exactly this instant are left out."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Dotted path below ``metadata`` to the text that must stand there."""
    unassigned: bool = False
    """Only those that belong to no product."""
    ascending: bool = False
    page: int = 1
    limit: int = 10
    preceding: int = 0
    """Items of another kind that take the first places of the same list."""

    @property
    def skip(self) -> int:
        """How many connections stand on earlier pages."""
        return max(0, (self.page - 1) * self.limit - self.preceding)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPage:
    items: tuple[Connection, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionName:
    """A live connection's record, be it readable or not."""

    id: ConnectionId | None
    """None where what stands there is no id."""
    config_name: str


class UpdateAnswer(StrEnum):
    """What an update of a connection met."""

    WRITTEN = "written"
    GONE = "gone"
    """Deleted, or never there."""
    CHANGED = "changed"
    """Somebody else wrote since it was read."""
