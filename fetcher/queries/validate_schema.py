"""Does what a job would ask for exist in its data sources? (spec rest-api 8.9)

Names are compared as a job's are: by the same normalization, through the same connectors and the
same Engine. So ``plugin_crm`` is asked for by its logical collections here too.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio

from fetcher.domain.connections import Connection
from fetcher.domain.errors import HOST_REFUSED, FetcherError, ForbiddenHost
from fetcher.domain.job_filters import source_names
from fetcher.domain.job_order import AskedFields
from fetcher.domain.jobs import JobOptions, MappedFields
from fetcher.domain.member_paths import member
from fetcher.domain.schema_mismatches import (
    AskedSource,
    MismatchType,
    SchemaMismatch,
    source_is_down,
)
from fetcher.domain.schema_question import checked_question, limit_exceeded
from fetcher.domain.tls_modes import refuse_stored_tls_mode
from fetcher.ports import SourceEngines
from fetcher.queries.fresh_looks import FreshLooks
from fetcher_engine import (
    DatasourceMapping,
    Engine,
    EngineError,
    Limits,
    SchemaValidationRequest,
    TableMapping,
    TenantContext,
)

AT_ONCE = 4
TOTAL_SECONDS = 30.0


class ValidateSchema:
    """Asks the sources side by side; one that does not answer in time is down.

    ``configured`` finds those connections of some names that there are.
    """

    def __init__(
        self,
        *,
        configured: Callable[[Sequence[str]], Awaitable[Sequence[Connection]]],
        sources: SourceEngines,
        ceilings: Limits,
        fresh_looks: FreshLooks,
        keeps_default_schema: bool = False,
    ) -> None:
        self._configured = configured
        self._fresh_looks = fresh_looks
        self._sources = sources
        self._ceilings = ceilings
        self._keeps_default_schema = keeps_default_schema

    def judge(self, asked: AskedFields | None) -> MappedFields:
        """What needs no look outside: pure, and safe in a thread.

        Raise ``FET-0402``, ``FET-0401`` or ``FET-1061``.
        """
        return checked_question(asked, ceilings=self._ceilings)

    async def __call__(
        self, asked: MappedFields, *, tenant: TenantContext
    ) -> Sequence[SchemaMismatch]:
        """What does not fit, sorted by source and table; fields in the order of the request.

        Raise ``FET-1062`` where no source is configured, ``FET-0414`` for a host that must not be
        dialled, and ``FET-1061`` where ``*`` stands for more fields than a job may ask for.
        """
        connections = await self._configured(sorted(asked))
        if not connections:
            raise FetcherError(
                "FET-1062",
                "No Connections Found",
                f"none of the data sources is configured: {', '.join(sorted(asked))}",
            )
        names = source_names(connections, keeps_default=self._keeps_default_schema)
        engine = self._sources.engine_for(connections, JobOptions(), asked)
        found: dict[str, Sequence[SchemaMismatch]] = {
            source: [SchemaMismatch(type=MismatchType.DATA_SOURCE_NOT_FOUND, data_source=source)]
            for source in asked
            if source not in names
        }
        refused: list[FetcherError] = []
        places = trio.Semaphore(AT_ONCE)

        async def look(source: str, *, cancel: trio.CancelScope) -> None:
            one = AskedSource(source, asked[source], names[source])
            async with places:
                try:
                    found[source] = await self._answer(one, engine, tenant)
                except FetcherError as refusal:
                    refused.append(refusal)
                    cancel.cancel()

        with trio.move_on_after(TOTAL_SECONDS):
            async with trio.open_nursery() as nursery:
                for connection in connections:
                    if _is_openable(connection):
                        nursery.start_soon(
                            partial(look, connection.config_name, cancel=nursery.cancel_scope)
                        )
        if refused:
            raise refused[0]
        return [
            each for source in sorted(asked) for each in found.get(source, [source_is_down(source)])
        ]

    async def _answer(
        self, one: AskedSource, engine: Engine, tenant: TenantContext
    ) -> Sequence[SchemaMismatch]:
        """Raise ``FET-0414`` or ``FET-1061``."""
        try:
            report = await engine.validate_schema(tenant, _request(one))
            if report.failures and await self._fresh_looks.due(tenant, one.name):
                report = await engine.validate_schema(tenant, _request(one))
        except EngineError as error:
            down = error
        else:
            if (wide := one.oversized(report.failures)) is not None:
                path = member(member("mappedFields", one.name), wide)
                raise limit_exceeded(f"{path} means more fields than a job may ask for")
            return list(one.mismatches(report.failures))
        if down.reason == HOST_REFUSED:
            raise ForbiddenHost
        return [source_is_down(one.name)]


def _request(one: AskedSource) -> SchemaValidationRequest:
    """A mapping for each table as it was written: two spellings of one are judged apart."""
    tables = [
        TableMapping(one.table(table), [one.field(field) for field in fields])
        for table, fields in one.tables.items()
    ]
    return SchemaValidationRequest([DatasourceMapping(one.name, tables)])


def _is_openable(connection: Connection) -> bool:
    """A record of the reference may have another type's TLS mode: it is opened by nobody."""
    try:
        refuse_stored_tls_mode(connection)
    except FetcherError:
        return False
    return True
