"""What a job would read, without making one: its plan, or what stands in its way.

The request is judged as one that makes a job. Its sources are only asked for their schemas.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import trio

from fetcher.compat import SourceNames, normalized_request
from fetcher.concurrency import TrioConcurrency
from fetcher.domain.connections import Connection
from fetcher.domain.errors import HOST_REFUSED, FetcherError, ForbiddenHost, RateLimited
from fetcher.domain.job_filters import ROOT as FILTERS
from fetcher.domain.job_order import JobOrder, JudgedOrder, judged_order, lowered_limits
from fetcher.domain.member_paths import member
from fetcher.domain.schema_mismatches import (
    AskedSource,
    MismatchType,
    SchemaMismatch,
    source_is_down,
)
from fetcher.domain.source_admission import admitted_sources
from fetcher.domain.tls_modes import refuse_stored_tls_mode
from fetcher.ports import SourceEngines, TestLimiter
from fetcher.queries.fresh_looks import FreshLooks
from fetcher_engine import (
    Engine,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
    Limits,
    PlanStep,
    TenantContext,
)

AT_ONCE = 4
TOTAL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """``fields`` in the order of the result; ``estimated_rows`` are the source's guess, if any."""

    fields: tuple[str, ...]
    estimated_rows: int | None


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """``tables`` by the names that were asked for."""

    type: str
    tables: Mapping[str, PlannedTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedJob:
    """``mismatches`` are sorted by source and table; where there are any, no job should be asked
    for, and ``sources`` are only those that fit."""

    sources: Mapping[str, PlannedSource]
    mismatches: Sequence[SchemaMismatch]
    limits: Limits
    request_hash: str


class ValidateJob:
    """Plans the sources side by side; one that does not answer in time is down.

    ``resolve`` finds the connections of some names. ``ceilings`` are the host's limits.
    """

    def __init__(
        self,
        *,
        resolve: Callable[[Sequence[str]], Awaitable[Sequence[Connection]]],
        sources: SourceEngines,
        limiter: TestLimiter,
        ceilings: Limits,
        fresh_looks: FreshLooks,
        options_enabled: bool = True,
        keeps_default_schema: bool = False,
    ) -> None:
        self._fresh_looks = fresh_looks
        self._resolve = resolve
        self._sources = sources
        self._limiter = limiter
        self._ceilings = ceilings
        self._options_enabled = options_enabled
        self._keeps_default_schema = keeps_default_schema

    def judge(self, order: JobOrder) -> JudgedOrder:
        """As a request for a job is judged: pure, and safe in a thread."""
        return judged_order(order, ceilings=self._ceilings, options_enabled=self._options_enabled)

    async def __call__(self, judged: JudgedOrder, *, tenant: TenantContext) -> TriedJob:
        """Raise what creating the job would raise before it tests its connections, ``FET-0413``
        and ``FET-0414`` as that test does, 429, and ``FET-0401`` for what only a schema shows: a
        table that means too many fields, two conditions on one column.
        """
        asked = judged.asked
        connections = await self._resolve(sorted(asked.mapped_fields))
        names = admitted_sources(asked, connections, keeps_default=self._keeps_default_schema)
        for connection in connections:
            refuse_stored_tls_mode(connection)
        await self._take_turns(connections)
        engine = self._sources.engine_for(
            connections, asked.options, asked.mapped_fields, asked.filters
        )
        attempt = _Attempt(judged, names, engine, tenant, self._fresh_looks)
        with trio.move_on_after(TOTAL_SECONDS):
            jobs = [partial(attempt.plan, each) for each in connections]
            await TrioConcurrency().run_ordered(jobs, AT_ONCE)
        outcomes = [attempt.outcome_of(connection) for connection in connections]
        for outcome in outcomes:
            if isinstance(outcome, FetcherError):
                raise outcome
        planned = {
            connection.config_name: outcome
            for connection, outcome in zip(connections, outcomes, strict=True)
            if isinstance(outcome, PlannedSource)
        }
        return TriedJob(
            sources=planned,
            mismatches=[m for each in outcomes if isinstance(each, list) for m in each],
            limits=engine.limits.effective(lowered_limits(asked.options)),
            request_hash=judged.request_hash,
        )

    async def _take_turns(self, connections: Sequence[Connection]) -> None:
        """One of each connection's, in a count of its own; the longest wait is told."""
        waits = [await self._limiter.take(f"validate:{each.id}") for each in connections]
        if (longest := max(waits)) > 0:
            raise RateLimited(longest)


_Outcome = PlannedSource | list[SchemaMismatch] | FetcherError


class _Attempt:
    """One request on its way to its sources, which are planned each for itself: what one of them
    lacks hides nothing of another."""

    def __init__(
        self,
        judged: JudgedOrder,
        names: Mapping[str, SourceNames],
        engine: Engine,
        tenant: TenantContext,
        fresh_looks: FreshLooks,
    ) -> None:
        asked = judged.asked
        self._fresh_looks = fresh_looks
        self._asked = {
            source: AskedSource(
                source,
                tables,
                names[source],
                {table: tuple(each) for table, each in asked.filters.get(source, {}).items()},
            )
            for source, tables in asked.mapped_fields.items()
        }
        self._fields, self._filters = normalized_request(asked.mapped_fields, asked.filters, names)
        self._overrides = lowered_limits(asked.options)
        self._engine = engine
        self._tenant = tenant
        self._outcomes: dict[str, PlanStep | EngineError] = {}

    async def plan(self, connection: Connection) -> None:
        """Ask one source; what it fails of is its outcome."""
        name = connection.config_name
        filters = {name: self._filters[name]} if name in self._filters else {}
        request = ExtractionRequest(
            mapped_fields={name: self._fields[name]}, filters=filters, overrides=self._overrides
        )
        outcome = await self._planned(request)
        lacks = isinstance(outcome, EngineError) and bool(outcome.failures)
        if lacks and await self._fresh_looks.due(self._tenant, name):
            outcome = await self._planned(request)
        self._outcomes[name] = outcome

    async def _planned(self, request: ExtractionRequest) -> PlanStep | EngineError:
        try:
            plan = await self._engine.plan_extraction(self._tenant, request)
        except EngineError as error:
            return error
        (step,) = plan.steps
        return step

    def outcome_of(self, connection: Connection) -> _Outcome:
        """What became of one source; what has not ended was too slow."""
        one = self._asked[connection.config_name]
        match self._outcomes.get(one.name):
            case None:
                return [source_is_down(one.name, reason="timeout")]
            case PlanStep() as step:
                return _planned(connection, one, step)
            case EngineError() as error:
                return _failed(one, error)


def _planned(connection: Connection, one: AskedSource, step: PlanStep) -> PlannedSource:
    tables = {
        table: PlannedTable(step.fields[name], step.estimated_rows.get(name))
        for table in sorted(one.tables)
        for name in (one.table(table),)
    }
    return PlannedSource(connection.type.value, tables)


def _failed(one: AskedSource, error: EngineError) -> list[SchemaMismatch] | FetcherError:
    if error.reason == HOST_REFUSED:
        return ForbiddenHost()
    if (wide := one.oversized(error.failures)) is not None:
        path = member(member("dataRequest.mappedFields", one.name), wide)
        return _invalid(f"{path} means more fields than a job may ask for")
    if error.failures:
        found = one.mismatches(error.failures)
        return [
            replace(each, type=MismatchType.AMBIGUOUS_NAME) if each.candidates else each
            for each in found
        ]
    if error.category is ErrorCategory.VALIDATION:
        return _invalid(f"{_filter_path(one, error)}: {error.message}")
    stage = error.stage.value if error.stage else ""
    return [source_is_down(one.name, stage=stage, reason=error.reason or error.category.value)]


def _filter_path(one: AskedSource, error: EngineError) -> str:
    """The member of the request that the Engine names by its own names."""
    path = member(FILTERS, one.name)
    table = next((each for each in one.filtered if one.table(each) == error.table), None)
    if table is None:
        return path
    fields = one.filtered[table]
    column = next((each for each in fields if one.field(each) == error.column), None)
    path = member(path, table)
    return path if column is None else member(path, column)


def _invalid(message: str) -> FetcherError:
    return FetcherError("FET-0401", "Invalid Data Request", message)
