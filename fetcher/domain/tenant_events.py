"""What is told of tenants while we run (spec configuration 11.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.json_values import JsonValue

MAX_EVENT_BYTES: Final = 64 * 1024
MAX_EVENT_DEPTH: Final = 16


class TenantEventType(StrEnum):
    CREATED = "tenant.created"
    ACTIVATED = "tenant.activated"
    UPDATED = "tenant.updated"
    SUSPENDED = "tenant.suspended"
    DELETED = "tenant.deleted"
    ASSOCIATED = "tenant.service.associated"
    DISASSOCIATED = "tenant.service.disassociated"
    SERVICE_SUSPENDED = "tenant.service.suspended"
    PURGED = "tenant.service.purged"
    REACTIVATED = "tenant.service.reactivated"
    CREDENTIALS_ROTATED = "tenant.credentials.rotated"
    CONNECTIONS_UPDATED = "tenant.connections.updated"
    CACHE_INVALIDATE = "tenant.cache.invalidate"


class TenantEventInvalid(ValueError):
    """It is no event; says which part, never its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantEvent:
    """``type`` is what was sent, known or not; ``service`` what the payload names, None where there
    is no payload or it names none."""

    id: str
    type: str
    tenant_id: str
    service: str | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)


def tenant_event(data: bytes) -> TenantEvent:
    """Raise TenantEventInvalid for what is no event, or names no type, id or tenant."""
    if not data.strip():
        raise TenantEventInvalid("it is empty")
    if len(data) > MAX_EVENT_BYTES:
        raise TenantEventInvalid("it is too large")
    envelope: JsonValue = None
    try:
        envelope = parse(data, max_depth=MAX_EVENT_DEPTH)
    except JsonTextError:
        envelope = None
    if not isinstance(envelope, Mapping):
        raise TenantEventInvalid("it is no JSON object")
    payload = envelope.get("payload")
    members = payload if isinstance(payload, Mapping) else {}
    service = members.get("service_name")
    return TenantEvent(
        id=_text(envelope, "event_id"),
        type=_text(envelope, "event_type"),
        tenant_id=_text(envelope, "tenant_id"),
        service=service if isinstance(service, str) else None,
        payload=members,
    )


def _text(envelope: Mapping[str, JsonValue], name: str) -> str:
    value = envelope.get(name)
    if not isinstance(value, str) or not value.strip():
        raise TenantEventInvalid(f"it has no {name}")
    return value
