"""A job's attempt over the Engine's memory harness and an object store in memory."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import trio
import trio.testing

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.adapters.memory.records import open_memory_records
from fetcher.commands.job_sources import JobSources
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.crypto.sealer import ResultSealer
from fetcher.domain.breakers import BreakerChange
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.ids import ConnectionId, JobId, new_connection_id, new_job_id
from fetcher.domain.job_stages import JobStage
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import Filters, Job, JobOptions, JobStatus, MappedFields, TerminalOutcome
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher_engine import (
    ConnectionDescriptor,
    Engine,
    SchemaSnapshot,
    TableSnapshot,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)

NOW = datetime(2026, 3, 14, 9, 26, 54, 312000, tzinfo=UTC)
STORAGE_KEY, HMAC_KEY = bytes(range(32)), bytes(range(32, 64))
ROWS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "orders": [{"id": 9007199254740993, "note": "größe"}, {"id": 2, "note": None}]
}


class MemoryUpload:
    def __init__(self, store: "MemoryObjects", key: str) -> None:
        self._store = store
        self._key = key
        self._data = bytearray()
        self.may_appear_late = False

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if self._store.down:
            raise PortUnavailable("bucket away")
        self._data += chunk

    async def complete(self) -> int:
        await trio.lowlevel.checkpoint()
        if self._store.loses_puts:
            self.may_appear_late = True
            self._store.late_puts[self._key] = bytes(self._data)
            raise PortUnavailable("no answer")
        self._store.objects[self._key] = bytes(self._data)
        self._store.when_visible()
        return len(self._data)


class MemoryObjects:
    """Only what an attempt uses; counts what was begun and left."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.down = False
        self.when_visible: Callable[[], None] = lambda: None
        self.open_uploads = 0
        self.loses_puts = False
        self.late_puts: dict[str, bytes] = {}

    @asynccontextmanager
    async def upload(self, key: str) -> AsyncIterator[MemoryUpload]:
        self.open_uploads += 1
        try:
            yield MemoryUpload(self, key)
        finally:
            self.open_uploads -= 1

    async def delete(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.down:
            raise PortUnavailable("bucket away")
        self.objects.pop(key, None)

    def apply_late_puts(self) -> None:
        """What nobody waits for any more is done all the same."""
        self.objects.update(self.late_puts)
        self.late_puts.clear()


class Sources:
    """SourceEngines over one memory source."""

    def __init__(self, source: MemorySource, tenant: Tenant) -> None:
        self.source = source
        self.tenant = TenantContext.new(tenant.engine_id)
        self.built: list[ConnectionId] = []

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: MappedFields | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        store = MemoryConnectionStore()
        for connection in connections:
            self.built.append(connection.id)
            store.put(
                self.tenant,
                ConnectionDescriptor(
                    config_name=connection.config_name,
                    type="POSTGRESQL",
                    host=connection.host,
                    port=connection.port,
                    database_name=connection.database_name,
                    username=connection.username,
                ),
            )
        registry = MemoryRegistry({"POSTGRESQL": MemoryConnectorFactory(self.source)})
        return Engine(registry, connection_store=store)


def a_connection(**changes: object) -> Connection:
    fields: dict[str, object] = {
        "id": new_connection_id(),
        "config_name": "sales_db",
        "type": SourceType.POSTGRESQL,
        "host": "db.test",
        "port": 5432,
        "database_name": "sales",
        "username": "reader",
        "password_encrypted": "sealed",
        "encryption_key_version": "1",
        "created_at": NOW,
        "updated_at": NOW,
        "product_name": "acme-reports",
    }
    return Connection(**{**fields, **changes})  # type: ignore[arg-type] # a test's builder


class BreakerTexts:
    """What a log would hold."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def changed(self, change: BreakerChange) -> None:
        if change.opened or change.closed:
            self.lines.append("opened" if change.opened else "closed")

    def failed(self, failure: PortError) -> None:
        self.lines.append(failure.code)


class Observed:
    """A JobObserver that remembers."""

    def __init__(self) -> None:
        self.stages: list[tuple[JobStage, float]] = []
        self.rows = 0
        self.bytes = 0

    def stage_ended(self, stage: JobStage, seconds: float) -> None:
        self.stages.append((stage, seconds))

    def extracted(self, rows: int, size_bytes: int) -> None:
        self.rows += rows
        self.bytes += size_bytes


class Bench:
    def __init__(
        self,
        source: MemorySource | None = None,
        *,
        internal: Mapping[str, Connection] | None = None,
        tenant: Tenant = NO_TENANT,
    ) -> None:
        schema = SchemaSnapshot(
            config_name="sales_db",
            tables=(TableSnapshot(name="orders", fields=("id", "note")),),
        )
        self.source = source or MemorySource(rows=ROWS, schema=schema)
        self.now = NOW
        self.records = open_memory_records(lambda: self.now)
        self.objects = MemoryObjects()
        self.engines = Sources(self.source, tenant)
        self.log = BreakerTexts()
        self.woken: list[JobId] = []
        self.recover = RecoverConnection(
            breakers=self.records.breakers,
            dispatch=self.records.dispatch,
            hint=self.woken.append,
            log=self.log,
        )
        self.breakers = SourceBreakers(
            breakers=self.records.breakers,
            recover=self.recover,
            sources=self.engines,
            log=self.log,
        )
        self.resolve = ResolveSources(
            internal=EnvironmentSources(internal or {}), stored=self.records.connections
        )
        self.observed = Observed()
        self.run_job = RunJob(
            JobRunParts(
                sources=JobSources(
                    resolve=self.resolve,
                    breakers=self.breakers,
                    max_wait_seconds=3600,
                    tenant=tenant,
                ),
                breakers=self.breakers,
                leases=self.records.leases,
                engines=self.engines,
                objects=self.objects,  # type: ignore[arg-type] # the parts that are used
                cleanup=self.records.cleanup,
                new_sealer=lambda: ResultSealer(storage_key=STORAGE_KEY, hmac_key=HMAC_KEY),
                key_version="7",
                key_prefix=tenant.object_prefix("results/"),
                tenant=tenant,
                now=lambda: NOW,
                observer=self.observed,
            )
        )

    def pass_time(self, seconds: float) -> None:
        """The record store's clock."""
        self.now += timedelta(seconds=seconds)

    async def claimed(self, **changes: object) -> Claimed:
        fields: dict[str, object] = {
            "id": new_job_id(),
            "status": JobStatus.PENDING,
            "created_at": NOW,
            "mapped_fields": {"sales_db": {"public.orders": ("id", "note")}},
            "request_hash": "h",
            "metadata": {"source": "Acme-Reports"},
        }
        job = Job(**{**fields, **changes})  # type: ignore[arg-type] # a test's builder
        await self.records.jobs.insert(job)
        claim = await self.records.leases.claim(job.id, owner="w", lease_seconds=60)
        assert isinstance(claim, Claimed)
        return claim

    async def outcome(self, claim: Claimed) -> TerminalOutcome:
        """Of an attempt that is not parked."""
        outcome = await self.run_job.run(claim.job, claim.lease)
        assert isinstance(outcome, TerminalOutcome)
        return outcome
