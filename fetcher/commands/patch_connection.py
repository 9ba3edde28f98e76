"""Change a connection (spec rest-api 7.6)."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import trio

from fetcher.commands import connection_rules as rules
from fetcher.commands.connection_checks import check_record
from fetcher.commands.connection_gate import refuse_in_use
from fetcher.commands.connection_input import ConnectionChange
from fetcher.commands.connection_refusals import refuse_invalid, refuse_missing, refuse_taken
from fetcher.commands.connection_secrets import with_sealed_tls_key
from fetcher.domain.connections import Connection, SourceType, TlsSettings, UpdateAnswer
from fetcher.domain.errors import (
    ConnectionNotFound,
    DuplicateConfigName,
    FetcherError,
    ForbiddenHost,
    PortUnavailable,
)
from fetcher.domain.ids import ConnectionId
from fetcher.domain.internal_sources import INTERNAL_SOURCES
from fetcher.domain.times import later_than
from fetcher.ports import (
    ConnectionRecords,
    ConnectionRecovery,
    ForgetSchemas,
    JobRecords,
    PasswordCipher,
    UtcNow,
)
from fetcher_engine import TenantContext

CHANGE_SECONDS = 20.0
TRIES = 2
"""Somebody else's write between our read and our write is met once; then the caller decides."""


class PatchConnection:
    """Validate, refuse while a job runs, encrypt what is secret, write over what was read."""

    def __init__(
        self,
        *,
        connections: ConnectionRecords,
        jobs: JobRecords,
        cipher: PasswordCipher,
        forget_schemas: ForgetSchemas,
        recover: ConnectionRecovery,
        now: UtcNow,
        sqlite_allowed: bool,
        refuses_host: Callable[[str, int], bool] | None = None,
    ) -> None:
        """``refuses_host`` is the host guard's answer on hosts as written, where it is on."""
        self._connections = connections
        self._jobs = jobs
        self._cipher = cipher
        self._forget_schemas = forget_schemas
        self._recover = recover
        self._now = now
        self._refuses_host = refuses_host
        self._types = rules.source_types(sqlite_allowed=sqlite_allowed)

    async def __call__(
        self, connection_id: ConnectionId, change: ConnectionChange, *, tenant: TenantContext
    ) -> Connection:
        """Raise ``FET-0402``, ``FET-0001`` (a field is missing, or invalid), ``FET-1001``,
        ``FET-1021`` (a job reads from it), ``FET-1002`` or, when others keep changing it,
        ``FET-0004``.

        A host that the guard refuses is ``FET-0414`` alone, whatever else is wrong. Once the
        record is being written, the caller's cancellation waits: what is remembered of the
        connection goes with its old values.
        """
        self._judge_host(change.host or "", change.port or 0)
        refuse_missing(dict(_emptied_fields(change)))
        refuse_invalid(dict(_invalid_fields(change, self._types)))
        for _ in range(TRIES):
            before = await self._connections.get(connection_id)
            if before is None:
                raise ConnectionNotFound(connection_id)
            await refuse_in_use(self._jobs, before.config_name)
            after = self._changed(before, change)
            if (after.host, after.port) != (before.host, before.port):
                self._judge_host(after.host, after.port)
            check_record(after, password=change.password or "", before=before)
            after = with_sealed_tls_key(after, self._cipher)
            if await self._replaced(before, after, tenant):
                return after
        raise FetcherError(
            "FET-0004", "Conflict", "the connection was changed by somebody else at the same time"
        )

    async def _replaced(self, before: Connection, after: Connection, tenant: TenantContext) -> bool:
        """False: the record is no longer the one that was read."""
        with trio.CancelScope(shield=True), trio.move_on_after(CHANGE_SECONDS):
            if not await self._written(after, before):
                return False
            for name in sorted({before.config_name, after.config_name}):
                await self._forget_schemas(tenant, name)
            await self._recover(before.id, before.config_name)
            return True
        raise PortUnavailable("the record store did not answer in time")

    async def _written(self, after: Connection, before: Connection) -> bool:
        """False: the record is no longer the one that was read."""
        taken = after.config_name != before.config_name and after.config_name in INTERNAL_SOURCES
        answer = UpdateAnswer.CHANGED
        if not taken:
            try:
                answer = await self._connections.update(after, before=before)
            except DuplicateConfigName:
                taken = True
        if taken:
            refuse_taken(after.config_name)
        if answer is UpdateAnswer.GONE:
            raise ConnectionNotFound(before.id)
        return answer is UpdateAnswer.WRITTEN

    def _judge_host(self, host: str, port: int) -> None:
        if host and self._refuses_host is not None and self._refuses_host(host, port):
            raise ForbiddenHost

    def _changed(self, before: Connection, change: ConnectionChange) -> Connection:
        after = replace(
            before,
            config_name=_text(change.config_name, before.config_name),
            type=before.type if change.type is None else SourceType(change.type),
            host=_text(change.host, before.host),
            port=before.port if change.port is None else change.port,
            database_name=_text(change.database_name, before.database_name),
            username=_text(change.username, before.username),
            schema=before.schema if change.schema is None else change.schema,
            tls=_tls(change, before.tls),
            metadata=before.metadata if change.metadata is None else change.metadata,
            updated_at=later_than(before.updated_at, now=self._now()),
        )
        if change.password is None:
            return after
        return replace(
            after,
            password_encrypted=self._cipher.encrypt(change.password),
            encryption_key_version=self._cipher.key_version,
        )


def _text(given: str | None, before: str) -> str:
    return before if given is None else given.strip()


def _tls(change: ConnectionChange, before: TlsSettings | None) -> TlsSettings | None:
    if change.removes_tls:
        return None
    return before if change.tls is None else change.tls.over(before)


def _emptied_fields(change: ConnectionChange) -> Iterator[tuple[str, str]]:
    if change.password == "":
        yield "password", "must not be empty"


def _invalid_fields(
    change: ConnectionChange, known: Collection[SourceType]
) -> Iterator[tuple[str, str]]:
    """What is given is judged, also where it is empty or 0."""
    name = change.config_name
    if name is not None and len(name.encode()) not in rules.CONFIG_NAME_BYTES:
        yield "configName", rules.CONFIG_NAME_RULE
    if change.type is not None and change.type not in known:
        yield "type", rules.type_rule(change.type, known)
    if change.host is not None and not rules.is_host(change.host):
        yield "host", rules.HOST_RULE
    if change.port is not None and change.port not in rules.PORTS:
        yield "port", rules.PORT_RULE
