"""What the HTTP side is given: the ports behind the operations, and the host's settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from fetcher.api.metrics import HttpMetrics, ReadinessMetrics
from fetcher.api.stream_places import StreamPlaces, StreamRooms
from fetcher.commands.audit import Audit
from fetcher.commands.operate_dead_letters import OperateDeadLetters
from fetcher.crypto.keys import KeyRing
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.jobs import Job
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import (
    UNTRACED,
    ActorState,
    Authorizer,
    ConnectionBreakers,
    ConnectionRecords,
    ConnectionRecovery,
    DispatchOutbox,
    EventOutbox,
    ForgetSchemas,
    InternalSources,
    JobRecords,
    JobStatistics,
    KnownDependency,
    ObjectCleanup,
    ObjectStore,
    PasswordCipher,
    ProbeResult,
    ProcessFacts,
    QueueDepths,
    SourceEngines,
    TestLimiter,
    Tracer,
    UtcNow,
)
from fetcher.queries.tenant_readiness import TenantReadiness
from fetcher_engine import Limits, TenantContext


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthAnswer:
    self_probe_passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessAnswer:
    """``checks`` counts only while the process does not drain."""

    draining: bool
    checks: Mapping[str, ProbeResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemServices:
    """What the system routes need; both roles have them.

    ``optional_dependencies`` are reported on ``/readyz`` but do not decide it (decisions), which
    shows ``readiness_version`` (spec configuration 2.8). ``tenant_readiness`` is None in a process
    without tenants.
    """

    health: Callable[[], Awaitable[HealthAnswer]]
    readiness: Callable[[], Awaitable[ReadinessAnswer]]
    render_metrics: Callable[[], bytes]
    http_metrics: HttpMetrics
    readiness_metrics: ReadinessMetrics
    now: UtcNow
    version: str = "0.0.0"
    readiness_version: str = "unknown"
    deployment_mode: str = "local"
    optional_dependencies: frozenset[str] = frozenset({"redis"})
    tenant_readiness: Callable[[str], Awaitable[TenantReadiness]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What the document says of itself (spec rest-api 1.2); ``server`` is a URL or a path."""

    title: str = "Fetcher Manager API"
    description: str = ""
    version: str = "1.0.0"
    server: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How the API treats requests; sizes in bytes, times in seconds."""

    cors_origins: tuple[str, ...] = ("*",)
    document: DocumentFacts = DocumentFacts()
    body_seconds: float = 30.0
    max_page_limit: int = 100
    max_date_range_months: int = 1
    max_event_streams: int = 64
    max_result_streams: int = 32
    max_tenant_requests: int = 64
    """How many requests of one tenant, event streams among them, a process works on at once."""
    result_redirect: bool = False
    result_preview: bool = True
    console: bool = True
    jobs_max_pending: int = 0
    jobs_max_pending_per_product: int = 0
    sqlite_allowed: bool = False
    options_enabled: bool = True
    preflight_test: bool = True
    keeps_default_schema: bool = False
    trusts_sent_trace: bool = False
    """Whether a request goes on with the trace that its headers name."""


async def nothing_remembered(tenant: TenantContext, config_name: str) -> None:  # noqa: ARG001 - a ForgetSchemas
    """Where no schema is remembered, none is to be forgotten."""
    await trio.lowlevel.checkpoint()


async def nothing_waits(connection_id: ConnectionId, config_name: str) -> None:  # noqa: ARG001 - a ConnectionRecovery
    """Where no job waits for a connection, none is to be woken."""
    await trio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsServices:
    """What operators look at. ``dependencies``, ``actors`` and ``adapter_breakers`` (by name, what
    state each is in) are of this process alone."""

    process: ProcessFacts
    dependencies: Callable[[], Sequence[KnownDependency]]
    actors: Callable[[], Sequence[ActorState]]
    adapter_breakers: Mapping[str, Callable[[], str]]
    queues: QueueDepths
    letters: OperateDeadLetters
    statistics: JobStatistics
    breakers: ConnectionBreakers
    events: EventOutbox
    dispatch: DispatchOutbox


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """``stopping`` ends the event streams: set it together with the server's own ``stop``.

    ``refuses_host`` is the host guard's answer on a host as it is written and a port, None where
    it is off.
    ``authorizer`` judges every product operation; without one everybody may do everything.
    ``hint`` tells the dispatcher of a new job, ``hint_event`` the relay of one that ended.
    ``objects`` is None in a process without a store; ``key_prefix`` is where results lie in it.
    ``tenant`` is whose all of this is; ``limiter`` and ``stream_rooms`` alone are every tenant's.
    """

    system: SystemServices
    operations: OperationsServices
    connections: ConnectionRecords
    internal_sources: InternalSources
    jobs: JobRecords
    sources: SourceEngines
    cipher: PasswordCipher
    limiter: TestLimiter
    hint: Callable[[Job, float], None]
    hint_event: Callable[[JobId], None]
    cleanup: ObjectCleanup
    audit: Audit
    keys: KeyRing
    now: UtcNow
    stopping: trio.Event
    ceilings: Limits
    tenant: Tenant = NO_TENANT
    objects: ObjectStore | None = None
    key_prefix: str = ""
    refuses_host: Callable[[str, int], bool] | None = None
    authorizer: Authorizer | None = None
    forget_schemas: ForgetSchemas = nothing_remembered
    recover: ConnectionRecovery = nothing_waits
    tracer: Tracer = UNTRACED
    settings: HttpSettings = field(default_factory=HttpSettings)
    stream_rooms: StreamRooms = field(default_factory=StreamRooms)

    def event_places(self) -> StreamPlaces:
        """A tenant's streams leave half of its requests to others of its own."""
        at_most = self.settings.max_event_streams
        if self.tenant.id:
            at_most = min(at_most, max(1, self.settings.max_tenant_requests // 2))
        return StreamPlaces(
            at_most=at_most,
            refusal="Too many event streams",
            room=self.stream_rooms.events,
            tenant=self.tenant,
        )

    def result_places(self) -> StreamPlaces:
        return StreamPlaces(
            at_most=self.settings.max_result_streams,
            refusal="Too many result streams",
            room=self.stream_rooms.results,
            tenant=self.tenant,
        )
