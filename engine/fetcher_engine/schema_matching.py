"""Whether what is asked for exists, and how much it is: pure rules (spec 8.13)."""

from collections.abc import Iterable, Iterator, Sequence

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.limits import Limits
from fetcher_engine.name_matching import AmbiguousName, FieldIndex, TableIndex
from fetcher_engine.schema import (
    DatasourceMapping,
    FailureType,
    SchemaSnapshot,
    SchemaValidationRequest,
    TableMapping,
    TableSnapshot,
    ValidationFailure,
    ValidationReport,
)

WILDCARD = "*"
"""As the only field of a table: all its columns (design section 5)."""


def is_wildcard(fields: Iterable[str]) -> bool:
    return set(fields) == {WILDCARD}


def selected_fields(
    table: TableSnapshot, fields: Sequence[str], *, ignores_case: bool
) -> tuple[str, ...]:
    """The fields to read, each once, in byte order and the source's spelling; ``"*"`` expanded.

    For fields that were found to be there.
    """
    if is_wildcard(fields):
        return table.top_level_fields()
    index = FieldIndex(table, ignores_case=ignores_case)
    return tuple(sorted({index.find(field) or field for field in fields}))


def require_names(request: SchemaValidationRequest) -> None:
    """Raise ``validation`` for an empty request and for the first blank name in request order."""
    if not request.datasources:
        text = "schema validation request has no datasources"
        raise EngineError(ErrorCategory.VALIDATION, text)
    for datasource in request.datasources:
        _require_name(datasource.config_name, "datasource config name")
        for table in datasource.tables:
            _require_name(table.name, "table name")
            for field in table.fields:
                _require_name(field, "field name")
            for field in table.filter_fields:
                _require_name(field, "filter field name")


def _require_name(name: str, what: str) -> None:
    if not name.strip():
        text = f"schema validation request has a blank {what}"
        raise EngineError(ErrorCategory.VALIDATION, text)


def count_failures(request: SchemaValidationRequest, limits: Limits) -> list[ValidationFailure]:
    """Every count limit that the request breaks as it stands; a field asked twice counts once."""
    failures = []
    if len(request.datasources) > limits.max_datasources:
        failures.append(_over_limit("", "", "datasource"))
    for datasource in request.datasources:
        if len(datasource.tables) > limits.max_tables_per_datasource:
            failures.append(_over_limit(datasource.config_name, "", "table"))
        for table in datasource.tables:
            for what, names in (("field", table.fields), ("filter", table.filter_fields)):
                if len(set(names)) > limits.max_fields_per_table:
                    failures.append(_over_limit(datasource.config_name, table.name, what))
    return failures


def unknown_connection_failure(config_name: str) -> ValidationFailure:
    return ValidationFailure(
        FailureType.DATASOURCE_NOT_FOUND,
        config_name,
        detail="no connection configured for the requested datasource",
    )


def match_failures(
    mapping: DatasourceMapping, snapshot: SchemaSnapshot, limits: Limits
) -> Iterator[ValidationFailure]:
    """What of a mapping is not in the schema, or could be several things there."""
    tables = TableIndex(snapshot)
    for wanted in mapping.tables:
        detail = "table not found in datasource schema"
        candidates: tuple[str, ...] = ()
        table = None
        try:
            table = tables.find(wanted.name)
        except AmbiguousName as several:
            detail = "table name is ambiguous in datasource schema"
            candidates = several.candidates
        if table is None:
            yield ValidationFailure(
                FailureType.TABLE_NOT_FOUND,
                mapping.config_name,
                wanted.name,
                detail=detail,
                candidates=candidates,
            )
        else:
            fields = FieldIndex(table, ignores_case=snapshot.ignores_case)
            yield from _field_failures(mapping.config_name, wanted, table, fields, limits)


def _field_failures(
    config_name: str,
    wanted: TableMapping,
    table: TableSnapshot,
    fields: FieldIndex,
    limits: Limits,
) -> Iterator[ValidationFailure]:
    expanded = is_wildcard(wanted.fields) and bool(table.fields)
    if expanded and len(table.top_level_fields()) > limits.max_fields_per_table:
        yield _over_limit(config_name, wanted.name, "field")
    for field in () if expanded else dict.fromkeys(wanted.fields):
        if problem := _problem_of(fields, field, "field not found in table schema"):
            yield ValidationFailure(
                FailureType.FIELD_NOT_FOUND, config_name, wanted.name, field, *problem
            )
    for field in dict.fromkeys(wanted.filter_fields):
        missing = "filter references a field not found in table schema"
        if problem := _problem_of(fields, field, missing):
            yield ValidationFailure(
                FailureType.INVALID_FILTER, config_name, wanted.name, field, *problem
            )


def _problem_of(fields: FieldIndex, field: str, missing: str) -> tuple[str, tuple[str, ...]] | None:
    """What is wrong in words, and what the name could mean."""
    try:
        return (missing, ()) if fields.find(field) is None else None
    except AmbiguousName as several:
        return "field name is ambiguous in table schema", several.candidates


def _over_limit(config_name: str, table: str, what: str) -> ValidationFailure:
    return ValidationFailure(
        FailureType.LIMIT_EXCEEDED,
        config_name,
        table,
        detail=f"{what} count exceeds the configured limit",
    )


def sorted_report(failures: Iterable[ValidationFailure]) -> ValidationReport:
    return ValidationReport(
        tuple(sorted(failures, key=lambda f: (f.config_name, f.table, f.type, f.field)))
    )
