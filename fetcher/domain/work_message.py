"""The work message from Manager to Worker (spec worker-and-events, sections 2 and 7.3).

It is a hint: the worker takes job, tenant and request id from it, everything else from the record
(design section 4, step 3). The body is complete all the same, for workers of the reference.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from fetcher.domain.ids import JobId, uuid7
from fetcher.domain.jobs import Job
from fetcher.domain.json_text import JsonTextError, dumps, parse
from fetcher.domain.message_bodies import WorkBody
from fetcher.domain.message_envelope import (
    REQUEST_ID_HEADER,
    TENANT_HEADER,
    HeaderValue,
    envelope,
)
from fetcher.domain.timestamps import rfc3339
from fetcher.domain.trace_context import TraceContext, trace_context_in

JOB_ID_HEADER: Final = "jobId"

_UUID_TEXT = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID = re.compile(_UUID_TEXT, re.IGNORECASE | re.ASCII)
_JOB_ID_IN_TEXT = re.compile(rf'"jobId"\s{{0,10}}:\s{{0,10}}"({_UUID_TEXT})"', re.ASCII)


class WorkMessageError(Exception):
    """A work message that names no job. ``code`` is stable, the text fixed."""

    code = "malformed"


class MalformedWorkMessage(WorkMessageError):
    """No JSON object with a usable job id, and no job id anywhere else in the message."""

    def __init__(self) -> None:
        super().__init__("the work message is malformed and names no job")


class JobIdRequired(WorkMessageError):
    """A well-formed message without job id, or with the zero UUID."""

    code = "FET-0051"

    def __init__(self) -> None:
        super().__init__("jobId is required")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkMessage:
    """What a worker takes from a delivery. ``tenant_id`` is None where no tenant was sent."""

    job_id: JobId
    tenant_id: str | None
    request_id: str
    trace: TraceContext | None = None
    """Not covered by the signature: it decides nothing but where the work is told of."""


def encode_work_message(job: Job) -> bytes:
    """The body (spec 2.2): keys sorted, compact, HTML characters escaped."""
    body: WorkBody = {
        "createdAt": rfc3339(job.created_at),
        "jobId": str(job.id),
        "mappedFields": job.mapped_fields,
        "metadata": job.metadata,
    }
    if job.filters:
        body["filters"] = job.filters
    return dumps(body, sort_keys=True, escape_html=True).encode("utf-8")


def work_headers(
    job: Job, *, tenant: str = "", trace: TraceContext | None = None
) -> dict[str, HeaderValue]:
    """The headers without the signature (spec 2.3).

    ``trace`` is told under capitalised names, as the reference writes them.
    """
    own: dict[str, HeaderValue] = {JOB_ID_HEADER: str(job.id)}
    if trace is not None:
        own |= trace.capitalised()
    return envelope(own, request_id=job.request_id or str(uuid7()), tenant=tenant)


def parse_work_message(body: bytes, headers: Mapping[str, object]) -> WorkMessage:
    """Read a delivery whose signature has been judged; raise a WorkMessageError.

    A body that names its job counts whatever else is wrong in it. One that cannot be read, or
    whose id is no UUID, is searched as in spec 7.3 step 5: header ``jobId``, the first JSON value,
    the raw text.
    """
    tenant = headers.get(TENANT_HEADER)
    request_id = headers.get(REQUEST_ID_HEADER)
    return WorkMessage(
        job_id=_job_id(body, headers),
        tenant_id=tenant if isinstance(tenant, str) and tenant else None,
        request_id=request_id if isinstance(request_id, str) and request_id else str(uuid7()),
        trace=trace_context_in(headers),
    )


def _job_id(body: bytes, headers: Mapping[str, object]) -> JobId:
    try:
        document = parse(body)
    except JsonTextError:
        document = None
    if isinstance(document, Mapping):
        named = document.get("jobId")
        if named is None or named == "":
            raise JobIdRequired
        found = _read_uuid(named)
        if found is not None and found.int == 0:
            raise JobIdRequired
        if found is not None:
            return JobId(found)
    for candidate in (headers.get(JOB_ID_HEADER), _first_value_id(body), _id_in_text(body)):
        found = _read_uuid(candidate)
        if found is not None and found.int:
            return JobId(found)
    raise MalformedWorkMessage


def _read_uuid(value: object) -> UUID | None:
    return UUID(value) if isinstance(value, str) and _UUID.fullmatch(value) else None


def _first_value_id(body: bytes) -> object:
    """``jobId`` of the body's first JSON value, whatever follows it."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    try:
        # numbers are never read: their size decides nothing here
        value, _ = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value.get("jobId") if isinstance(value, dict) else None


def _id_in_text(body: bytes) -> str | None:
    match = _JOB_ID_IN_TEXT.search(body.decode("utf-8", "replace"))
    return match[1] if match is not None else None
