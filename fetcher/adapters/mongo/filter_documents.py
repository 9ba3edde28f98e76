"""Conditions as the record keeps them: under other names than the API's (spec rest-api 12.3)."""

from collections.abc import Mapping
from typing import Any, Final

from fetcher.adapters.mongo.bson_values import scalars_from_bson, to_bson
from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.domain.jobs import Condition, Filters, Operator

WIRE_NAMES: Final = {
    Operator.EQ: "equals",
    Operator.GT: "greaterthan",
    Operator.GTE: "greaterorequal",
    Operator.LT: "lessthan",
    Operator.LTE: "lessorequal",
    Operator.BETWEEN: "between",
    Operator.IN: "in",
    Operator.NIN: "notin",
    Operator.NE: "notequals",
    Operator.LIKE: "like",
}
"""Always all ten, null where the operator is absent."""

OWN_NAMES: Final = {Operator.IS_NULL: "isnull", Operator.NOT_NULL: "notnull"}
"""Operators that the reference does not know: stored only where they are used."""

_OPERATORS: Final = {name: op for op, name in (WIRE_NAMES | OWN_NAMES).items()}


def filters_document(filters: Filters) -> Document:
    return {
        config_name: {
            table: {field: _condition_document(condition) for field, condition in fields.items()}
            for table, fields in tables.items()
        }
        for config_name, tables in filters.items()
    }


def read_filters(stored: Mapping[str, Any], *, record: str) -> Filters:
    """Raise RecordCorrupt for a condition that we would not apply: a filter never vanishes."""
    root = DocumentFields(f"{record}: filters", stored)
    filters: dict[str, dict[str, dict[str, Condition]]] = {}
    for config_name in stored:
        tables = root.document(config_name)
        of_tables = DocumentFields(f"{record}: filters", tables)
        filters[config_name] = {
            table: _read_fields(of_tables.document(table), record=record) for table in tables
        }
    return filters


def _condition_document(condition: Condition) -> Document:
    document: Document = dict.fromkeys(WIRE_NAMES.values())
    for operator, values in condition.items():
        name = WIRE_NAMES.get(Operator(operator)) or OWN_NAMES[Operator(operator)]
        document[name] = [to_bson(value) for value in values]
    return document


def _read_fields(stored: Mapping[str, Any], *, record: str) -> dict[str, Condition]:
    of_fields = DocumentFields(f"{record}: filters", stored)
    return {field: _read_condition(of_fields.document(field), record=record) for field in stored}


def _read_condition(stored: Mapping[str, Any], *, record: str) -> Condition:
    fields = DocumentFields(f"{record}: filters", stored)
    condition: dict[str, tuple[Any, ...]] = {}
    for name, values in stored.items():
        operator = _OPERATORS.get(name)
        if values is None or (values == [] and operator not in OWN_NAMES):
            continue
        if operator is None:
            raise fields.corrupt("unknown operator")
        condition[operator.value] = scalars_from_bson(
            fields.items(name), field=f"{record}: filters"
        )
    return condition
