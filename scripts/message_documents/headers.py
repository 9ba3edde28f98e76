"""The headers of each message: those that the code writes, and what their values are."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from fetcher.crypto.signer import MessageSigner
from fetcher.domain.ids import SINGLE_TENANT, JobId
from fetcher.domain.jobs import EventMark, Job, JobStatus
from fetcher.domain.message_envelope import HeaderValue
from fetcher.domain.terminal_event import event_headers
from fetcher.domain.work_message import work_headers
from scripts.message_documents.schemas import HEX_64, TIME, UUID_TEXT
from scripts.message_documents.types import Schema

_JOB_ID: Final = JobId(UUID("0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"))
_AT: Final = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
_SIGNER: Final = MessageSigner(bytes(32))

_FIXED: Final = frozenset(
    {
        "ce-specversion",
        "ce-type",
        "ce-schemaversion",
        "ce-resourcetype",
        "ce-eventtype",
        "ce-datacontenttype",
        "signature-version",
        "x-retry-count",
    }
)
_OPTIONAL: Final = frozenset({"X-Tenant-ID"})
_DETAILS: Final[Mapping[str, dict[str, Any]]] = {
    "jobId": {"pattern": UUID_TEXT},
    "X-Request-Id": {"description": "Of the HTTP call; of an event, new for each publish."},
    "X-Tenant-ID": {
        "description": f"Signed. `{SINGLE_TENANT}` in events of a deployment without tenants,"
        " whose work messages do not have it."
    },
    "x-message-signature": {
        "pattern": HEX_64,
        "description": "HMAC-SHA256 over t, version, tenant, job id, exchange, routing key and the"
        " body's bytes, each but the last followed by a line feed.",
    },
    "t": {"pattern": r"^\d+$", "description": "Unix seconds of this publish."},
    "ce-id": {"description": "`fetcher.job.<status>.<jobId>`: by which events are deduplicated."},
    "ce-source": {"description": "STREAMING_CLOUDEVENTS_SOURCE."},
    "ce-time": {"pattern": TIME, "description": "Fixed when the job ended."},
    "ce-subject": {"pattern": UUID_TEXT, "description": "The job."},
}


def work_message_headers() -> Schema:
    job = Job(
        id=_JOB_ID,
        status=JobStatus.PENDING,
        created_at=_AT,
        mapped_fields={"db": {"t": ("f",)}},
        request_hash="",
    )
    return _schema({**work_headers(job, tenant="t"), **_signed()})


def terminal_event_headers(status: str) -> Schema:
    mark = EventMark(status=status, payload="{}", time=_AT)
    written = event_headers(_JOB_ID, mark, source="//fetcher", request_id="1")
    return _schema({**written, **_signed()}, optional=frozenset())


def _signed() -> dict[str, str]:
    return _SIGNER.headers(
        tenant="", body=b"{}", exchange="", routing_key="", timestamp=int(_AT.timestamp())
    )


def _schema(written: Mapping[str, HeaderValue], *, optional: frozenset[str] = _OPTIONAL) -> Schema:
    return {
        "type": "object",
        "properties": {name: _header(name, value) for name, value in written.items()},
        "required": [name for name in written if name not in optional],
    }


def _header(name: str, value: HeaderValue) -> Schema:
    schema: Schema = {"type": "integer" if isinstance(value, int) else "string"}
    if name in _FIXED:
        schema["const"] = value.decode() if isinstance(value, bytearray) else value
    schema |= _DETAILS.get(name, {})
    if isinstance(value, bytearray):
        schema["x-amqp-type"] = "byte array (x) of UTF-8; readers take a long string (S) too"
    return schema
