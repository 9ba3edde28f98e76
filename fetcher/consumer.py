"""For consumers of events: is this message ours, and what is in the result it names.

Spec worker-and-events 10.2. The steps: :func:`verify_event`, drop what was seen by its ``id``,
fetch ``result.path``, :func:`open_result`. ``GET /v1/fetcher/{id}`` stays the authority on a job's
state. Nothing here waits for anything outside: which broker and store clients are used, and whether
from a thread, is the consumer's own choice.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from fetcher.crypto.keys import DEFAULT_KEY_VERSION, KeySet, decode_master_key
from fetcher.crypto.opener import OpenedResult, ResultDefect, ResultOpener, ResultRejected
from fetcher.crypto.opener import open_result as _open_result
from fetcher.crypto.sealer import Buffer
from fetcher.crypto.signer import MessageVerifier, SignatureOutcome

__all__ = [
    "EventMalformed",
    "EventRejected",
    "JobEvent",
    "OpenedResult",
    "ResultDefect",
    "ResultOpener",
    "ResultReference",
    "ResultRejected",
    "SignatureOutcome",
    "derive_keys",
    "open_result",
    "verify_event",
]

EVENTS_EXCHANGE: Final = "fetcher.job.events"
MAX_BODY_BYTES: Final = 1_048_576

_HEX_DIGITS: Final = frozenset("0123456789abcdef")


class EventRejected(Exception):
    """The message is not one that Fetcher signed for this route; ``outcome`` says why."""

    def __init__(self, outcome: SignatureOutcome, problem: str = "") -> None:
        super().__init__(f"event rejected: {problem or outcome.value.replace('_', ' ')}")
        self.outcome = outcome


class EventMalformed(EventRejected):
    """Signed, but no event that can be read; or its headers say something else than its body."""

    def __init__(self, problem: str) -> None:
        super().__init__(SignatureOutcome.VALID, problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReference:
    """Where a completed job's result lies, and what :func:`open_result` has to find there."""

    path: str
    """The object's key in the bucket."""
    hmac: str
    size_bytes: int
    """Of the document, not of the object."""
    row_count: int
    key_version: str
    """Which master sealed it; empty where the event does not say (events of the reference)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """What a verified event says. Everything but ``source`` and ``time`` is covered by the
    signature, or follows from what is."""

    id: str
    """Deduplicate by it: an event may come more than once, always under the same id."""
    status: str
    """``completed`` or ``failed`` (a cancelled job is told as failed)."""
    job_id: str
    tenant: str
    """``single-tenant`` where there are none."""
    metadata: Mapping[str, Any] = field(repr=False)
    result: ResultReference | None
    """None unless the job has completed."""
    error: Mapping[str, Any] | None
    """Of a failed job: ``message``, and where known ``code``, ``source``, ``stage``, ``reason``."""
    source: str
    """``ce-source``, empty without one. Not signed: good for routing, not for trust."""
    time: str
    """``ce-time``, as ``source``."""


def derive_keys(master: str, *, version: str = DEFAULT_KEY_VERSION) -> KeySet:
    """The keys of one master (``APP_ENC_KEY``): ``external_hmac`` and ``storage`` are needed here.

    Whoever holds the external key can forge events. Raise a MasterKeyError (a ValueError).
    """
    return KeySet.from_master(decode_master_key(master), version=version)


def verify_event(
    headers: Mapping[str, object],
    body: bytes,
    exchange: str = EVENTS_EXCHANGE,
    routing_key: str = "job.completed",
    *,
    key: bytes,
    previous_keys: Sequence[bytes] = (),
    now: float | None = None,
    max_age_seconds: float | None = None,
) -> JobEvent:
    """The event, when ``key`` (the external one) or a previous one signed exactly this.

    ``exchange`` and ``routing_key`` are those under which it was published: after dead-lettering or
    a shovel the delivery's own differ. Header values may be text or bytes. An event may have waited
    in a queue for long, so time decides nothing unless ``now`` (Unix seconds) is given: then one
    from the future is rejected, and one older than ``max_age_seconds`` where that is given too.
    Raise EventRejected, or its kind EventMalformed; nothing of what was sent is in their texts.
    """
    if len(body) > MAX_BODY_BYTES:
        raise EventRejected(SignatureOutcome.FAILED, f"the body is over {MAX_BODY_BYTES} bytes")
    texts = {name: _as_text(value) for name, value in headers.items()}
    outcome = MessageVerifier([key, *previous_keys]).verify(
        texts,
        body,
        exchange=exchange,
        routing_key=routing_key,
        now=now,
        max_age_seconds=max_age_seconds,
    )
    if not outcome.is_valid:
        raise EventRejected(outcome)
    return _read_event(texts, body, routing_key)


def open_result(
    sealed: Buffer | Iterable[Buffer],
    *,
    storage_key: bytes,
    hmac_key: bytes,
    expected_hmac: str,
    expected_size: int,
) -> OpenedResult:
    """Decrypt and verify a stored object, given at once or in chunks, before any of it is read.

    ``expected_hmac`` and ``expected_size`` are the event's ``result.hmac`` and ``sizeBytes``. Raise
    ResultRejected. Blocking; who gets the chunks from an asynchronous client feeds a ResultOpener.
    """
    return _open_result(
        sealed,
        storage_key=storage_key,
        hmac_key=hmac_key,
        expected_hmac=expected_hmac,
        expected_size=expected_size,
    )


def _read_event(headers: Mapping[str, object], body: bytes, routing_key: str) -> JobEvent:
    members = _object(_parsed(body), "the body")
    status, job_id = _text(members, "status"), _text(members, "jobId")
    if status not in ("completed", "failed") or routing_key != f"job.{status}":
        raise EventMalformed("the status is not that of the routing key")
    event_id = f"fetcher.job.{status}.{job_id}"
    # The header is not signed. Taken as it stands, one event could be made to look like many.
    if headers.get("ce-id", event_id) != event_id:
        raise EventMalformed("ce-id is not that of the job and its status")
    metadata = _object(members.get("metadata", {}), "metadata")
    completed = status == "completed"
    return JobEvent(
        id=event_id,
        status=status,
        job_id=job_id,
        tenant=_header(headers, "X-Tenant-ID"),
        metadata=metadata,
        result=_result(_object(members.get("result"), "result")) if completed else None,
        error=None if completed else _object(metadata.get("error", {}), "metadata.error"),
        source=_header(headers, "ce-source"),
        time=_header(headers, "ce-time"),
    )


def _result(members: Mapping[str, Any]) -> ResultReference:
    digest = _text(members, "hmac")
    if len(digest) != 64 or not _HEX_DIGITS.issuperset(digest):
        raise EventMalformed("hmac is no HMAC-SHA256")
    protection = _object(members.get("protection", {}), "protection")
    version = protection.get("keyVersion", "")
    return ResultReference(
        path=_text(members, "path"),
        hmac=digest,
        size_bytes=_count(members, "sizeBytes"),
        row_count=_count(members, "rowCount"),
        key_version=version if isinstance(version, str) else "",
    )


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        # Raised below, without a context that holds the body.
        pass
    raise EventMalformed("the body is not JSON")


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise EventMalformed(f"{name} is no object")
    return cast("dict[str, Any]", value)


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise EventMalformed(f"{name} is no text")
    return value


def _count(members: Mapping[str, Any], name: str) -> int:
    """0 where there is none: the reference leaves zeros out."""
    value = members.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise EventMalformed(f"{name} is no count")
    return value


def _header(headers: Mapping[str, object], name: str) -> str:
    value = headers.get(name)
    return value if isinstance(value, str) else ""


def _as_text(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return value
