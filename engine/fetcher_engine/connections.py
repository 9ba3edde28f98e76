"""Keeping connections (spec 8.1 to 8.10, 13, 14).

A name is unique within its tenant, secrets are sealed before they are stored, and what is in use
does not change.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from fetcher_engine.connection import (
    ConnectionDescriptor,
    ConnectionInput,
    ConnectionListParams,
    ConnectionPage,
    ConnectionPatch,
    ProtectedCredential,
)
from fetcher_engine.context import TenantContext, require_tenant
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import from_store, unknown_connection
from fetcher_engine.operation import Spans
from fetcher_engine.ports import (
    ActiveExecutionChecker,
    ConnectionDirectoryStore,
    ConnectionIdStore,
    CredentialProtector,
    SchemaCache,
)
from fetcher_engine.secret import Secret

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRules:
    """What both ways of keeping connections share: sealing, the conflict gate, stale schemas."""

    protector: CredentialProtector | None
    encrypted_persistence: bool
    checker: ActiveExecutionChecker | None
    cache: SchemaCache | None

    async def sealed(
        self, tenant: TenantContext, password: Secret | None
    ) -> ProtectedCredential | None:
        """The credential to store; None keeps what is stored. Never called needlessly: it costs.

        Without encrypted persistence the host keeps the secret itself and none is stored here.
        """
        if not self.encrypted_persistence or password is None:
            return None
        if self.protector is None:
            text = "credential protector is not configured"
            raise EngineError(ErrorCategory.VALIDATION, text)
        # a key service's error may quote the password; an answer that is none would lose it
        with suppress(Exception):
            credential: object = await self.protector.protect(tenant, password.reveal().encode())
            if isinstance(credential, ProtectedCredential):
                return credential
        text = "failed to protect connection credential"
        raise EngineError(ErrorCategory.UNAVAILABLE, text)

    async def require_idle(self, tenant: TenantContext, config_name: str) -> None:
        """Raise ``conflict`` while executions use the connection, and the checker's own errors."""
        if self.checker is None:
            return
        if await self.checker.has_active_executions(tenant, config_name):
            raise EngineError(ErrorCategory.CONFLICT, "connection has active executions")

    async def require_idle_before_writing(self, tenant: TenantContext, config_name: str) -> None:
        """As :meth:`require_idle`; the checker's own errors become ``unavailable``."""
        try:
            return await self.require_idle(tenant, config_name)
        except Exception as error:  # noqa: BLE001 - the boundary to a host's checker
            conflict = isinstance(error, EngineError) and error.category is ErrorCategory.CONFLICT
        text = "failed to check for active executions"
        category = ErrorCategory.UNAVAILABLE
        if conflict:
            category, text = ErrorCategory.CONFLICT, "connection has active executions"
        raise EngineError(category, text)

    async def forget_schema(self, tenant: TenantContext, config_name: str) -> None:
        if self.cache is None:
            return
        # a failure does no harm: fingerprints keep a stale schema from being used
        with suppress(Exception):
            await self.cache.invalidate_schema(tenant, config_name)


class ConnectionDirectory:
    """Connections by tenant and config name."""

    def __init__(
        self, *, store: ConnectionDirectoryStore | None, rules: ConnectionRules, spans: Spans
    ) -> None:
        self._store = store
        self._rules = rules
        self._spans = spans

    async def create(self, tenant: TenantContext, new: ConnectionInput) -> ConnectionDescriptor:
        """Store a new connection; raise ``conflict`` where the tenant has the name already."""

        async def body(store: ConnectionDirectoryStore) -> ConnectionDescriptor:
            _require_kind(new, ConnectionInput, "connection input")
            new.validate()
            descriptor = new.to_descriptor()
            name = descriptor.config_name
            # looked up before sealing: a refused connection costs no call of the key service
            if await from_store(lambda: store.find_connection(tenant, name)) is not None:
                raise EngineError(ErrorCategory.CONFLICT, "connection already exists")
            password = new.password if new.has_password else None
            credential = await self._rules.sealed(tenant, password)
            stored = _with_key_version(descriptor, credential)
            await from_store(lambda: store.create(tenant, stored, credential))
            await self._rules.forget_schema(tenant, name)
            return stored

        return await self._run("create", tenant, body)

    async def get(self, tenant: TenantContext, config_name: str) -> ConnectionDescriptor:
        """Raise ``not_found``, the same text for an unknown name and for another tenant's."""

        async def body(store: ConnectionDirectoryStore) -> ConnectionDescriptor:
            return await _found(store, tenant, config_name)

        return await self._run("get", tenant, body)

    async def list(self, tenant: TenantContext) -> tuple[ConnectionDescriptor, ...]:
        """All of the tenant's, in the store's order."""

        async def body(store: ConnectionDirectoryStore) -> tuple[ConnectionDescriptor, ...]:
            return await from_store(lambda: store.list(tenant))

        return await self._run("list", tenant, body)

    async def update(
        self, tenant: TenantContext, config_name: str, patch: ConnectionPatch
    ) -> ConnectionDescriptor:
        """Patch a connection that no execution uses; raise ``not_found`` or ``conflict``."""

        async def body(store: ConnectionDirectoryStore) -> ConnectionDescriptor:
            _require_kind(patch, ConnectionPatch, "connection patch")
            old = await _found(store, tenant, config_name)
            await self._rules.require_idle_before_writing(tenant, config_name)
            patched = patch.apply(old)
            credential = await self._rules.sealed(tenant, patch.password)
            stored = _with_key_version(patched, credential)
            await from_store(lambda: store.update(tenant, stored, credential))
            await self._rules.forget_schema(tenant, config_name)
            return stored

        return await self._run("update", tenant, body)

    async def delete(self, tenant: TenantContext, config_name: str) -> None:
        """Delete a connection that no execution uses; raise ``not_found`` or ``conflict``."""

        async def body(store: ConnectionDirectoryStore) -> None:
            await _found(store, tenant, config_name)
            await self._rules.require_idle_before_writing(tenant, config_name)
            await from_store(lambda: store.delete(tenant, config_name))
            await self._rules.forget_schema(tenant, config_name)

        await self._run("delete", tenant, body)

    async def check_active_executions(self, tenant: TenantContext, config_name: str) -> None:
        """The conflict gate alone. The checker's own exception passes: it is the caller's own."""

        async def body() -> None:
            require_tenant(tenant)
            await self._rules.require_idle(tenant, config_name)

        name = "engine.connection.check_active_executions"
        await self._spans.run(name, body, passes_foreign_errors=True)

    async def authorize_access(self, tenant: TenantContext) -> None:
        """Whether the tenant is well formed; no I/O."""

        async def body() -> None:
            require_tenant(tenant)

        await self._spans.run("engine.connection.authorize_access", body)

    async def _run(
        self,
        operation: str,
        tenant: TenantContext,
        body: Callable[[ConnectionDirectoryStore], Awaitable[T]],
    ) -> T:
        return await self._spans.run(
            f"engine.connection.{operation}", lambda: body(_required(self._store, tenant))
        )


