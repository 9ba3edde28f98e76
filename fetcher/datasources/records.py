"""The connection's record on its way through the Engine to the connector (spec engine 17.5)."""

import json
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from fetcher.compat.plugin_crm import is_crm_source
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.targets import Target
from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.tls_keys import open_tls_key
from fetcher_engine import (
    ConnectionDescriptor,
    EngineError,
    ErrorCategory,
    SourceFailure,
    Stage,
    TenantContext,
)

PLUGIN_CRM: Final = "PLUGIN_CRM"
"""The Engine's name for a source that is MongoDB to everybody else: no record has this type."""

RECORD: Final = "fetcher.connection.record"
"""The host attribute that carries the whole record to its connector (spec engine 17.5)."""

_VERSION_KEY: Final = secrets.token_bytes(32)
"""Of this process: what a version is made of can't be guessed from it."""


class ResolvedConnectionStore:
    """Answers for the connections of one request; the first of a name counts."""

    def __init__(self, connections: Sequence[Connection], scope: RequestScope) -> None:
        self._descriptors: dict[str, ConnectionDescriptor] = {}
        for connection in connections:
            descriptor = descriptor_of(connection, scope)
            self._descriptors.setdefault(connection.config_name, descriptor)

    async def find_connection(
        self,
        tenant: TenantContext,  # noqa: ARG002 - the records were resolved for this tenant
        config_name: str,
    ) -> ConnectionDescriptor | None:
        return self._descriptors.get(config_name)


def descriptor_of(
    connection: Connection, scope: RequestScope | None = None
) -> ConnectionDescriptor:
    """The record as the Engine sees it, and the record itself behind a host attribute.

    A schema that was discovered for one ``scope`` answers for no other.
    """
    is_crm = is_crm_source(connection.config_name, connection.type.value)
    return ConnectionDescriptor(
        config_name=connection.config_name,
        type=PLUGIN_CRM if is_crm else connection.type.value,
        host=connection.host,
        port=connection.port,
        database_name=connection.database_name,
        schema=connection.schema or "",
        username=connection.username,
        ssl_mode=connection.tls.mode if connection.tls else "",
        id=str(connection.id),
        key_version=connection.encryption_key_version,
        revision=_revision(connection, scope),
        host_attributes={RECORD: connection},
    )


def _revision(connection: Connection, scope: RequestScope | None) -> str:
    """What is looked for decides what is found: the tables, and the fields where a sample tells
    them, since one that no sampled document has is looked for by name."""
    wanted = None if scope is None else scope.fields(connection.config_name)
    found: object = None if wanted is None else sorted(wanted)
    if wanted is not None and connection.type is SourceType.MONGODB:
        found = {table: sorted(fields) for table, fields in sorted(wanted.items())}
    return json.dumps([connection.updated_at.isoformat(), found])


def record_of(descriptor: ConnectionDescriptor) -> Connection:
    """Raise ``validation`` for a descriptor that did not come from :func:`descriptor_of`."""
    record = descriptor.host_attributes.get(RECORD)
    if not isinstance(record, Connection):
        raise EngineError(ErrorCategory.VALIDATION, "connection record is missing from descriptor")
    return record


def target_of(record: Connection, settings: SourceSettings) -> Target:
    """Where the record points, its secrets revealed: call it when connecting, not before.

    An internal record was written by the operator: nobody judges it.
    Raise SourceFailure ``credential`` where they cannot be revealed.
    """
    password, tls = _secrets(record, settings)
    return Target(
        host=record.host.strip(),
        port=record.port,
        database=record.database_name,
        user=record.username,
        password=password,
        tls=tls,
        metadata=record.metadata,
        judge=None if record.is_internal else settings.judge,
        threads=settings.threads,
    )


def version_of(record: Connection, settings: SourceSettings) -> str:
    """Differs when anything differs that decides where a session goes, as whom, and how.

    Secrets count as they are, not as they are sealed: a new seal changes nothing for a session. It
    tells nothing of what it is made of, and is another one in each process.
    """
    try:
        password, tls = _secrets(record, settings)
    except SourceFailure:
        # No session is opened with them: the attempt says so.
        password, tls = record.password_encrypted, record.tls
    parts = [
        record.type,
        record.host,
        record.port,
        record.database_name,
        record.username,
        password,
        None if tls is None else [tls.mode, tls.ca, tls.cert, tls.key],
        record.metadata,
        record.is_internal,
        settings.judge is not None,
    ]
    text = json.dumps(parts, sort_keys=True, default=str)
    return blake2b(
        text.encode(errors="surrogatepass"), key=_VERSION_KEY, digest_size=16
    ).hexdigest()


def _secrets(record: Connection, settings: SourceSettings) -> tuple[str, TlsSettings | None]:
    if record.is_internal:
        return record.plain_password, record.tls
    try:
        password = settings.decrypt(record.password_encrypted, record.encryption_key_version)
        return password, open_tls_key(record.tls, settings.decrypt) if record.tls else None
    except Exception:  # noqa: BLE001, S110 - whatever a cipher raises, its text stays here
        pass
    raise SourceFailure(Stage.SESSION, "credential")
