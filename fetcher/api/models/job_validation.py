"""What a job that is only tried answers."""

from typing import Self

from fetcher.api.models.connections import Answer
from fetcher.domain.jobs import LIMIT_NAMES
from fetcher.queries.validate_job import PlannedSource, PlannedTable, TriedJob
from fetcher_engine import Limits


class PlannedTableAnswer(Answer):
    fields: list[str]
    estimated_rows: int | None = None

    @classmethod
    def of(cls, table: PlannedTable) -> Self:
        return cls(fields=list(table.fields), estimated_rows=table.estimated_rows)


class PlannedSourceAnswer(Answer):
    type: str
    tables: dict[str, PlannedTableAnswer]

    @classmethod
    def of(cls, source: PlannedSource) -> Self:
        tables = {name: PlannedTableAnswer.of(table) for name, table in source.tables.items()}
        return cls(type=source.type, tables=tables)


class LimitsAnswer(Answer):
    """Counts, seconds, bytes: what this job would be held to."""

    max_datasources: int
    max_tables_per_datasource: int
    max_fields_per_table: int
    max_concurrency: int
    timeout: float
    max_result_bytes: int

    @classmethod
    def of(cls, limits: Limits) -> Self:
        return cls.model_validate({name: getattr(limits, name) for name in LIMIT_NAMES.values()})


class ValidJobAnswer(Answer):
    valid: bool = True
    sources: dict[str, PlannedSourceAnswer]
    limits: LimitsAnswer
    request_hash: str

    @classmethod
    def of(cls, tried: TriedJob) -> Self:
        return cls(
            sources={name: PlannedSourceAnswer.of(each) for name, each in tried.sources.items()},
            limits=LimitsAnswer.of(tried.limits),
            request_hash=tried.request_hash,
        )
