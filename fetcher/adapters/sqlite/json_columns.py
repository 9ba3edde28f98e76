"""JSON columns: text that keeps every digit, read back as what it was.

A column that cannot be read raises RecordCorrupt with the column's name, never with its content.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, TypeVar, cast

from fetcher.adapters.sqlite.times import from_ms, to_ms
from fetcher.domain.connections import TlsSettings
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.jobs import (
    AttemptRecord,
    FailureFacts,
    Filters,
    JobOptions,
    MappedFields,
    Progress,
    TableProgress,
)
from fetcher.domain.json_text import JsonTextError, dumps, parse
from fetcher.domain.json_values import JsonObject, JsonValue
from fetcher_engine import SourceNotes

T = TypeVar("T")

_MAX_DEPTH = 128
"""As deep as ``dumps`` writes."""


def load(column: str, text: str, build: Callable[[JsonValue], T]) -> T:
    """What ``build`` makes of the column's JSON."""
    try:
        return build(parse(text.encode(), max_depth=_MAX_DEPTH))
    except (JsonTextError, AttributeError, KeyError, OverflowError, TypeError, ValueError):
        failure = RecordCorrupt(f"the column {column} holds something else")
    raise failure


def plain_object(value: JsonValue) -> JsonObject:
    if not isinstance(value, Mapping):
        raise TypeError("no object")
    return value


def mapped_fields(value: JsonValue) -> MappedFields:
    return {
        config: {table: texts(fields) for table, fields in plain_object(tables).items()}
        for config, tables in plain_object(value).items()
    }


def filters(value: JsonValue) -> Filters:
    return cast(
        "Filters",
        {
            config: {
                table: {
                    name: {op: tuple(_items(values)) for op, values in plain_object(ops).items()}
                    for name, ops in plain_object(fields).items()
                }
                for table, fields in plain_object(tables).items()
            }
            for config, tables in plain_object(value).items()
        },
    )


def texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(value))


def options(value: JsonValue) -> JobOptions:
    members = plain_object(value)
    return JobOptions(
        values=str(members["values"]),
        bigint=str(members["bigint"]),
        decimals=str(members["decimals"]),
        limits={
            name: float(number) if isinstance(number, Decimal) else cast("int", number)
            for name, number in plain_object(members["limits"]).items()
        },
    )


def failure(value: JsonValue) -> FailureFacts:
    return FailureFacts(**cast("dict[str, str]", value))


def tls(value: JsonValue) -> TlsSettings:
    return TlsSettings(**cast("dict[str, str]", value))


def attempts(value: JsonValue) -> tuple[AttemptRecord, ...]:
    return tuple(_attempt(plain_object(item)) for item in _items(value))


def progress(value: JsonValue) -> Progress:
    return {
        config: {
            table: TableProgress(**cast("dict[str, int]", counts))
            for table, counts in plain_object(tables).items()
        }
        for config, tables in plain_object(value).items()
    }


def dump_progress(read: Progress) -> str:
    return dumps(
        {
            config: {table: asdict(counts) for table, counts in tables.items()}
            for config, tables in read.items()
        }
    )


def source_notes(value: JsonValue) -> dict[str, SourceNotes]:
    return {
        config: SourceNotes(**cast("dict[str, Any]", members))
        for config, members in plain_object(value).items()
    }


def dump_source_notes(told: Mapping[str, SourceNotes]) -> str:
    return dumps({config: asdict(notes) for config, notes in told.items()})


def dump_facts(facts: FailureFacts | TlsSettings | JobOptions) -> str:
    return dumps(asdict(facts))


def dump_attempts(history: Sequence[AttemptRecord]) -> str:
    return dumps(
        [
            asdict(line) | {"started_at": to_ms(line.started_at), "ended_at": to_ms(line.ended_at)}
            for line in history
        ]
    )


def _attempt(members: JsonObject) -> AttemptRecord:
    return AttemptRecord(
        attempt=cast("int", members["attempt"]),
        owner=str(members["owner"]),
        started_at=from_ms(cast("int", members["started_at"])),
        ended_at=from_ms(cast("int | None", members["ended_at"])),
        code=cast("str | None", members["code"]),
    )


def _items(value: JsonValue) -> Sequence[JsonValue]:
    if not isinstance(value, list):
        raise TypeError("no array")
    return value
