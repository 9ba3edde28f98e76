"""Register a connection (spec rest-api 7.3 and 8.1)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from fetcher.commands import connection_rules as rules
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.errors import DuplicateConfigName, FetcherError, ForbiddenHost
from fetcher.domain.ids import new_connection_id
from fetcher.domain.internal_sources import INTERNAL_SOURCES
from fetcher.domain.json_values import JsonObject
from fetcher.domain.times import cut_to_milliseconds
from fetcher.domain.tls_keys import seal_tls_key
from fetcher.domain.tls_modes import VERIFYING_TLS_MODES, tls_mode_problem
from fetcher.ports import ConnectionRecords, PasswordCipher, UtcNow


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsInput:
    """TLS settings as sent; what was left out is empty."""

    mode: str = ""
    ca: str = field(default="", repr=False)
    cert: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def is_given(self) -> bool:
        """An object without any value means "no TLS settings"."""
        return bool(self.mode or self.ca or self.cert or self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """A connection as sent; what was left out is empty, 0 or None."""

    config_name: str = ""
    type: str = ""
    host: str = ""
    port: int = 0
    database_name: str = ""
    schema: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    tls: TlsInput | None = None
    metadata: JsonObject = field(default_factory=dict)


class CreateConnection:
    """Validate, encrypt what is secret, store. No attempt is made to reach the database."""

    def __init__(
        self,
        *,
        connections: ConnectionRecords,
        cipher: PasswordCipher,
        now: UtcNow,
        sqlite_allowed: bool,
        refuses_host: Callable[[str, int], bool] | None = None,
    ) -> None:
        """``refuses_host`` is the host guard's answer on address literals, where it is on."""
        self._connections = connections
        self._cipher = cipher
        self._now = now
        self._refuses_host = refuses_host
        self._types = frozenset(SourceType) - (
            frozenset() if sqlite_allowed else {SourceType.SQLITE}
        )

    async def __call__(self, new: NewConnection, *, product_name: str) -> Connection:
        """Raise ``FET-0402``, ``FET-0001`` (a field is missing, or invalid) or ``FET-1002``.

        A host that the guard refuses is ``FET-0414`` alone, whatever else is wrong.
        """
        if self._refuses_host is not None and self._refuses_host(new.host, new.port):
            raise ForbiddenHost
        source_type = next((t for t in self._types if t == new.type), None)
        _refuse_missing(_missing_fields(new, source_type))
        _refuse_invalid(_invalid_fields(new, source_type, self._types))
        connection = self._record(new, SourceType(new.type), product_name)
        _refuse_missing(_missing_parts(connection, new), entity_type="connection")
        _refuse_invalid(_invalid_parts(connection, new), entity_type="connection")

        # under the name of an internal data source it would be shadowed for ever (spec 13)
        taken = connection.config_name in INTERNAL_SOURCES
        if taken or await self._connections.find_by_config_names([connection.config_name]):
            _refuse_taken(connection.config_name)
        connection = replace(connection, tls=self._stored_tls(connection.tls))
        try:
            await self._connections.insert(connection)
        except DuplicateConfigName:
            taken = True
        if taken:
            _refuse_taken(connection.config_name)
        return connection

    def _stored_tls(self, tls: TlsSettings | None) -> TlsSettings | None:
        if tls is None:
            return None
        return seal_tls_key(tls, encrypt=self._cipher.encrypt, key_version=self._cipher.key_version)

    def _record(self, new: NewConnection, source_type: SourceType, product_name: str) -> Connection:
        created_at = cut_to_milliseconds(self._now())
        given_tls = new.tls is not None and new.tls.is_given
        return Connection(
            id=new_connection_id(),
            config_name=new.config_name.strip(),
            type=source_type,
            host=new.host.strip(),
            port=new.port,
            database_name=new.database_name.strip(),
            username=new.username.strip(),
            password_encrypted=self._cipher.encrypt(new.password) if new.password else "",
            encryption_key_version=self._cipher.key_version,
            created_at=created_at,
            updated_at=created_at,
            product_name=product_name,
            schema=new.schema or None,
            tls=TlsSettings(mode=new.tls.mode, ca=new.tls.ca, cert=new.tls.cert, key=new.tls.key)
            if given_tls and new.tls is not None
            else None,
            metadata=new.metadata,
        )


Found = Iterator[tuple[str, str]]
"""Field names with what is wrong; each rule yields at most one a field."""


def _missing_fields(new: NewConnection, source_type: SourceType | None) -> Found:
    required: dict[str, object] = {"configName": new.config_name, "type": new.type}
    if source_type is SourceType.SQLITE:
        required["databaseName"] = new.database_name
    else:
        required |= {
            "host": new.host,
            "port": new.port,
            "databaseName": new.database_name,
            "userName": new.username,
            "password": new.password,
        }
    return ((name, "is required") for name, value in required.items() if not value)


