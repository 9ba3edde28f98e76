"""Connections as they go in, come out and are changed (spec 4.2 to 4.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.secret import Secret


def _kept_secret(password: object) -> Secret:
    """A password given as plain text is wrapped at once: it must not show in a repr."""
    if isinstance(password, Secret):
        return password
    if isinstance(password, str):
        return Secret(password)
    raise EngineError(ErrorCategory.VALIDATION, "connection password is invalid")


def _require_port(port: int) -> None:
    if type(port) is not int or not 0 <= port <= 65535:
        raise EngineError(ErrorCategory.VALIDATION, "connection port is invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionInput:
    """What a caller registers. The only type that carries a password, and only inward.

    ``host_attributes`` are the host's own; they travel by reference and are never read, shown or
    serialized.
    """

    config_name: str
    type: str
    host: str = ""
    port: int = 0
    database_name: str = ""
    schema: str = ""
    username: str = ""
    ssl_mode: str = ""
    password: Secret = field(default_factory=Secret)
    host_attributes: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "password", _kept_secret(self.password))

    @property
    def has_password(self) -> bool:
        """Whether a password came along; an empty one counts as none."""
        return bool(self.password)

    def validate(self) -> None:
        """Raise ``validation`` for a blank name or type and for a port that cannot be one."""
        if not self.config_name.strip():
            raise EngineError(ErrorCategory.VALIDATION, "connection config name is required")
        if not self.type.strip():
            raise EngineError(ErrorCategory.VALIDATION, "connection type is required")
        _require_port(self.port)

    def to_descriptor(self) -> "ConnectionDescriptor":
        """The same without the secret."""
        return ConnectionDescriptor(
            config_name=self.config_name,
            type=self.type,
            host=self.host,
            port=self.port,
            database_name=self.database_name,
            schema=self.schema,
            username=self.username,
            ssl_mode=self.ssl_mode,
            host_attributes=self.host_attributes,
        )

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection; of a password it shows only that there is one."""
        public = self.to_descriptor().to_public_dict()
        return {**public, "password": str(self.password) if self.has_password else ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDescriptor:
    """A connection without its secret. ``key_version`` names the key that protected it.

    ``revision`` is the host's word for everything beside these fields that changes what schema
    discovery sees (when the record was last written, which schemas are in scope): a cached schema
    of another revision is not used. Like ``host_attributes`` it is never serialized.
    """

    config_name: str
    type: str
    host: str = ""
    port: int = 0
    database_name: str = ""
    schema: str = ""
    username: str = ""
    ssl_mode: str = ""
    id: str = ""
    key_version: str = ""
    revision: str = field(default="", repr=False)
    host_attributes: Mapping[str, object] = field(default_factory=dict, repr=False)

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection; empty optional members are left out."""
        optional = {
            "id": self.id,
            "schema": self.schema,
            "sslMode": self.ssl_mode,
            "keyVersion": self.key_version,
        }
        return {
            "configName": self.config_name,
            "type": self.type,
            "host": self.host,
            "port": self.port,
            "databaseName": self.database_name,
            "userName": self.username,
            **{name: value for name, value in optional.items() if value},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPatch:
    """What to change: None leaves a field as it is, an empty text clears it.

    ``host_attributes`` replace the old ones as a whole. Config name, id and key version cannot be
    changed.
    """

    type: str | None = None
    host: str | None = None
    port: int | None = None
    database_name: str | None = None
    schema: str | None = None
    username: str | None = None
    ssl_mode: str | None = None
    host_attributes: Mapping[str, object] | None = field(default=None, repr=False)
    password: Secret | None = None

    def __post_init__(self) -> None:
        if self.password is not None:
            object.__setattr__(self, "password", _kept_secret(self.password))

    def with_password(self, password: str) -> Self:
        """A copy that also sets the password; an empty one is a password too."""
        return replace(self, password=Secret(password))

    @property
    def has_password(self) -> bool:
        """Whether the password changes; to an empty one too."""
        return self.password is not None

    def apply(self, descriptor: ConnectionDescriptor) -> ConnectionDescriptor:
        """The patched descriptor; the password is not part of it."""
        if self.port is not None:
            _require_port(self.port)
        if self.type is not None and not self.type.strip():
            raise EngineError(ErrorCategory.VALIDATION, "connection type is required")
        attributes = self.host_attributes
        return replace(
            descriptor,
            type=descriptor.type if self.type is None else self.type,
            host=descriptor.host if self.host is None else self.host,
            port=descriptor.port if self.port is None else self.port,
            database_name=(
                descriptor.database_name if self.database_name is None else self.database_name
            ),
            schema=descriptor.schema if self.schema is None else self.schema,
            username=descriptor.username if self.username is None else self.username,
            ssl_mode=descriptor.ssl_mode if self.ssl_mode is None else self.ssl_mode,
            host_attributes=descriptor.host_attributes if attributes is None else attributes,
        )


@dataclass(frozen=True, slots=True)
class ProtectedCredential:
    """A password as the host's protector sealed it; travels from the Engine to the store only."""

    ciphertext: bytes = field(repr=False)
    key_version: str


@dataclass(frozen=True, slots=True)
class ConnectionListParams:
    """The host's own filter; the Engine does not look into it."""

    filter: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ConnectionPage:
    """Some of a tenant's connections, and how many there are in all."""

    items: tuple[ConnectionDescriptor, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ConnectionTestResult:
    """A source that answered; one that did not raises instead."""

    config_name: str
    success: bool = True

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection."""
        return {"success": self.success, "configName": self.config_name}
