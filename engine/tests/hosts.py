"""A host made of memory ports, for tests to arrange and to look into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

from fetcher_engine import (
    Concurrency,
    ConnectionDescriptor,
    DirectResult,
    Engine,
    ExtractionPlan,
    ExtractionRequest,
    ExtractionResult,
    TenantContext,
)
from fetcher_engine.memory import (
    ManualClock,
    MemoryConnectionIdStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySchemaCache,
    MemorySource,
    RecordingExecutionStore,
)

from .loops import concurrency_of_the_round

TENANT = TenantContext.new("acme")
Rows = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass
class Host:
    """One factory for each config name, whose type is the name in upper case.

    Without a concurrency it has that of the round's loop; ``None`` gives the Engine no port.
    """

    sources: Mapping[str, MemorySource]
    concurrency: Concurrency | EllipsisType | None = ...
    options: dict[str, Any] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)
    cache: MemorySchemaCache | None = None
    executions: RecordingExecutionStore = field(default_factory=RecordingExecutionStore)

    def __post_init__(self) -> None:
        if isinstance(self.concurrency, EllipsisType):
            self.concurrency = concurrency_of_the_round()
        self.factories = {n: MemoryConnectorFactory(s) for n, s in self.sources.items()}
        self.registry = MemoryRegistry({n.upper(): f for n, f in self.factories.items()})
        self.store = MemoryConnectionIdStore()
        for name in self.sources:
            self.add(name)
        self.engine = Engine(
            self.registry,
            connection_store=self.store,
            execution_store=self.executions,
            schema_cache=self.cache,
            concurrency=self.concurrency,
            now=self.clock.now,
            **self.options,
        )

    def add(self, name: str, tenant: TenantContext = TENANT) -> None:
        self.store.put(tenant, ConnectionDescriptor(config_name=name, type=name.upper()))

    async def plan_all(self) -> ExtractionPlan:
        """All columns of all tables of all sources."""
        request = ExtractionRequest(
            mapped_fields={
                name: {table.name: ["*"] for table in source.schema.tables}
                for name, source in self.sources.items()
            }
        )
        return await self.engine.plan_extraction(TENANT, request)

    def close_counts(self) -> list[int]:
        """One for each connector built; all ones when each was closed exactly once."""
        return [count for factory in self.factories.values() for count in factory.close_counts]


def direct_of(result: ExtractionResult) -> DirectResult:
    assert result.direct is not None
    assert result.reference is None
    return result.direct


def host_of(
    rows: Mapping[str, Rows], concurrency: Concurrency | EllipsisType | None = ..., **options: Any
) -> Host:
    sources = {name: MemorySource.of_rows(tables) for name, tables in rows.items()}
    return Host(sources, concurrency, options)
