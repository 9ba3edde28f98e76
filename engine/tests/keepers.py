"""An Engine that keeps connections, and every operation that reads or writes one."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from fetcher_engine import (
    ConnectionDescriptor,
    ConnectionInput,
    ConnectionListParams,
    ConnectionPatch,
    Engine,
    ErrorCategory,
    ExtractionRequest,
    ProtectedCredential,
    SchemaValidationRequest,
    Secret,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionIdStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySchemaCache,
    MemorySource,
)

from .loops import concurrency_of_the_round

T1, T2 = TenantContext.new("t1"), TenantContext.new("t2")
NOT_FOUND, CONFLICT, UNAVAILABLE = (
    ErrorCategory.NOT_FOUND,
    ErrorCategory.CONFLICT,
    ErrorCategory.UNAVAILABLE,
)


def a_connection(name: str = "c", password: str = "", **changes: Any) -> ConnectionInput:
    return ConnectionInput(
        config_name=name, type="T", host="h", port=1, password=Secret(password), **changes
    )


class Protector:
    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.key_version = "7"

    async def protect(self, tenant: TenantContext, plaintext: bytes) -> ProtectedCredential:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return ProtectedCredential(plaintext[::-1] + b"!", self.key_version)


class Checker:
    def __init__(self, answer: bool | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def has_active_executions(self, tenant: TenantContext, config_name: str) -> bool:
        self.asked.append((tenant.tenant_id, config_name))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Keeper:
    """An Engine that keeps connections, with what it keeps them in."""

    encrypted: bool = False
    checker: Checker | None = None
    cache: MemorySchemaCache | None = None
    store: MemoryConnectionIdStore = field(default_factory=MemoryConnectionIdStore)
    protector: Protector = field(default_factory=Protector)

    def __post_init__(self) -> None:
        self.engine = Engine(
            MemoryRegistry({"T": MemoryConnectorFactory(MemorySource())}),
            connection_store=self.store,
            credential_protector=self.protector,
            encrypted_persistence=self.encrypted,
            active_execution_checker=self.checker,
            schema_cache=self.cache,
            concurrency=concurrency_of_the_round(),
        )
        self.by_name = self.engine.connections
        self.by_id = self.engine.connections_by_id


def with_an_id(keeper: Keeper) -> ConnectionDescriptor:
    record = ConnectionDescriptor(config_name="c", type="T", id="id-1")
    keeper.store.put(T1, record)
    return record


Call = Callable[[Keeper, TenantContext], Coroutine[Any, Any, object]]
RECORD = ConnectionDescriptor(config_name="c", type="T", id="id-1")
REQUEST = ExtractionRequest(mapped_fields={"c": {"t": ["f"]}})
OPERATIONS: dict[str, Call] = {
    "create": lambda k, t: k.by_name.create(t, a_connection()),
    "get": lambda k, t: k.by_name.get(t, "c"),
    "list": lambda k, t: k.by_name.list(t),
    "update": lambda k, t: k.by_name.update(t, "c", ConnectionPatch()),
    "delete": lambda k, t: k.by_name.delete(t, "c"),
    "get_by_id": lambda k, t: k.by_id.get(t, "id-1"),
    "list_paged": lambda k, t: k.by_id.list_paged(t, ConnectionListParams()),
    "update_by_id": lambda k, t: k.by_id.update(t, "id-1", RECORD, ConnectionPatch()),
    "delete_by_id": lambda k, t: k.by_id.delete(t, "id-1"),
    "test": lambda k, t: k.engine.test_connection(t, "c"),
    "discover": lambda k, t: k.engine.discover_schema(t, "c"),
    "discover_fresh": lambda k, t: k.engine.discover_schema_fresh(t, "c"),
    "validate": lambda k, t: k.engine.validate_schema(
        t, SchemaValidationRequest.of({"c": {"t": ["f"]}})
    ),
    "plan": lambda k, t: k.engine.plan_extraction(t, REQUEST),
}