def _invalid_fields(
    new: NewConnection, source_type: SourceType | None, known: Collection[SourceType]
) -> Found:
    if source_type is None:
        yield "type", f"must be one of {', '.join(sorted(known))}"
    if new.host and not rules.is_host(new.host):
        yield "host", "must be a host name or an IP address"
    if new.port and new.port not in rules.PORTS:
        yield "port", "must be between 1 and 65535"


def _missing_parts(connection: Connection, new: NewConnection) -> Found:
    if not rules.CONFIG_NAME.fullmatch(connection.config_name):
        yield "config_name", "needs letters, digits, '-' and '_' only"
    if not connection.database_name:
        yield "database_name", "is required"
    if connection.type is not SourceType.SQLITE and not connection.username:
        yield "username", "is required"
    if new.tls is not None and new.tls.is_given:
        if not new.tls.mode:
            yield "ssl.mode", "is required"
        if new.tls.mode in VERIFYING_TLS_MODES and not new.tls.ca:
            yield "ssl.ca", "is required by a mode that verifies"


def _invalid_parts(connection: Connection, new: NewConnection) -> Found:
    if len(connection.config_name.encode()) not in rules.CONFIG_NAME_BYTES:
        yield "config_name", "must have 3 to 100 characters"
    yield from _unstorable_texts(connection, new)
    yield from _invalid_tls(connection)
    if connection.type is SourceType.SQLITE and not rules.is_source_path(connection.database_name):
        yield "database_name", "must be a relative path without '..'"
    if connection.type is SourceType.ORACLE:
        yield from _invalid_oracle_service(connection.metadata)
    if problem := rules.invalid_text_problem(connection.metadata):
        yield "metadata.invalidText", problem
    if problem := rules.metadata_problem(connection.metadata):
        yield "metadata", problem


_PRINTABLE = frozenset({"database_name", "username"})


def _unstorable_texts(connection: Connection, new: NewConnection) -> Found:
    texts = {
        "database_name": (connection.database_name, rules.MAX_NAME_CHARACTERS),
        "username": (connection.username, rules.MAX_NAME_CHARACTERS),
        "schema": (connection.schema or "", rules.MAX_NAME_CHARACTERS),
        "password": (new.password, rules.MAX_PASSWORD_CHARACTERS),
    }
    for name, (text, most) in texts.items():
        if len(text) > most:
            yield name, f"must have at most {most} characters"
        elif name in _PRINTABLE and rules.CONTROL.search(text):
            yield name, "must not hold control characters"
        elif "\0" in text:
            # No wire protocol of the databases carries it: it would cut the value short.
            yield name, "must not hold a NUL character"


def _invalid_tls(connection: Connection) -> Found:
    tls = connection.tls
    if tls is None:
        return
    if problem := tls_mode_problem(connection.type, tls.mode):
        yield "ssl.mode", f"FET-0413 - {problem}"
    for name, text in {"ca": tls.ca, "cert": tls.cert, "key": tls.key}.items():
        if len(text.encode()) > rules.MAX_PEM_BYTES:
            yield f"ssl.{name}", f"must have at most {rules.MAX_PEM_BYTES} bytes"
        elif text and not rules.is_pem(text, certificate=name != "key"):
            yield f"ssl.{name}", "is not PEM text"
    if bool(tls.cert) != bool(tls.key):
        yield (
            ("ssl.key", "is required beside ssl.cert")
            if tls.cert
            else (
                "ssl.cert",
                "is required beside ssl.key",
            )
        )


def _invalid_oracle_service(metadata: JsonObject) -> Found:
    names = {name: metadata.get(name) for name in ("serviceName", "sid")}
    given = {name: text for name, text in names.items() if isinstance(text, str) and text.strip()}
    if not given:
        yield "metadata.serviceName", "ORACLE needs a service name (or metadata.sid)"
    for name, text in given.items():
        if rules.CONTROL.search(text):
            yield f"metadata.{name}", "must not hold control characters"
        elif rules.ORACLE_UNSAFE.search(text.strip()):
            yield f"metadata.{name}", "must not hold blanks, quotes, commas, '\\', '=', '(' or ')'"


def _refuse_missing(found: Found, *, entity_type: str | None = None) -> None:
    _refuse("FET-0402", "Missing Fields in Request", dict(found), entity_type)


def _refuse_invalid(found: Found, *, entity_type: str | None = None) -> None:
    _refuse("FET-0001", "Bad Request", dict(found), entity_type)


def _refuse(code: str, title: str, fields: Mapping[str, str], entity_type: str | None) -> None:
    if fields:
        message = f"{'missing' if code == 'FET-0402' else 'invalid'}: {', '.join(fields)}"
        raise FetcherError(code, title, message, fields=fields, entity_type=entity_type)


def _refuse_taken(config_name: str) -> NoReturn:
    if config_name in INTERNAL_SOURCES:
        raise FetcherError(
            "FET-1002",
            "Conflict",
            f"the config name {config_name} is kept for a source that the operator configures",
        )
    raise FetcherError("FET-1002", "Conflict", f"the config name {config_name} is already used")
