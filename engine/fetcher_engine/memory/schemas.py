"""A schema cache without expiry."""

from fetcher_engine.context import TenantContext
from fetcher_engine.schema import SchemaSnapshot


class MemorySchemaCache:
    """One schema for each connection, under the fingerprint it was put with."""

    def __init__(self) -> None:
        self.get_error: Exception | None = None
        self.put_error: Exception | None = None
        self.invalidate_error: Exception | None = None
        self._snapshots: dict[tuple[str, str], tuple[str, SchemaSnapshot]] = {}

    async def get_schema(
        self, tenant: TenantContext, config_name: str, fingerprint: str
    ) -> SchemaSnapshot | None:
        if self.get_error is not None:
            raise self.get_error
        stored, snapshot = self._snapshots.get((tenant.tenant_id, config_name), ("", None))
        return snapshot if stored == fingerprint else None

    async def put_schema(
        self, tenant: TenantContext, snapshot: SchemaSnapshot, fingerprint: str
    ) -> None:
        if self.put_error is not None:
            raise self.put_error
        self._snapshots[tenant.tenant_id, snapshot.config_name] = fingerprint, snapshot

    async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
        if self.invalidate_error is not None:
            raise self.invalidate_error
        self._snapshots.pop((tenant.tenant_id, config_name), None)

    def stored(self, tenant: TenantContext, config_name: str) -> SchemaSnapshot | None:
        """What lies there, under whatever fingerprint."""
        return self._snapshots.get((tenant.tenant_id, config_name), ("", None))[1]