class ConnectionsById:
    """Connections by the host's own ids. No conflict gate: the host runs it first, once."""

    def __init__(
        self, *, store: ConnectionIdStore | None, rules: ConnectionRules, spans: Spans
    ) -> None:
        self._store = store
        self._rules = rules
        self._spans = spans

    async def get(self, tenant: TenantContext, connection_id: str) -> ConnectionDescriptor:
        """Raise ``not_found``, the same for unknown, malformed and other tenants' ids."""

        async def body(store: ConnectionIdStore) -> ConnectionDescriptor:
            found = await from_store(lambda: store.find_by_id(tenant, connection_id))
            if found is None:
                raise unknown_connection()
            return found

        return await self._run("get_by_id", tenant, body)

    async def list_paged(
        self, tenant: TenantContext, params: ConnectionListParams
    ) -> ConnectionPage:
        """The store's page as it is."""

        async def body(store: ConnectionIdStore) -> ConnectionPage:
            return await from_store(lambda: store.list_paged(tenant, params))

        return await self._run("list_paged", tenant, body)

    async def update(
        self,
        tenant: TenantContext,
        connection_id: str,
        descriptor: ConnectionDescriptor,
        patch: ConnectionPatch,
    ) -> ConnectionDescriptor:
        """Store a descriptor that the host has patched; of the patch only the password counts."""

        async def body(store: ConnectionIdStore) -> ConnectionDescriptor:
            _require_kind(descriptor, ConnectionDescriptor, "connection")
            _require_kind(patch, ConnectionPatch, "connection patch")
            if descriptor.id and descriptor.id != connection_id:
                raise EngineError(ErrorCategory.VALIDATION, "connection id mismatch")
            credential = await self._rules.sealed(tenant, patch.password)
            stored = _with_key_version(descriptor, credential)
            old_name = await self._name_in_cache(store, tenant, connection_id)
            await from_store(lambda: store.update_by_id(tenant, connection_id, stored, credential))
            for name in {old_name or stored.config_name, stored.config_name}:
                await self._rules.forget_schema(tenant, name)
            return stored

        return await self._run("update_by_id", tenant, body)

    async def delete(self, tenant: TenantContext, connection_id: str) -> None:
        """Raise ``not_found``."""

        async def body(store: ConnectionIdStore) -> None:
            name = await self._name_in_cache(store, tenant, connection_id)
            await from_store(lambda: store.delete_by_id(tenant, connection_id))
            if name is not None:
                await self._rules.forget_schema(tenant, name)

        await self._run("delete_by_id", tenant, body)

    async def _name_in_cache(
        self, store: ConnectionIdStore, tenant: TenantContext, connection_id: str
    ) -> str | None:
        """The name under which a schema may be cached; not looked up where nothing is."""
        if self._rules.cache is None:
            return None
        found = await from_store(lambda: store.find_by_id(tenant, connection_id))
        return None if found is None else found.config_name

    async def _run(
        self,
        operation: str,
        tenant: TenantContext,
        body: Callable[[ConnectionIdStore], Awaitable[T]],
    ) -> T:
        return await self._spans.run(
            f"engine.connection.{operation}", lambda: body(_required(self._store, tenant))
        )


def _require_kind(value: object, kind: type, label: str) -> None:
    if not isinstance(value, kind):
        raise EngineError(ErrorCategory.VALIDATION, f"{label} is invalid")


def _required(store: T | None, tenant: TenantContext) -> T:
    if store is None:
        raise EngineError(ErrorCategory.VALIDATION, "connection store is not configured")
    require_tenant(tenant)
    return store


async def _found(
    store: ConnectionDirectoryStore, tenant: TenantContext, config_name: str
) -> ConnectionDescriptor:
    found = await from_store(lambda: store.find_connection(tenant, config_name))
    if found is None:
        raise unknown_connection()
    return found


def _with_key_version(
    descriptor: ConnectionDescriptor, credential: ProtectedCredential | None
) -> ConnectionDescriptor:
    if credential is None:
        return descriptor
    return replace(descriptor, key_version=credential.key_version)
