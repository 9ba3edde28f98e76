"""Register a connection (spec rest-api 7.3 and 8.1)."""

from collections.abc import Callable, Collection, Iterator

from fetcher.commands import connection_rules as rules
from fetcher.commands.connection_checks import check_record
from fetcher.commands.connection_input import NewConnection
from fetcher.commands.connection_refusals import refuse_invalid, refuse_missing, refuse_taken
from fetcher.commands.connection_secrets import with_sealed_tls_key
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.errors import DuplicateConfigName, ForbiddenHost
from fetcher.domain.ids import new_connection_id
from fetcher.domain.internal_sources import INTERNAL_SOURCES
from fetcher.domain.times import cut_to_milliseconds
from fetcher.ports import ConnectionRecords, PasswordCipher, UtcNow


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
        """``refuses_host`` is the host guard's answer on hosts as written, where it is on."""
        self._connections = connections
        self._cipher = cipher
        self._now = now
        self._refuses_host = refuses_host
        self._types = rules.source_types(sqlite_allowed=sqlite_allowed)

    async def __call__(self, new: NewConnection, *, product_name: str) -> Connection:
        """Raise ``FET-0402``, ``FET-0001`` (a field is missing, or invalid) or ``FET-1002``.

        A host that the guard refuses is ``FET-0414`` alone, whatever else is wrong.
        """
        if self._refuses_host is not None and self._refuses_host(new.host, new.port):
            raise ForbiddenHost
        source_type = next((t for t in self._types if t == new.type), None)
        refuse_missing(dict(_missing_fields(new)))
        refuse_invalid(dict(_invalid_fields(new, source_type, self._types)))
        connection = self._record(new, SourceType(new.type), product_name)
        check_record(connection, password=new.password)

        # under the name of an internal data source it would be shadowed for ever (spec 13)
        taken = connection.config_name in INTERNAL_SOURCES
        if taken or await self._connections.find_by_config_names([connection.config_name]):
            refuse_taken(connection.config_name)
        connection = with_sealed_tls_key(connection, self._cipher)
        try:
            await self._connections.insert(connection)
        except DuplicateConfigName:
            taken = True
        if taken:
            refuse_taken(connection.config_name)
        return connection

    def _record(self, new: NewConnection, source_type: SourceType, product_name: str) -> Connection:
        created_at = cut_to_milliseconds(self._now())
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
            tls=new.tls.settings() if new.tls is not None and new.tls.is_given else None,
            metadata=new.metadata,
        )


def _missing_fields(new: NewConnection) -> Iterator[tuple[str, str]]:
    """A name that cannot be one is told beside them: its own refusal comes later."""
    required: dict[str, object] = {"configName": new.config_name, "type": new.type}
    if new.type == SourceType.SQLITE:
        required["databaseName"] = new.database_name
    else:
        required |= {
            "host": new.host,
            "port": new.port,
            "databaseName": new.database_name,
            "userName": new.username,
            "password": new.password,
        }
    missing = [name for name, value in required.items() if not value]
    yield from ((name, "is required") for name in missing)
    name = new.config_name.strip()
    if missing and name and not rules.CONFIG_NAME.fullmatch(name):
        yield "configName", rules.CONFIG_NAME_CHARACTERS


def _invalid_fields(
    new: NewConnection, source_type: SourceType | None, known: Collection[SourceType]
) -> Iterator[tuple[str, str]]:
    if source_type is None:
        yield "type", rules.type_rule(new.type, known)
    if new.host and not rules.is_host(new.host):
        yield "host", rules.HOST_RULE
    if new.port and new.port not in rules.PORTS:
        yield "port", rules.PORT_RULE
