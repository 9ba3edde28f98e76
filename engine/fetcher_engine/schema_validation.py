"""Validates a request against the schemas of its sources (spec 8.13)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from fetcher_engine.concurrency import Concurrency
from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.context import TenantContext
from fetcher_engine.limits import Limits
from fetcher_engine.schema import (
    DatasourceMapping,
    SchemaSnapshot,
    SchemaValidationRequest,
    ValidationFailure,
    ValidationReport,
)
from fetcher_engine.schema_matching import (
    count_failures,
    match_failures,
    require_names,
    sorted_report,
    unknown_connection_failure,
)
from fetcher_engine.schema_resolution import SchemaResolver
from fetcher_engine.source_jobs import SourceJob, run_ordered
from fetcher_engine.sources import Sources


@dataclass(frozen=True, slots=True)
class ValidatedSchemas:
    """The report, and the schemas that were resolved for it, by config name."""

    report: ValidationReport
    snapshots: Mapping[str, SchemaSnapshot]


class SchemaValidator:
    """Validates for one operation; sources are asked at once, as many as the limits allow."""

    def __init__(
        self, *, sources: Sources, resolver: SchemaResolver, concurrency: Concurrency
    ) -> None:
        self._sources = sources
        self._resolver = resolver
        self._concurrency = concurrency

    async def validate(
        self,
        tenant: TenantContext,
        request: SchemaValidationRequest,
        limits: Limits,
        known: Mapping[str, ConnectionDescriptor] | None = None,
    ) -> ValidatedSchemas:
        """The report; ``known`` are connections that the caller has looked up already.

        Raise ``validation`` for blank names, what the store raises, ``connect`` and
        ``unavailable`` for a source that is down, DeadlineExceeded after ``limits.timeout``.
        """
        require_names(request)
        if failures := count_failures(request, limits):
            return ValidatedSchemas(sorted_report(failures), {})
        found: list[ValidationFailure] = []
        snapshots: dict[str, SchemaSnapshot] = {}

        async def judge(mapping: DatasourceMapping) -> None:
            name = mapping.config_name
            descriptor = (known or {}).get(name) or await self._sources.find(tenant, name)
            if descriptor is None:
                found.append(unknown_connection_failure(name))
                return
            asked = {t.name: {*t.fields, *t.filter_fields} for t in mapping.tables}
            snapshots[name] = await self._resolver.resolve(tenant, descriptor, asked)
            found.extend(match_failures(mapping, snapshots[name], limits))

        async def judge_all() -> None:
            jobs = [
                SourceJob(each.config_name, partial(judge, each)) for each in request.datasources
            ]
            await run_ordered(self._concurrency, jobs, limits.max_concurrency)

        await self._concurrency.run_with_deadline(limits.timeout, judge_all)
        return ValidatedSchemas(sorted_report(found), snapshots)
