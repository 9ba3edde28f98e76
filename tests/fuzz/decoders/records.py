"""Records of ours, as their stores give them back, and what Redis remembers."""

from collections.abc import Mapping
from datetime import UTC
from sqlite3 import Row
from typing import Any, Final, cast

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError

from fetcher.adapters.mongo.connection_documents import connection_document, read_connection
from fetcher.adapters.mongo.job_documents import job_document, read_job
from fetcher.adapters.redis.schema_values import NotASchema, schema_from_json, schema_to_json
from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.metadata_filter import metadata_has
from fetcher.api.models.connections import ConnectionAnswer
from fetcher.api.models.job_answers import JobAnswer, JobSummary
from fetcher.domain.connections import Connection, TlsSettings
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.jobs import AttemptRecord, Job, JobStatus, TableProgress
from fetcher_engine import SchemaSnapshot, TableSnapshot
from tests.contract.records.builders import FAILURE, RESULT, a_connection, a_job, now
from tests.fuzz.decoders.decoder import Decoder, text_of

_OPTIONS: Final = CodecOptions[Mapping[str, Any]](
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
"""As the adapter's client decodes."""
_TEXTS: Final = (
    *("mapped_fields", "filters", "metadata", "options", "failure", "attempts", "progress"),
    *("source_notes", "traceparent"),
)
_NUMBERS: Final = ("created_at", "completed_at", "started_at", "attempt", "result_bytes")


def decoders() -> dict[str, Decoder]:
    snapshot = schema_to_json(SchemaSnapshot("db", (TableSnapshot("t", ("a", "b"), (), 7),)))
    job, connection = _full_job(), a_connection(tls=TlsSettings(mode="require", ca="x"))
    # the first is the driver's, which decodes what comes from the server
    refusals = (BSONError, RecordCorrupt)
    return {
        "remembered schema": Decoder(
            seeds=[snapshot or b""],
            decode=schema_from_json,
            refusals=(NotASchema,),
        ),
        "job record": Decoder(
            seeds=[bson.encode(job_document(a_job())), bson.encode(_undotted(job_document(job)))],
            decode=lambda data: _show_job(read_job(bson.decode(data, _OPTIONS))),
            refusals=refusals,
        ),
        "connection record": Decoder(
            seeds=[bson.encode(connection_document(connection))],
            decode=lambda data: _show_connection(read_connection(bson.decode(data, _OPTIONS))),
            refusals=refusals,
        ),
        "job's row": Decoder(
            seeds=[_columns(_job_row(job)), _columns(_job_row(a_job()))],
            decode=lambda data: _show_job(rows.job_of(_changed(_job_row(job), data))),
            refusals=(RecordCorrupt,),
        ),
        "connection's row": Decoder(
            seeds=[_columns(rows.connection_values(connection))],
            decode=lambda data: _show_connection(
                rows.connection_of(_changed(rows.connection_values(connection), data))
            ),
            refusals=(RecordCorrupt,),
        ),
        "metadata that is filtered by": Decoder(
            seeds=[b'{"a":{"b":"c"}}'],
            decode=lambda data: metadata_has(data, '{"a.b":"c"}'),
        ),
    }


def _full_job() -> Job:
    return a_job(
        status=JobStatus.FAILED,
        result=RESULT,
        failure=FAILURE,
        completed_at=now(),
        started_at=now(),
        attempts=(AttemptRecord(attempt=1, owner="w", started_at=now(), ended_at=now()),),
        progress={"sales_db": {"orders": TableProgress(rows=1, bytes=2)}},
    )


def _show_job(job: Job) -> None:
    """What is read and cannot be shown would fail whoever asks for it."""
    JobAnswer.of(job).model_dump_json()
    JobSummary.of(job).model_dump_json()


def _show_connection(connection: Connection) -> None:
    ConnectionAnswer.of(connection).model_dump_json()


def _undotted(document: Mapping[str, object]) -> dict[str, object]:
    """As the server stores it whose update named a path."""
    whole = {name: value for name, value in document.items() if "." not in name}
    metadata = cast("dict[str, object]", whole.get("metadata") or {})
    below = {name.partition(".")[2]: each for name, each in document.items() if "." in name}
    return whole | {"metadata": metadata | below}


def _job_row(job: Job) -> rows.Values:
    pending: rows.Values = {"event_pending": 0}
    return rows.request_values(job) | rows.state_values(job) | pending


def _columns(row: rows.Values) -> bytes:
    """A line for each column that anything may lie in; the table's types hold the others."""
    names = [name for name in (*_TEXTS, *_NUMBERS, "type", "tls") if name in row]
    return b"\n".join(f"{name}={row[name]!s}".encode() for name in names if row[name] is not None)


def _changed(row: rows.Values, data: bytes) -> Row:
    changes: rows.Values = {}
    for line in data.split(b"\n"):
        name, _, text = text_of(line).partition("=")
        if name in _NUMBERS and name in row:
            digits = text.isascii() and text.isdecimal() and len(text) < 19
            changes[name] = int(text) if digits else int.from_bytes(text.encode()[-8:], signed=True)
        elif name in row and isinstance(row[name], str):
            changes[name] = text
    return cast("Row", row | changes)
