"""The Engine: what an extraction means, for hosts that decide how it runs (spec 6, 8)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from fetcher_engine.concurrency import Concurrency, SequentialConcurrency
from fetcher_engine.connection import ConnectionDescriptor, ConnectionTestResult
from fetcher_engine.connections import ConnectionDirectory, ConnectionRules, ConnectionsById
from fetcher_engine.context import TenantContext, require_tenant
from fetcher_engine.discovery_flights import DiscoveryFlights
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.execution import Execution, ExecutionParts
from fetcher_engine.execution_states import ExecutionStates
from fetcher_engine.extraction import ExecutionMode, ExtractionPlan, ExtractionRequest
from fetcher_engine.failures import (
    Checkpoint,
    Phase,
    from_source,
    unknown_connection,
)
from fetcher_engine.limits import Limits
from fetcher_engine.operation import Spans
from fetcher_engine.planner import Planner
from fetcher_engine.port_check import check_extension, check_port
from fetcher_engine.ports import (
    ActiveExecutionChecker,
    CancelSignal,
    ConnectionDirectoryStore,
    ConnectionIdStore,
    ConnectionStore,
    Connector,
    ConnectorRegistry,
    CredentialProtector,
    ExecutionStore,
    Observability,
    ResultSink,
    RowEncoding,
    SchemaCache,
    Spool,
)
from fetcher_engine.request_ceilings import RequestCeilings
from fetcher_engine.results import (
    DirectResult,
    ExtractionResult,
    ExtractionSummary,
    ResultIntegrity,
)
from fetcher_engine.runner import Runner, Write
from fetcher_engine.schema import SchemaSnapshot, SchemaValidationRequest, ValidationReport
from fetcher_engine.schema_resolution import SchemaResolver
from fetcher_engine.schema_validation import SchemaValidator
from fetcher_engine.sources import Sources
from fetcher_engine.step_reading import Progress
from fetcher_engine.storing import SHA256
from fetcher_engine.timestamps import utc_now

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Call:
    """What one call of an operation works with."""

    sources: Sources
    concurrency: Concurrency
    checkpoint: Checkpoint
    resolver: SchemaResolver

    def validator(self) -> SchemaValidator:
        return SchemaValidator(
            sources=self.sources, resolver=self.resolver, concurrency=self.concurrency
        )


class Engine:
    """Immutable after construction and safe for concurrent calls; holds no process, file or task.

    Every coroutine raises :class:`EngineError` alone, or lets the loop's cancellation through (but
    for ``connections.check_active_executions``, which passes what the host's checker raises). It
    checks that the tenant owns what it names; who may act is the host's business.
    """

    def __init__(
        self,
        connector_registry: ConnectorRegistry,
        *,
        connection_store: ConnectionStore | None = None,
        schema_cache: SchemaCache | None = None,
        execution_store: ExecutionStore | None = None,
        credential_protector: CredentialProtector | None = None,
        encrypted_persistence: bool = False,
        active_execution_checker: ActiveExecutionChecker | None = None,
        result_sink: ResultSink | None = None,
        spool: Spool | None = None,
        row_encoding: RowEncoding | None = None,
        limits: Limits | None = None,
        request_ceilings: RequestCeilings | None = None,
        concurrency: Concurrency | None = None,
        observability: Observability | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """No I/O. Raise ``validation`` for a port that is missing or is not what it should be.

        Limits that are not set take their defaults; ceilings that are not set are not checked.
        Without ``concurrency`` everything runs one after the other
        (:class:`SequentialConcurrency`).
        """
        registry = check_port(connector_registry, ConnectorRegistry, "connector registry")
        if registry is None:
            raise EngineError(ErrorCategory.VALIDATION, "connector registry is required")
        protector = check_port(credential_protector, CredentialProtector, "credential protector")
        if encrypted_persistence and protector is None:
            raise EngineError(
                ErrorCategory.VALIDATION,
                "credential protector is required when encrypted persistence is enabled",
            )
        self._registry = registry
        self._store = check_port(connection_store, ConnectionStore, "connection store")
        self._directory_store: ConnectionDirectoryStore | None = check_extension(
            self._store, ConnectionDirectoryStore, ConnectionStore, "connection store"
        )
        self._id_store: ConnectionIdStore | None = check_extension(
            self._store, ConnectionIdStore, ConnectionStore, "connection store"
        )
        self._cache = check_port(schema_cache, SchemaCache, "schema cache")
        self._executions = check_port(execution_store, ExecutionStore, "execution store")
        self._concurrency = check_port(concurrency, Concurrency, "concurrency")
        self._spans = Spans(check_port(observability, Observability, "observability"))
        self._sink = check_port(result_sink, ResultSink, "result sink")
        self._spool = check_port(spool, Spool, "spool")
        self._row_encoding = check_port(row_encoding, RowEncoding, "row encoding")
        self._limits = _checked(limits, Limits, "limits").merged_over_defaults()
        self._ceilings = _checked(request_ceilings, RequestCeilings, "request ceilings")
        if not callable(now):
            raise EngineError(ErrorCategory.VALIDATION, "clock is invalid")
        self._now = now
        self._flights = DiscoveryFlights(self._concurrency)
        checker = check_port(
            active_execution_checker, ActiveExecutionChecker, "active execution checker"
        )
        self._rules = ConnectionRules(
            protector=protector,
            encrypted_persistence=encrypted_persistence,
            checker=checker,
            cache=self._cache,
        )

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._limits

    @property
    def connections(self) -> ConnectionDirectory:
        """Keeping connections by name, where the store can do that."""
        return ConnectionDirectory(
            store=self._directory_store, rules=self._rules, spans=self._spans
        )

    @property
    def connections_by_id(self) -> ConnectionsById:
        """Keeping connections by the host's ids, where the store can do that."""
        return ConnectionsById(store=self._id_store, rules=self._rules, spans=self._spans)

    async def test_connection(
        self, tenant: TenantContext, config_name: str
    ) -> ConnectionTestResult:
        """Connect and close. Raise ``not_found``, or ``connect`` with the connector's safe words.

        No deadline and no rate limit here: both are the host's.
        """

        async def body(call: _Call) -> ConnectionTestResult:
            descriptor = await _found(call, tenant, config_name)

            async def ask(connector: Connector) -> None:
                await from_source(
                    connector.test_connection,
                    phase=Phase.CONNECT,
                    source=config_name,
                    checkpoint=call.checkpoint,
                )

            await call.sources.with_connector(descriptor, ask)
            return ConnectionTestResult(config_name)

        return await self._run("engine.connection.test", tenant, body)

    async def discover_schema(self, tenant: TenantContext, config_name: str) -> SchemaSnapshot:
        """The source's schema, from the cache where it is there; what was discovered is cached."""

        async def body(call: _Call) -> SchemaSnapshot:
            return await call.resolver.resolve(tenant, await _found(call, tenant, config_name))

        return await self._run("engine.schema.discover", tenant, body)

    async def discover_schema_fresh(
        self, tenant: TenantContext, config_name: str
    ) -> SchemaSnapshot:
        """The source's schema from the source; the cache is neither read nor written."""

        async def body(call: _Call) -> SchemaSnapshot:
            return await call.resolver.discover(await _found(call, tenant, config_name))

        return await self._run("engine.schema.discover_fresh", tenant, body)

    async def validate_schema(
        self, tenant: TenantContext, request: SchemaValidationRequest
    ) -> ValidationReport:
        """What of a request does not exist or is too much; a source that is down raises."""

        async def body(call: _Call) -> ValidationReport:
            validated = await call.validator().validate(tenant, request, self._limits)
            return validated.report

        return await self._run("engine.schema.validate", tenant, body)

    async def plan_extraction(
        self,
        tenant: TenantContext,
        request: ExtractionRequest,
        *,
        cancel: CancelSignal | None = None,
    ) -> ExtractionPlan:
        """A plan for a request that fits its sources. Equal requests give equal plans."""

        async def body(call: _Call) -> ExtractionPlan:
            planner = Planner(
                sources=call.sources,
                validator=call.validator(),
                limits=self._limits,
                ceilings=self._ceilings,
                spans=self._spans,
            )
            return await planner.plan(tenant, request)

        return await self._run("engine.extraction.plan", tenant, body, cancel)

    async def execute_extraction(
        self,
        plan: ExtractionPlan,
        *,
        cancel: CancelSignal | None = None,
        progress: Progress | None = None,
    ) -> ExtractionResult:
        """Run a plan: its rows go into the host's sink, or the document into memory.

        Mode ``store`` needs a sink, ``direct`` never touches one. In the sink the result is lines
        of JSON, one a row (``ndjson``); in memory one document: for small results. Raise
        ``unavailable`` with the sink's exception to ``unwrap``; of a run that fails or is cancelled
        nothing stays in the sink.
        """
        sink = self._sink
        _require_plan(plan)
        mode = plan.mode
        if mode is ExecutionMode.AUTO:
            mode = ExecutionMode.DIRECT if sink is None else ExecutionMode.STORE
        if mode is ExecutionMode.STORE:
            return await self._execute(
                plan, cancel, progress, lambda execution: execution.store(sink)
            )
        pieces: list[bytes] = []

        async def keep(piece: bytes) -> None:
            pieces.append(piece)

        state, summary = await self._execute(
            plan, cancel, progress, lambda execution: execution.stream(keep)
        )
        direct = DirectResult(
            data=b"".join(pieces),
            row_count=summary.row_count,
            integrity=ResultIntegrity(algorithm=SHA256, digest=summary.sha256),
            completed_at=summary.completed_at,
        )
        return ExtractionResult(
            state=state,
            direct=direct,
            row_counts=summary.row_counts,
            source_notes=summary.source_notes,
        )

    async def stream_extraction(
        self,
        plan: ExtractionPlan,
        write: Write,
        *,
        cancel: CancelSignal | None = None,
        progress: Progress | None = None,
    ) -> ExtractionSummary:
        """Give the document's bytes to ``write``, in order, as they come; their count and digest.

        The plan's mode does not matter: the bytes are those of a direct result. One call of
        ``write`` at a time. When this raises, what was written is not a document. An exception of
        ``write`` ends the run as ``unavailable``, with that exception to ``unwrap``; an EngineError
        of it passes. ``progress`` is told of each batch and must not block.
        """
        _require_plan(plan)
        _, summary = await self._execute(
            plan, cancel, progress, lambda execution: execution.stream(write)
        )
        return summary

    async def _execute(
        self,
        plan: ExtractionPlan,
        cancel: CancelSignal | None,
        progress: Progress | None,
        use: Callable[[Execution], Awaitable[T]],
    ) -> T:
        tenant = TenantContext(plan.tenant_id, plan.request_id)

        async def body(call: _Call) -> T:
            states = ExecutionStates(
                store=self._executions, concurrency=call.concurrency, tenant=tenant, now=self._now
            )
            runner = Runner(
                sources=call.sources,
                concurrency=call.concurrency,
                checkpoint=call.checkpoint,
                spool=self._spool,
                row_encoding=self._row_encoding,
            )
            parts = ExecutionParts(
                limits=self._limits,
                sources=call.sources,
                runner=runner,
                states=states,
                concurrency=call.concurrency,
                checkpoint=call.checkpoint,
            )
            return await use(Execution(plan, parts, progress))

        return await self._run("engine.extraction.execute", tenant, body, cancel)

    async def _run(
        self,
        span: str,
        tenant: TenantContext,
        body: Callable[[_Call], Awaitable[T]],
        cancel: CancelSignal | None = None,
    ) -> T:
        async def prologue() -> T:
            if self._store is None:
                text = "connection store is not configured"
                raise EngineError(ErrorCategory.VALIDATION, text)
            require_tenant(tenant)
            signal = check_port(cancel, CancelSignal, "cancel signal")
            return await body(self._call(self._store, signal))

        return await self._spans.run(span, prologue)

    def _call(self, store: ConnectionStore, cancel: CancelSignal | None) -> _Call:
        concurrency = self._concurrency or SequentialConcurrency()
        if isinstance(concurrency, SequentialConcurrency):
            # the fallback keeps the deadlines of one call, so that each call needs its own
            concurrency = concurrency.anew()
        checkpoint = Checkpoint(concurrency, cancel)
        sources = Sources(registry=self._registry, store=store, concurrency=concurrency)
        resolver = SchemaResolver(
            sources=sources, cache=self._cache, flights=self._flights, checkpoint=checkpoint
        )
        return _Call(sources, concurrency, checkpoint, resolver)


def _checked(value: T | None, kind: type[T], label: str) -> T:
    """The value, or one of its kind in which nothing is set."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise EngineError(ErrorCategory.VALIDATION, f"{label} is invalid")
    return value


def _require_plan(plan: object) -> None:
    if not isinstance(plan, ExtractionPlan):
        raise EngineError(ErrorCategory.VALIDATION, "extraction plan is invalid")


async def _found(call: _Call, tenant: TenantContext, config_name: str) -> ConnectionDescriptor:
    descriptor = await call.sources.find(tenant, config_name)
    if descriptor is None:
        raise unknown_connection()
    return descriptor
