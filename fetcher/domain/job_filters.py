"""Filters of a request: a filter never vanishes (design section 7; spec datasources 9)."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NoReturn

from fetcher.compat import SourceNames, normalized_request, normalized_table, plugin_crm
from fetcher.compat.names import MAX_NAME_CHARACTERS
from fetcher.domain.connections import Connection
from fetcher.domain.errors import FetcherError
from fetcher.domain.jobs import Condition, Filters, MappedFields, Operator
from fetcher.domain.json_values import JsonScalar, JsonValue
from fetcher.domain.member_paths import member
from fetcher_engine import Limits, SourceFailure

ROOT = "dataRequest.filters"
MAX_VALUES = 10_000
"""Values of one condition (spec datasources 9.2)."""

_EXACTLY = {
    Operator.GT: 1,
    Operator.GTE: 1,
    Operator.LT: 1,
    Operator.LTE: 1,
    Operator.BETWEEN: 2,
    Operator.IS_NULL: 1,
    Operator.NOT_NULL: 1,
}
_NEVER_NULL = frozenset(
    {Operator.GT, Operator.GTE, Operator.LT, Operator.LTE, Operator.BETWEEN, Operator.LIKE}
)


def checked_filters(
    filters: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Sequence[JsonValue]]]]],
    *,
    asked: MappedFields,
    limits: Limits,
) -> Filters:
    """The filters with their conditions judged; raise ``FET-0401`` with the member's path.

    A source or table without any condition asks for nothing and is left out. Whether each table is
    asked for is :func:`refuse_lost_filters`' question: it needs the types of the sources.
    """
    unknown = [source for source in filters if source not in asked]
    if unknown:
        paths = ", ".join(member(ROOT, source) for source in sorted(unknown))
        raise FetcherError("FET-0401", "Invalid Filter References", f"not in mappedFields: {paths}")
    checked: dict[str, dict[str, dict[str, Condition]]] = {}
    for source, tables in filters.items():
        for table, fields in tables.items():
            path = member(member(ROOT, source), table)
            if len(fields) > limits.max_fields_per_table:
                _refuse(f"{path} filters more than {limits.max_fields_per_table} fields")
            for name, condition in fields.items():
                place = member(path, name)
                if not name.strip() or "\0" in name or len(name) > MAX_NAME_CHARACTERS:
                    _refuse(f"{place} is not a name")
                below = checked.setdefault(source, {}).setdefault(table, {})
                below[name] = _checked_condition(condition, place)
    return checked


def source_names(
    connections: Iterable[Connection], *, keeps_default: bool = False
) -> dict[str, SourceNames]:
    """How the names of each source are read, by config name.

    Where the type ``keeps_default``, the connection's own schema does not decide about bare names.
    """
    return {
        c.config_name: SourceNames(c.type.value, "" if keeps_default else c.schema or "")
        for c in connections
    }


def refuse_lost_filters(
    filters: Filters, *, asked: MappedFields, sources: Mapping[str, SourceNames]
) -> None:
    """Raise ``FET-0401`` for a filter on a table that is not asked for.

    ``orders`` and ``public.orders`` are one table on PostgreSQL (spec datasources 19.7). Raise
    EngineError of category ``validation`` where two spellings carry different conditions.
    """
    fields, _ = normalized_request(asked, filters, sources)
    for source, tables in filters.items():
        for table in tables:
            if normalized_table(table, sources[source]) not in fields[source]:
                path = member(member(ROOT, source), table)
                raise FetcherError(
                    "FET-0401", "Invalid Filter References", f"{path}: the table is not asked for"
                )


def refuse_unanswerable_filters(filters: Filters, sources: Mapping[str, SourceNames]) -> None:
    """Raise ``FET-0401`` for a filter on a sealed field that no hash can answer (spec 15.4)."""
    for source, tables in filters.items():
        if not plugin_crm.is_crm_source(source, sources[source].source_type):
            continue
        for table, fields in tables.items():
            try:
                plugin_crm.search_filters(fields, lambda text: text, table=table)
            except SourceFailure as unanswerable:
                place = member(member(ROOT, source), table)
                column = unanswerable.column
            else:
                continue
            path = place if column is None else member(place, column)
            _refuse(
                f"{path}: sealed values can only be compared for being equal, where they have"
                " a hash, or asked for being null"
            )


def _checked_condition(condition: Mapping[str, Sequence[JsonValue]], path: str) -> Condition:
    if not condition:
        _refuse(f"{path} holds no operator")
    return {
        operator: _checked_values(Operator(operator), values, f"{path}.{operator}")
        for operator, values in condition.items()
    }


def _checked_values(
    operator: Operator, values: Sequence[JsonValue], path: str
) -> tuple[JsonScalar, ...]:
    if not values:
        _refuse(f"{path} is empty")
    if len(values) > MAX_VALUES:
        _refuse(f"{path} holds more than {MAX_VALUES} values")
    wanted = _EXACTLY.get(operator)
    if wanted is not None and len(values) != wanted:
        _refuse(f"{path} needs exactly {wanted} value{'s' * (wanted > 1)}, not {len(values)}")
    return tuple(
        _checked_value(operator, value, f"{path}[{index}]") for index, value in enumerate(values)
    )


def _checked_value(operator: Operator, value: JsonValue, path: str) -> JsonScalar:
    if value is not None and not isinstance(value, str | int | Decimal | bool):
        _refuse(f"{path} must be a text, a number, a boolean or null")
    if value is None and operator in _NEVER_NULL:
        _refuse(f"{path} must not be null")
    if operator is Operator.LIKE and not isinstance(value, str):
        _refuse(f"{path} must be a text")
    if operator in (Operator.IS_NULL, Operator.NOT_NULL) and value is not True:
        _refuse(f"{path} must be true")
    return value


def _refuse(message: str) -> NoReturn:
    raise FetcherError("FET-0401", "Invalid Data Request", message)
