"""From a request to a plan: the gates in their order, then equal plans for equal requests."""

from collections.abc import Mapping, Sequence

from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import ExtractionPlan, ExtractionRequest, PlanStep
from fetcher_engine.failures import unknown_datasource
from fetcher_engine.limits import Limits
from fetcher_engine.name_matching import FieldIndex, TableIndex
from fetcher_engine.operation import Spans
from fetcher_engine.request_ceilings import RequestCeilings
from fetcher_engine.schema import (
    DatasourceMapping,
    FailureType,
    SchemaSnapshot,
    SchemaValidationRequest,
    TableMapping,
    TableSnapshot,
    ValidationReport,
)
from fetcher_engine.schema_matching import selected_fields
from fetcher_engine.schema_validation import SchemaValidator
from fetcher_engine.sources import Sources


class Planner:
    """Plans one request. ``limits`` are the Engine's, which a request may only lower."""

    def __init__(
        self,
        *,
        sources: Sources,
        validator: SchemaValidator,
        limits: Limits,
        ceilings: RequestCeilings,
        spans: Spans,
    ) -> None:
        self._sources = sources
        self._validator = validator
        self._limits = limits
        self._ceilings = ceilings
        self._spans = spans

    async def plan(self, tenant: TenantContext, request: ExtractionRequest) -> ExtractionPlan:
        """The plan; no source is queried, at most its schema is read."""
        if not isinstance(request, ExtractionRequest):
            raise EngineError(ErrorCategory.VALIDATION, "extraction request is invalid")
        _require_shape(request)
        self._ceilings.require_within(request)
        limits = self._limits.effective(request.overrides)
        descriptors = await self._find_all(tenant, sorted(request.mapped_fields), limits)
        self._require_fields(request, descriptors)
        wanted = _validation_request(request)
        validated = await self._spans.run(
            "engine.schema.validate",
            lambda: self._validator.validate(tenant, wanted, limits, descriptors),
        )
        _require_valid(validated.report)
        return ExtractionPlan(
            tenant_id=tenant.tenant_id,
            request_id=tenant.request_id,
            steps=_steps(request, validated.snapshots),
            metadata=request.metadata,
            limits=limits,
        )

    async def _find_all(
        self, tenant: TenantContext, names: Sequence[str], limits: Limits
    ) -> Mapping[str, ConnectionDescriptor]:
        """Every connection; whose a name is comes before how many there are (spec 9, gate 5).

        An oversized request costs no more than ``max_datasources + 1`` look-ups.
        """
        descriptors = {}
        for name in names[: limits.max_datasources + 1]:
            descriptor = await self._sources.find(tenant, name)
            if descriptor is None:
                raise unknown_datasource(name)
            descriptors[name] = descriptor
        if len(names) > limits.max_datasources:
            raise EngineError(
                ErrorCategory.VALIDATION,
                "datasource count exceeds the configured maximum: limits.maxDatasources",
            )
        return descriptors

    def _require_fields(
        self, request: ExtractionRequest, descriptors: Mapping[str, ConnectionDescriptor]
    ) -> None:
        for name in sorted(request.mapped_fields):
            empty = sorted(t for t, fields in request.mapped_fields[name].items() if not fields)
            if empty and self._sources.requires_fields(descriptors[name]):
                raise EngineError(
                    ErrorCategory.VALIDATION,
                    "extraction table selects no fields",
                    source=name,
                    table=empty[0],
                )


def _require_shape(request: ExtractionRequest) -> None:
    """The gates that need no I/O. No filter may vanish: each must name a table that is read."""
    if not request.mapped_fields:
        raise EngineError(ErrorCategory.VALIDATION, "extraction request has no mapped fields")
    for name in sorted(request.mapped_fields):
        if not name.strip():
            text = "extraction request has a blank datasource config name"
            raise EngineError(ErrorCategory.VALIDATION, text)
        if not request.mapped_fields[name]:
            text = "extraction datasource selects no tables"
            raise EngineError(ErrorCategory.VALIDATION, text, source=name)
    for name in sorted(request.filters):
        for table in sorted(request.filters[name]):
            if table not in request.mapped_fields.get(name, {}):
                text = "extraction request filters a table that is not requested"
                raise EngineError(ErrorCategory.VALIDATION, text, source=name, table=table)


def _validation_request(request: ExtractionRequest) -> SchemaValidationRequest:
    def table_mapping(config_name: str, table: str) -> TableMapping:
        filters = request.filters.get(config_name, {}).get(table, {})
        return TableMapping(table, request.mapped_fields[config_name][table], tuple(filters))

    return SchemaValidationRequest(
        tuple(
            DatasourceMapping(name, tuple(table_mapping(name, table) for table in sorted(tables)))
            for name, tables in sorted(request.mapped_fields.items())
        )
    )


def _require_valid(report: ValidationReport) -> None:
    for failure in report.failures:
        if failure.type is FailureType.DATASOURCE_NOT_FOUND:
            raise unknown_datasource(failure.config_name)
    if not report.valid:
        raise EngineError(
            ErrorCategory.VALIDATION,
            "extraction request failed schema validation",
            source=report.failures[0].config_name or None,
            failures=report.failures,
        )


def _steps(
    request: ExtractionRequest, snapshots: Mapping[str, SchemaSnapshot]
) -> tuple[PlanStep, ...]:
    steps = []
    for ordinal, (name, wanted) in enumerate(sorted(request.mapped_fields.items())):
        snapshot = snapshots[name]
        tables = TableIndex(snapshot)
        fields = {}
        filters = {}
        estimates = {}
        for asked, columns in wanted.items():
            table = tables.find(asked) or TableSnapshot(asked, ())
            fields[asked] = selected_fields(table, columns, ignores_case=snapshot.ignores_case)
            if table.estimated_rows is not None:
                estimates[asked] = table.estimated_rows
            if leaves := request.filters.get(name, {}).get(asked):
                index = FieldIndex(table, ignores_case=snapshot.ignores_case)
                filters[asked] = {index.find(f) or f: leaf for f, leaf in leaves.items()}
                if len(filters[asked]) < len(leaves):
                    # two spellings of one column: one of the conditions would vanish
                    text = "extraction request has malformed filters"
                    raise EngineError(ErrorCategory.VALIDATION, text, source=name, table=asked)
        steps.append(
            PlanStep(
                ordinal=ordinal,
                config_name=name,
                fields=fields,
                filters=filters,
                estimated_rows=estimates,
            )
        )
    return tuple(steps)
