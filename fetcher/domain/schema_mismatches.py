"""What of a request does not fit its data sources, as the Wire tells it (spec rest-api 8.9)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fetcher.compat import SourceNames, normalized_field, normalized_table
from fetcher_engine import FailureType, ValidationFailure


class MismatchType(StrEnum):
    DATA_SOURCE_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
    DATA_SOURCE_DOWN = "DATA_SOURCE_DOWN"
    TABLE_NOT_FOUND = "TABLE_NOT_FOUND"
    FIELD_NOT_FOUND = "FIELD_NOT_FOUND"
    AMBIGUOUS_NAME = "AMBIGUOUS_NAME"
    """Of a job that is only tried; ``validate-schema`` has the Wire's types alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMismatch:
    """In the names that the caller sent. ``table`` and ``field`` are empty where none is meant.

    ``candidates`` are what an ambiguous name could mean: they differ from it in case alone.
    ``stage`` and ``reason`` say where and why a source failed, where that is told.
    """

    type: MismatchType
    data_source: str
    table: str = ""
    field: str = ""
    candidates: tuple[str, ...] = ()
    stage: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AskedSource:
    """What is asked of one source, in the caller's names, and how these are read.

    ``filtered`` are the fields that are filtered by, by table.
    """

    name: str
    tables: Mapping[str, Sequence[str]]
    names: SourceNames
    filtered: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def table(self, asked: str) -> str:
        """The name under which the Engine knows the table."""
        return normalized_table(asked, self.names)

    def field(self, asked: str) -> str:
        """The name under which the Engine knows the field."""
        return normalized_field(asked, self.names)

    def oversized(self, failures: Sequence[ValidationFailure]) -> str | None:
        """The first table by name that means more fields than a job may ask for."""
        over = {each.table for each in failures if each.type is FailureType.LIMIT_EXCEEDED}
        return next((table for table in sorted(self.tables) if self.table(table) in over), None)

    def mismatches(self, failures: Sequence[ValidationFailure]) -> Iterator[SchemaMismatch]:
        """What is not there or could be several things: by table, fields in the order asked for.

        Two spellings of one table are told apart. Of a table that is missing no field is told.
        """
        found = {(each.type, each.table, each.field): each.candidates for each in failures}
        for table in sorted({*self.tables, *self.filtered}):
            name = self.table(table)
            if (missing := (FailureType.TABLE_NOT_FOUND, name, "")) in found:
                if table in self.tables:
                    yield SchemaMismatch(
                        type=MismatchType.TABLE_NOT_FOUND,
                        data_source=self.name,
                        table=table,
                        candidates=found[missing],
                    )
                continue
            for asked in dict.fromkeys(
                (*self.tables.get(table, ()), *self.filtered.get(table, ()))
            ):
                candidates = self._missing(found, table, asked)
                if candidates is not None:
                    yield SchemaMismatch(
                        type=MismatchType.FIELD_NOT_FOUND,
                        data_source=self.name,
                        table=table,
                        field=asked,
                        candidates=candidates,
                    )

    def _missing(
        self, found: Mapping[tuple[FailureType, str, str], tuple[str, ...]], table: str, asked: str
    ) -> tuple[str, ...] | None:
        """What an ambiguous field could mean, nothing of a missing one; None for one that is
        there."""
        name, field_name = self.table(table), self.field(asked)
        as_field = found.get((FailureType.FIELD_NOT_FOUND, name, field_name))
        if as_field is not None and asked in self.tables.get(table, ()):
            return as_field
        as_filter = found.get((FailureType.INVALID_FILTER, name, field_name))
        return as_filter if asked in self.filtered.get(table, ()) else None


def source_is_down(source: str, *, stage: str = "", reason: str = "") -> SchemaMismatch:
    return SchemaMismatch(
        type=MismatchType.DATA_SOURCE_DOWN, data_source=source, stage=stage, reason=reason
    )
