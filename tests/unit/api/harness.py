"""The API over stores in memory and sources in memory, driven by quart's test client."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from quart.testing.utils import sentinel
from quart.wrappers import Response
from quart_trio import QuartTrio
from werkzeug.datastructures import Headers

from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.adapters.memory.limiter import MemoryTestLimiter
from fetcher.adapters.memory.records import open_memory_records
from fetcher.api.application import create_app
from fetcher.api.metrics import HttpMetrics, ReadinessMetrics, process_registry, render
from fetcher.api.services import (
    ApiServices,
    HealthAnswer,
    HttpSettings,
    ReadinessAnswer,
    SystemServices,
)
from fetcher.bootstrap.breakers import LoggedBreakers
from fetcher.commands.audit import Audit
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.concurrency import TrioConcurrency
from fetcher.crypto.keys import KeyRing, KeySet
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import JobId, new_connection_id, new_job_id
from fetcher.domain.jobs import Filters, Job, JobOptions, JobStatus
from fetcher.domain.json_text import dumps, parse
from fetcher.domain.json_values import JsonValue
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.times import cut_to_milliseconds
from fetcher.ports import RecordStore
from fetcher_engine import ConnectionDescriptor, Engine, Limits, SchemaCache, TenantContext
from fetcher_engine.memory import (
    MemoryConnectionStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySource,
)
from tests.unit.api.described import check_described
from tests.unit.api.operations_room import LetterBox, an_operations_room

START = datetime(2026, 3, 14, 9, 26, 53, 123456, UTC)
CONNECTIONS = "/v1/management/connections"
JOBS = "/v1/fetcher"
HEALTHY = HealthAnswer(self_probe_passed=True)
READY = ReadinessAnswer(draining=False)
KEYS = KeyRing(KeySet.from_master(b"m" * 32, version="7"))
PRODUCT = {"X-Product-Name": "acme-reports"}


class Clock:
    """A wall clock that begins at START and goes with trio's: a mock clock moves both."""

    def __init__(self) -> None:
        self._began = trio.current_time()

    def __call__(self) -> datetime:
        return START + timedelta(seconds=trio.current_time() - self._began)


class ReversingCipher:
    """Not a cipher at all, but what it stores differs from the password."""

    key_version = "1"

    def encrypt(self, password: str) -> str:
        return f"sealed:{password[::-1]}"

    def decrypt(self, stored: str, key_version: str) -> str:
        return stored.removeprefix("sealed:")[::-1]


class BrokenCipher(ReversingCipher):
    def encrypt(self, password: str) -> str:
        raise RuntimeError(f"no key for {password}")


class MemoryEngines:
    """Engines over sources in memory; one source a config name, made on first use."""

    def __init__(self, tenant: Tenant = NO_TENANT) -> None:
        self.tenant = tenant
        self.sources: dict[str, MemorySource] = {}
        self.cache: SchemaCache | None = None
        self.asked: list[list[str]] = []
        self.requested: list[Mapping[str, Mapping[str, tuple[str, ...]]] | None] = []

    def source(self, config_name: str) -> MemorySource:
        return self.sources.setdefault(config_name, MemorySource())

    def engine_for(
        self,
        connections: Sequence[Connection],
        options: JobOptions,
        requested: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None,
        filters: Filters | None = None,
    ) -> Engine:
        self.asked.append([connection.config_name for connection in connections])
        self.requested.append(requested)
        store, registry = MemoryConnectionStore(), MemoryRegistry()
        for connection in connections:
            name = connection.config_name
            registry.register(name, MemoryConnectorFactory(self.source(name)))
            store.put(TenantContext.new(self.tenant.engine_id), _descriptor(connection))
        return Engine(
            connector_registry=registry,
            connection_store=store,
            concurrency=TrioConcurrency(),
            schema_cache=self.cache,
        )


def _descriptor(connection: Connection) -> ConnectionDescriptor:
    # The type is the config name: so each connection has a source of its own.
    return ConnectionDescriptor(
        id=str(connection.id),
        config_name=connection.config_name,
        type=connection.config_name,
        host=connection.host,
        port=connection.port,
        database_name=connection.database_name,
        username=connection.username,
    )


@dataclass
class Answered:
    """One answer, read."""

    status: int
    headers: Headers
    raw: bytes

    @property
    def json(self) -> Any:
        return parse(self.raw)

    @property
    def problem(self) -> tuple[int, object, str]:
        """Status, code and title."""
        return self.status, self.json["code"], self.json["title"]


async def call_app(
    app: QuartTrio,
    method: str,
    path: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    data: bytes | None = None,
) -> Answered:
    """The answer, held against the application's own document."""
    sent = dict(headers or {})
    if body is not None:
        data = dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    response: Response = await app.test_client().open(
        path, method=method, headers=sent, data=data, json=sentinel
    )
    raw = await response.get_data(as_text=False)
    await check_described(app, method, path, response.status_code, response.headers, raw)
    return Answered(response.status_code, response.headers, raw)


