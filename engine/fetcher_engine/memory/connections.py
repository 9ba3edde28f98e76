"""Connections by tenant and config name, hard-deleted, listed by name."""

from fetcher_engine.connection import (
    ConnectionDescriptor,
    ConnectionListParams,
    ConnectionPage,
    ProtectedCredential,
)
from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import unknown_connection


class MemoryConnectionStore:
    """Refuses a duplicate name; ``error`` fails every method."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.calls: list[str] = []
        self._records: dict[tuple[str, str], ConnectionDescriptor] = {}
        self._credentials: dict[tuple[str, str], ProtectedCredential] = {}

    def put(self, tenant: TenantContext, descriptor: ConnectionDescriptor) -> None:
        """Place a record without any rule: for arranging a test."""
        self._records[tenant.tenant_id, descriptor.config_name] = descriptor

    def protected_credential(
        self, tenant: TenantContext, config_name: str
    ) -> ProtectedCredential | None:
        """What the Engine stored as the sealed password, None where it stored none."""
        return self._credentials.get((tenant.tenant_id, config_name))

    async def find_connection(
        self, tenant: TenantContext, config_name: str
    ) -> ConnectionDescriptor | None:
        self._called("find_connection")
        return self._records.get((tenant.tenant_id, config_name))

    async def create(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        self._called("create")
        if (tenant.tenant_id, descriptor.config_name) in self._records:
            raise EngineError(ErrorCategory.CONFLICT, "connection already exists")
        self._store(tenant, descriptor, credential)

    async def update(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        self._called("update")
        if (tenant.tenant_id, descriptor.config_name) not in self._records:
            raise unknown_connection()
        self._store(tenant, descriptor, credential)

    async def delete(self, tenant: TenantContext, config_name: str) -> None:
        self._called("delete")
        if self._records.pop((tenant.tenant_id, config_name), None) is None:
            raise unknown_connection()
        self._credentials.pop((tenant.tenant_id, config_name), None)

    async def list(self, tenant: TenantContext) -> tuple[ConnectionDescriptor, ...]:
        self._called("list")
        return self._all(tenant)

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self.error is not None:
            raise self.error

    def _all(self, tenant: TenantContext) -> tuple[ConnectionDescriptor, ...]:
        keys = sorted(key for key in self._records if key[0] == tenant.tenant_id)
        return tuple(self._records[key] for key in keys)

    def _store(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        key = tenant.tenant_id, descriptor.config_name
        self._records[key] = descriptor
        if credential is not None:
            self._credentials[key] = credential


class MemoryConnectionIdStore(MemoryConnectionStore):
    """The same with records by the host's ids; an empty id matches nothing."""

    async def find_by_id(
        self, tenant: TenantContext, connection_id: str
    ) -> ConnectionDescriptor | None:
        self._called("find_by_id")
        return self._by_id(tenant, connection_id)

    async def update_by_id(
        self,
        tenant: TenantContext,
        connection_id: str,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        """A changed config name moves the record and its secret."""
        self._called("update_by_id")
        old = self._by_id(tenant, connection_id)
        if old is None:
            raise unknown_connection()
        del self._records[tenant.tenant_id, old.config_name]
        kept = self._credentials.pop((tenant.tenant_id, old.config_name), None)
        self._store(tenant, descriptor, credential or kept)

    async def delete_by_id(self, tenant: TenantContext, connection_id: str) -> None:
        self._called("delete_by_id")
        old = self._by_id(tenant, connection_id)
        if old is None:
            raise unknown_connection()
        del self._records[tenant.tenant_id, old.config_name]
        self._credentials.pop((tenant.tenant_id, old.config_name), None)

    async def list_paged(
        self,
        tenant: TenantContext,
        params: ConnectionListParams,  # noqa: ARG002 - the filter is the host's own
    ) -> ConnectionPage:
        """Everything on one page, whatever the params say."""
        self._called("list_paged")
        items = self._all(tenant)
        return ConnectionPage(items, len(items))

    def _by_id(self, tenant: TenantContext, connection_id: str) -> ConnectionDescriptor | None:
        found = (d for d in self._all(tenant) if connection_id and d.id == connection_id)
        return next(found, None)
