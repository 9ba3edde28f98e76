"""Bodies of ``validate-schema`` (spec rest-api 8.9)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, Self

from pydantic import ConfigDict, WithJsonSchema

from fetcher.api.models.connections import Answer
from fetcher.api.models.request_schemas import ASKED_FIELDS
from fetcher.api.payloads import Part
from fetcher.domain.job_order import AskedFields
from fetcher.domain.schema_mismatches import MismatchType, SchemaMismatch

NOT_THERE: Final = "does not exist"
_KINDS: Final[Mapping[MismatchType, str]] = MappingProxyType(
    {
        MismatchType.DATA_SOURCE_DOWN: "cannot be reached",
        MismatchType.AMBIGUOUS_NAME: "may mean several things",
    }
)


class ValidateSchemaRequest(Part):
    model_config = ConfigDict(json_schema_extra={"required": ["mappedFields"]})

    mapped_fields: Annotated[
        dict[str, dict[str, list[str] | None] | None] | None, WithJsonSchema(ASKED_FIELDS)
    ] = None

    def to_command(self) -> AskedFields | None:
        if self.mapped_fields is None:
            return None
        return {
            source: {table: names or [] for table, names in (tables or {}).items()}
            for source, tables in self.mapped_fields.items()
        }


class SchemaValidAnswer(Answer):
    status: str = "success"
    message: str = "All data sources, tables and fields exist"


class MismatchAnswer(Answer):
    type: str
    data_source_id: str
    table: str | None = None
    field: str | None = None
    candidates: list[str] | None = None
    stage: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, mismatch: SchemaMismatch) -> Self:
        return cls(
            type=str(mismatch.type),
            data_source_id=mismatch.data_source,
            table=mismatch.table or None,
            field=mismatch.field or None,
            candidates=list(mismatch.candidates) or None,
            stage=mismatch.stage or None,
            reason=mismatch.reason or None,
        )


class SchemaMismatchAnswer(Answer):
    """Body D of spec 6.1."""

    code: str = "FET-1060"
    title: str = "Schema validation failed"
    message: str
    error_code: str = "FET-1060"
    errors: list[MismatchAnswer]

    @classmethod
    def of(cls, found: Sequence[SchemaMismatch]) -> Self:
        errors = [MismatchAnswer.of(mismatch) for mismatch in found]
        kinds = {_KINDS.get(mismatch.type, NOT_THERE) for mismatch in found}
        why = " or ".join(sorted(kinds, key=(NOT_THERE, *_KINDS.values()).index))
        return cls(message=f"{len(errors)} of what was asked for {why}", errors=errors)
