"""What a source holds, and what does not fit it (spec 4.7, 4.8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.timestamps import rfc3339


@dataclass(frozen=True, slots=True)
class ColumnSnapshot:
    """One column; ``type`` in the database's own words."""

    name: str
    type: str
    nullable: bool = True
    primary_key: bool = False


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """One table or collection. ``fields`` are what can be asked for; ``columns`` may tell more.

    A dot in a field makes it a path into a document, unless ``columns`` has a column of that name.
    ``estimated_rows`` is the source's own guess, possibly old and never counted for us; None where
    it makes none. It is no part of what the table is: two that differ in it alone are equal. Raise
    ``validation`` for one that is no count.
    """

    name: str
    fields: tuple[str, ...]
    columns: tuple[ColumnSnapshot, ...] = ()
    estimated_rows: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        estimate = self.estimated_rows
        if estimate is not None and (type(estimate) is not int or estimate < 0):
            raise EngineError(ErrorCategory.VALIDATION, "table estimate is not a count of rows")

    @classmethod
    def of_columns(cls, name: str, columns: Sequence[str]) -> "TableSnapshot":
        """A table of which only the columns' names are known; a dot is a part of the name."""
        return cls(name, tuple(columns), tuple(ColumnSnapshot(column, "") for column in columns))

    def has_field(self, name: str) -> bool:
        """Whether it is a field, or the parent object of flattened document paths."""
        return name in self.fields or any(f.startswith(f"{name}.") for f in self._paths())

    def top_level_fields(self) -> tuple[str, ...]:
        """All fields once, in byte order; a flattened path counts as its topmost parent."""
        paths = self._paths()
        names = {f.partition(".")[0] if f in paths else f for f in self.fields}
        return tuple(sorted(names))

    def _paths(self) -> frozenset[str]:
        return frozenset(self.fields) - {column.name for column in self.columns}


@dataclass(frozen=True, slots=True)
class AmbiguousTable:
    """A requested name that several tables differ from in case alone, and no table has."""

    name: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaSnapshot:
    """The tables of one source, without system tables and without secrets.

    Where the source ``ignores_case``, a request may spell a name in another case than the source,
    as long as only one name is meant. A plan then has the source's own spelling of fields, and the
    request's of tables: its connector finds them by the same rule. A connector that knows more of
    its names than their texts tells itself which of the requested ones are ``ambiguous``.
    """

    config_name: str
    tables: tuple[TableSnapshot, ...] = ()
    captured_at: datetime | None = None
    ignores_case: bool = False
    ambiguous: tuple[AmbiguousTable, ...] = ()

    def has_table(self, name: str) -> bool:
        """Whether there is a table of exactly this name."""
        return any(table.name == name for table in self.tables)

    def table_names(self) -> tuple[str, ...]:
        """The names of all tables, in byte order."""
        return tuple(sorted(table.name for table in self.tables))

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection: each table's name and fields."""
        public: dict[str, object] = {
            "configName": self.config_name,
            "tables": [{"name": table.name, "fields": list(table.fields)} for table in self.tables],
        }
        if self.captured_at is not None:
            public["capturedAt"] = rfc3339(self.captured_at)
        return public


class FailureType(StrEnum):
    """What can be wrong with a request; the values are stable."""

    DATASOURCE_NOT_FOUND = "datasource_not_found"
    TABLE_NOT_FOUND = "table_not_found"
    FIELD_NOT_FOUND = "field_not_found"
    INVALID_FILTER = "invalid_filter"
    LIMIT_EXCEEDED = "limit_exceeded"


@dataclass(frozen=True, slots=True)
class ValidationFailure:
    """One thing that does not fit, named by what the caller itself asked for.

    ``candidates`` are what an ambiguous name could mean: they differ from it in case alone.
    """

    type: FailureType
    config_name: str
    table: str = ""
    field: str = ""
    detail: str = ""
    candidates: tuple[str, ...] = ()

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection, without what is empty."""
        optional: dict[str, object] = {
            "table": self.table,
            "field": self.field,
            "detail": self.detail,
            "candidates": list(self.candidates),
        }
        return {
            "type": str(self.type),
            "configName": self.config_name,
            **{name: value for name, value in optional.items() if value},
        }


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All failures, sorted by config name, table, type and field."""

    failures: tuple[ValidationFailure, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the request fits its sources."""
        return not self.failures

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection; failures stand in it only where there are any."""
        public: dict[str, object] = {"valid": self.valid}
        if self.failures:
            public["failures"] = [failure.to_public_dict() for failure in self.failures]
        return public


@dataclass(frozen=True, slots=True)
class TableMapping:
    """What is wanted of one table: fields to read, and fields that filters name."""

    name: str
    fields: Sequence[str] = ()
    filter_fields: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DatasourceMapping:
    """What is wanted of one source."""

    config_name: str
    tables: Sequence[TableMapping] = ()


@dataclass(frozen=True, slots=True)
class SchemaValidationRequest:
    """What a caller means to ask for, to be checked before it is planned."""

    datasources: Sequence[DatasourceMapping] = ()

    @classmethod
    def of(
        cls, mapped_fields: Mapping[str, Mapping[str, Sequence[str]]]
    ) -> "SchemaValidationRequest":
        """The request for a mapping of config name to table to fields."""
        return cls(
            tuple(
                DatasourceMapping(
                    config_name,
                    tuple(TableMapping(name, tuple(fields)) for name, fields in tables.items()),
                )
                for config_name, tables in mapped_fields.items()
            )
        )