@dataclass
class Api:
    """The application and everything behind it; every answer is held against its document."""

    records: RecordStore
    app: QuartTrio
    engines: MemoryEngines
    services: ApiServices
    hints: list[JobId] = field(default_factory=list)
    event_hints: list[JobId] = field(default_factory=list)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answered:
        return await call_app(self.app, method, path, body, headers=headers, data=data)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answered:
        return await self.call("GET", path, headers=headers)

    async def create(self, body: object, headers: Mapping[str, str] = PRODUCT) -> Answered:
        return await self.call("POST", CONNECTIONS, body, headers=headers)

    async def ask(self, body: object) -> Answered:
        """Ask for a job."""
        return await self.call("POST", JOBS, body)


def an_api(
    *,
    settings: HttpSettings | None = None,
    health: HealthAnswer = HEALTHY,
    readiness: ReadinessAnswer = READY,
    box: LetterBox | None = None,
    operated: Mapping[str, Any] | None = None,
    **replaced: Any,
) -> Api:
    """``operated``: members of the operators' services; ``box`` are the dead letters."""
    registry = process_registry()
    clock = Clock()
    records = open_memory_records(clock)
    engines = MemoryEngines(replaced.get("tenant", NO_TENANT))
    hints: list[JobId] = []
    event_hints: list[JobId] = []

    async def answer_health() -> HealthAnswer:
        await trio.lowlevel.checkpoint()
        return health

    async def answer_readiness() -> ReadinessAnswer:
        await trio.lowlevel.checkpoint()
        return readiness

    services = ApiServices(
        operations=replace(an_operations_room(records, clock, box=box), **(operated or {})),
        system=SystemServices(
            health=answer_health,
            readiness=answer_readiness,
            render_metrics=lambda: render(registry),
            http_metrics=HttpMetrics(registry),
            readiness_metrics=ReadinessMetrics(registry),
            now=clock,
            version="v3.1.0",
            readiness_version="v3.1.0",
        ),
        connections=records.connections,
        internal_sources=EnvironmentSources(),
        jobs=records.jobs,
        sources=engines,
        cipher=ReversingCipher(),
        limiter=MemoryTestLimiter(),
        recover=RecoverConnection(
            breakers=records.breakers,
            dispatch=records.dispatch,
            hint=hints.append,
            log=LoggedBreakers(),
        ),
        hint=lambda job, _until: hints.append(job.id),
        hint_event=event_hints.append,
        cleanup=records.cleanup,
        audit=Audit(
            trail=records.audit,
            now=clock,
            tell=lambda _: None,
            unrecorded=lambda _, why: pytest.fail(why),
        ),
        keys=KEYS,
        now=clock,
        stopping=trio.Event(),
        ceilings=Limits.defaults(),
        settings=settings or HttpSettings(),
    )
    services = replace(services, **replaced)
    return Api(records, create_app(services), engines, services, hints, event_hints)


def a_body(**changed: object) -> dict[str, object]:
    """A valid body of "create a connection"; None takes a member away."""
    body: dict[str, object] = {
        "configName": "sales_db",
        "type": "POSTGRESQL",
        "host": "pg1.acme.test",
        "port": 5432,
        "databaseName": "sales",
        "userName": "reader",
        "password": "s3cret",
        **changed,
    }
    return {name: value for name, value in body.items() if value is not None}


def a_connection(**changed: Any) -> Connection:
    values: dict[str, Any] = {
        "id": new_connection_id(),
        "config_name": "sales_db",
        "type": SourceType.POSTGRESQL,
        "host": "pg1.acme.test",
        "port": 5432,
        "database_name": "sales",
        "username": "reader",
        "password_encrypted": "sealed:terc3s",
        "encryption_key_version": "1",
        "created_at": START,
        "updated_at": START,
        "product_name": "acme-reports",
    }
    return Connection(**(values | changed))


def a_request(**changed: JsonValue) -> dict[str, JsonValue]:
    """A valid body of "ask for a job"; ``dataRequest`` members by their names."""
    data: dict[str, JsonValue] = {"mappedFields": {"sales_db": {"orders": ["id", "total"]}}}
    metadata = changed.pop("metadata", {"source": "acme-reports"})
    return {"dataRequest": data | changed, "metadata": metadata}


async def an_api_with(*names: str, **options: Any) -> Api:
    api = an_api(**options)
    for name in names or ("sales_db",):
        await api.records.connections.insert(a_connection(config_name=name))
    return api


async def stored(api: Api, answered: Answered) -> Job:
    assert answered.status == 202, answered.raw
    job = await api.records.jobs.get(JobId(uuid.UUID(answered.json["jobId"])))
    assert job is not None
    return job


def a_job(**changed: Any) -> Job:
    values: dict[str, Any] = {
        "id": new_job_id(),
        "status": JobStatus.PENDING,
        "created_at": START,
        "mapped_fields": {"sales_db": {"orders": ("id",)}},
        "request_hash": "ab" * 32,
        "metadata": {"source": "acme-reports"},
    }
    return Job(**(values | changed))


async def end(api: Api, job: Job, status: JobStatus) -> None:
    """Put the job into the state as if a worker had ended it now."""
    ended_at = cut_to_milliseconds(api.services.now())
    state = api.records.jobs._state  # type: ignore[attr-defined] # the memory store's own state
    entry = state.jobs[job.id]
    entry.job = replace(entry.job, status=status, completed_at=ended_at)
