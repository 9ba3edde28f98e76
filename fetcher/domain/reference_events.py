"""Events that the reference recorded in its own outbox and has not published (decisions, "The
reference's outbox"; spec worker-and-events 8.7).

Its record holds an envelope with the whole event and where it goes: both stay as they were decided
then. What is made anew is what every publish makes anew, request id and signature.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fetcher.domain.json_text import JsonTextError, dumps, parse
from fetcher.domain.json_values import JsonValue
from fetcher.domain.message_envelope import HeaderValue
from fetcher.domain.terminal_event import (
    COMPLETED,
    FAILED,
    EventRefused,
    checked_body,
    cloud_event_headers,
)
from fetcher.domain.timestamps import rfc3339

ENVELOPE_VERSION: Final = 1
TRANSPORT: Final = "rabbitmq"
MAX_NAME_BYTES: Final = 255
"""Of an exchange: an AMQP short string."""


class EnvelopeUnknown(ValueError):
    """An envelope of a version or for a target that we do not know: another process may."""

    def __init__(self, field: str) -> None:
        super().__init__(f"unknown {field}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRecord:
    """The right to publish one record of the reference for ten minutes."""

    key: object
    """The store's own, for the store alone."""
    token: str
    record_id: str
    payload: str = field(repr=False)
    """The envelope as it was read, empty where the record holds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEvent:
    exchange: str
    routing_key: str
    tenant: str
    body: bytes = field(repr=False)
    headers: dict[str, HeaderValue] = field(repr=False)
    """Without the signature."""


def read_reference_event(payload: str, *, request_id: str) -> ReferenceEvent:
    """The event in an envelope. Raise EnvelopeUnknown, or EventRefused where it can never be sent.

    The body has the envelope's members and digits; its bytes need not be the reference's, since
    the signature is made for what is sent.
    """
    envelope = _Members("envelope", _parsed(payload))
    if envelope.value("version") != ENVELOPE_VERSION:
        raise EnvelopeUnknown("version")
    if envelope.value("transport") != TRANSPORT:
        raise EnvelopeUnknown("transport")
    destination, event = envelope.members("destination"), envelope.members("event")
    status, routing_key = event.text("EventType"), destination.text("address")
    if status not in (COMPLETED, FAILED) or routing_key != f"job.{status}":
        raise EnvelopeUnknown("event type")
    exchange = destination.text("name")
    if not 0 < len(exchange.encode("utf-8", "replace")) <= MAX_NAME_BYTES:
        raise EventRefused("exchange", "is no name of an exchange")
    body = event.members("Payload").written()
    tenant = event.text("TenantID")
    return ReferenceEvent(
        exchange=exchange,
        routing_key=routing_key,
        tenant=tenant,
        body=checked_body(body),
        headers=cloud_event_headers(
            event_id=event.text("EventID"),
            status=status,
            time=_event_time(event.text("Timestamp")),
            source=event.text("Source"),
            subject=event.text("Subject"),
            tenant=tenant,
            request_id=request_id,
        ),
    )


def _parsed(payload: str) -> JsonValue:
    try:
        return parse(payload.encode("utf-8", "replace"))
    except JsonTextError:
        # Raised below, without a context that holds the record's text.
        pass
    raise EventRefused("envelope", "is not JSON")


def _event_time(text: str) -> str:
    """As it stands where it is in UTC already: it may have nanoseconds, which we have not."""
    try:
        moment = datetime.fromisoformat(text)
        in_utc = rfc3339(moment)
    except (ValueError, OverflowError):
        raise EventRefused("time", "is no time with a zone") from None
    return text if text.endswith("Z") else in_utc


class _Members:
    """The members of one JSON object; what is wrong with one is told by its name alone."""

    def __init__(self, name: str, value: JsonValue) -> None:
        if not isinstance(value, dict):
            raise EventRefused(name, "is no object")
        self._value = value

    def value(self, name: str) -> JsonValue:
        return self._value.get(name)

    def text(self, name: str) -> str:
        value = self._value.get(name)
        if not isinstance(value, str):
            raise EventRefused(name, "is no text")
        return value

    def members(self, name: str) -> "_Members":
        return _Members(name, self._value.get(name))

    def written(self) -> str:
        return dumps(self._value, escape_html=True)
