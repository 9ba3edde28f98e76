"""JSON columns: text that keeps every digit, read back as what it was.

A column that cannot be read raises RecordCorrupt with the column's name, never with its content.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, TypeVar, cast

from fetcher.adapters.sqlite.damaged_texts import DamagedText
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
    if isinstance(text, DamagedText):
        raise RecordCorrupt(f"the column {column} holds something else")
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
    return tuple(map(_text, _items(value)))


def options(value: JsonValue) -> JobOptions:
    members = plain_object(value)
    return JobOptions(
        values=_text(members["values"]),
        bigint=_text(members["bigint"]),
        decimals=_text(members["decimals"]),
        limits={
            name: float(number) if isinstance(number, Decimal) else _whole(number)
            for name, number in plain_object(members["limits"]).items()
        },
    )


def failure(value: JsonValue) -> FailureFacts:
    members = plain_object(value)
    return FailureFacts(
        message=_text(members["message"]),
        code=_text(members["code"]),
        source=_optional_text(members.get("source")),
        stage=_optional_text(members.get("stage")),
        reason=_optional_text(members.get("reason")),
    )


def tls(value: JsonValue) -> TlsSettings:
    members = plain_object(value)
    return TlsSettings(
        mode=_text(members["mode"]),
        ca=_text(members.get("ca", "")),
        cert=_text(members.get("cert", "")),
        key=_text(members.get("key", "")),
    )


def attempts(value: JsonValue) -> tuple[AttemptRecord, ...]:
    return tuple(_attempt(plain_object(item)) for item in _items(value))


def progress(value: JsonValue) -> Progress:
    return {
        config: {
            table: _table_progress(plain_object(counts))
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
    ended_at = members["ended_at"]
    return AttemptRecord(
        attempt=_whole(members["attempt"]),
        owner=_text(members["owner"]),
        started_at=from_ms(_whole(members["started_at"])),
        ended_at=from_ms(_whole(ended_at)) if ended_at is not None else None,
        code=_optional_text(members["code"]),
    )


def _table_progress(members: JsonObject) -> TableProgress:
    return TableProgress(rows=_whole(members["rows"]), bytes=_whole(members["bytes"]))


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _optional_text(value: JsonValue) -> str | None:
    return None if value is None else _text(value)


def _whole(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    return value


def _items(value: JsonValue) -> Sequence[JsonValue]:
    if not isinstance(value, list):
        raise TypeError("no array")
    return value
