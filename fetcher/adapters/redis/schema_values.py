"""A schema as the JSON that lies in Redis. Every field of the snapshot comes back as it was."""

from datetime import datetime
from typing import Final, TypeVar, cast

import orjson

from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, TableSnapshot

MAX_BYTES: Final = 1024 * 1024
"""Of one schema: some 13 000 columns."""
VERSION: Final = 2

T = TypeVar("T")


class NotASchema(ValueError):
    """The value is none of ours."""


def schema_to_json(snapshot: SchemaSnapshot) -> bytes | None:
    """None for what is too large, or holds text that JSON cannot say."""
    captured_at = snapshot.captured_at
    value = {
        "version": VERSION,
        "configName": snapshot.config_name,
        "capturedAt": None if captured_at is None else captured_at.isoformat(),
        "ignoresCase": snapshot.ignores_case,
        "tables": [
            {
                "name": table.name,
                "fields": list(table.fields),
                "columns": [
                    [column.name, column.type, column.nullable, column.primary_key]
                    for column in table.columns
                ],
                "estimatedRows": table.estimated_rows,
            }
            for table in snapshot.tables
        ],
        "ambiguous": [[table.name, list(table.candidates)] for table in snapshot.ambiguous],
    }
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None
    return data if len(data) <= MAX_BYTES else None


def schema_from_json(data: bytes) -> SchemaSnapshot:
    """Raise NotASchema for whatever :func:`schema_to_json` does not write.

    Of every value the type is asked, and nothing is looked at below the depth that it should have.
    """
    if len(data) > MAX_BYTES:
        raise NotASchema
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    members = _members(
        value, "version", "configName", "capturedAt", "ignoresCase", "tables", "ambiguous"
    )
    version, config_name, captured_at, ignores_case, tables, ambiguous = members
    if _typed(version, int) != VERSION:
        raise NotASchema
    return SchemaSnapshot(
        config_name=_typed(config_name, str),
        tables=tuple(_table(each) for each in _list(tables)),
        captured_at=None if captured_at is None else _time(_typed(captured_at, str)),
        ignores_case=_typed(ignores_case, bool),
        ambiguous=tuple(_ambiguous(each) for each in _list(ambiguous)),
    )


def _table(value: object) -> TableSnapshot:
    name, fields, columns, estimate = _members(value, "name", "fields", "columns", "estimatedRows")
    return TableSnapshot(
        name=_typed(name, str),
        fields=_texts(fields),
        columns=tuple(_column(each) for each in _list(columns)),
        estimated_rows=None if estimate is None else _count(estimate),
    )


def _column(value: object) -> ColumnSnapshot:
    # there are thousands of them: no helper is called
    if type(value) is list and len(value) == 4:
        name, type_, nullable, primary_key = value
        are_texts = type(name) is str and type(type_) is str
        if are_texts and type(nullable) is bool and type(primary_key) is bool:
            return ColumnSnapshot(name, type_, nullable, primary_key)
    raise NotASchema


def _ambiguous(value: object) -> AmbiguousTable:
    name, candidates = _list(value, length=2)
    return AmbiguousTable(name=_typed(name, str), candidates=_texts(candidates))


def _count(value: object) -> int:
    count = _typed(value, int)
    if count < 0:
        raise NotASchema
    return count


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise NotASchema


def _texts(value: object) -> tuple[str, ...]:
    texts = tuple(_list(value))
    if not all(type(each) is str for each in texts):
        raise NotASchema
    return cast("tuple[str, ...]", texts)


def _typed(value: object, type_: type[T]) -> T:
    # exactly: a bool is an int too
    if type(value) is not type_:
        raise NotASchema
    return value


def _list(value: object, *, length: int | None = None) -> list[object]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise NotASchema
    return value


def _members(value: object, *names: str) -> list[object]:
    """The members of an object that has these and no others."""
    if not isinstance(value, dict) or value.keys() != set(names):
        raise NotASchema
    return [value[name] for name in names]
