"""What callers send to the job operations (spec rest-api 9; ``options``: design section 6)."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from fetcher.api.models.connections import AnyJson, renamed
from fetcher.api.models.request_schemas import (
    JOB_METADATA,
    MAPPED_FIELDS,
    condition_schema,
    create_job_schema,
    filters_schema,
)
from fetcher.api.payloads import Part, StrictPart
from fetcher.domain.job_order import CHOICES, JobOrder
from fetcher.domain.jobs import JobOptions, Operator
from fetcher.domain.json_values import JsonObject, JsonValue

Values = list[AnyJson] | None


_TOO_LARGE = 10**300
"""A double can still hold it."""


def _seconds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    return float(value) if -_TOO_LARGE < value < _TOO_LARGE else math.inf


Seconds = Annotated[
    float, BeforeValidator(_seconds), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]
Count = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1})]
"""At least 1, and at most what this service allows: judged with the other rules, and told in the
document with the figures."""


def _one_of(*allowed: str) -> WithJsonSchema:
    return WithJsonSchema({"enum": [*allowed, None]})


class ConditionRequest(StrictPart):
    """The operators of one field; all of them must hold."""

    model_config = ConfigDict(alias_generator=None, json_schema_extra=condition_schema)

    eq: Values = None
    gt: Values = None
    gte: Values = None
    lt: Values = None
    lte: Values = None
    between: Values = None
    within: Values = renamed("in")
    nin: Values = None
    ne: Values = None
    like: Values = None
    is_null: Values = None
    not_null: Values = None

    def to_command(self) -> dict[str, Sequence[JsonValue]]:
        sent = self.model_dump(by_alias=True, exclude_none=True)
        return {str(operator): sent[operator] for operator in Operator if operator in sent}


class LimitsRequest(StrictPart):
    max_datasources: Count | None = None
    max_tables_per_datasource: Count | None = None
    max_fields_per_table: Count | None = None
    max_concurrency: Count | None = None
    timeout: Seconds | None = None
    max_result_bytes: Count | None = None


class OptionsRequest(StrictPart):
    values: Annotated[str | None, _one_of(*CHOICES["values"])] = None
    bigint: Annotated[str | None, _one_of(*CHOICES["bigint"])] = None
    decimals: Annotated[str | None, _one_of(*CHOICES["decimals"])] = None
    limits: LimitsRequest | None = None

    def to_command(self) -> JobOptions:
        defaults = JobOptions()
        limits = self.limits.model_dump(by_alias=True, exclude_none=True) if self.limits else {}
        return JobOptions(
            values=self.values if self.values is not None else defaults.values,
            bigint=self.bigint if self.bigint is not None else defaults.bigint,
            decimals=self.decimals if self.decimals is not None else defaults.decimals,
            limits=limits,
        )


class DataRequest(StrictPart):
    model_config = ConfigDict(json_schema_extra={"required": ["mappedFields"]})

    mapped_fields: Annotated[
        dict[str, dict[str, list[str] | None] | None] | None, WithJsonSchema(MAPPED_FIELDS)
    ] = None
    filters: Annotated[
        dict[str, dict[str, dict[str, ConditionRequest | None] | None] | None] | None,
        Field(json_schema_extra=filters_schema),
    ] = None
    options: OptionsRequest | None = None


class CreateJobRequest(Part):
    model_config = ConfigDict(json_schema_extra=create_job_schema)
    single_below = frozenset({"dataRequest"})

    data_request: DataRequest | None = None
    metadata: Annotated[dict[str, AnyJson] | None, WithJsonSchema(JOB_METADATA)] = None

    def to_command(self, *, request_id: str) -> JobOrder:
        asked = self.data_request or DataRequest()
        mapped = asked.mapped_fields
        return JobOrder(
            mapped_fields=None
            if mapped is None
            else {
                source: {table: names or [] for table, names in (tables or {}).items()}
                for source, tables in mapped.items()
            },
            filters={
                source: {
                    table: {
                        name: condition.to_command() if condition is not None else {}
                        for name, condition in (fields or {}).items()
                    }
                    for table, fields in (tables or {}).items()
                }
                for source, tables in (asked.filters or {}).items()
            },
            metadata=cast("JsonObject | None", self.metadata),
            options=asked.options.to_command() if asked.options is not None else None,
            request_id=request_id,
        )
