"""How a message that must not be tried again is marked (decisions, row DLQ)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.message_envelope import HeaderValue
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import OutgoingMessage, RejectReason

DEAD_LETTER_EXCHANGE: Final = "fetcher.dlx"
DEAD_LETTER_KEY: Final = "fetcher.dlq.key"
DEAD_LETTER_QUEUE: Final = "fetcher.dlq"

REASON_HEADER: Final = "x-fetcher-reject-reason"
EXCHANGE_HEADER: Final = "x-fetcher-original-exchange"
ROUTING_KEY_HEADER: Final = "x-fetcher-original-routing-key"
REJECTED_AT_HEADER: Final = "x-fetcher-rejected-at"


def dead_letter(
    *,
    body: bytes,
    headers: Mapping[str, HeaderValue],
    exchange: str,
    routing_key: str,
    reason: RejectReason,
    rejected_at: datetime,
) -> OutgoingMessage:
    """The message as it came, on the route of dead letters, with its old route, reason and time.

    The original signature stays among the headers, and with the old route it can still be verified.
    """
    return OutgoingMessage(
        exchange=DEAD_LETTER_EXCHANGE,
        routing_key=DEAD_LETTER_KEY,
        body=body,
        headers={
            **headers,
            REASON_HEADER: reason.value,
            EXCHANGE_HEADER: exchange,
            ROUTING_KEY_HEADER: routing_key,
            REJECTED_AT_HEADER: rfc3339(rejected_at),
        },
    )


def read_dead_letter(*, tag: int, body: bytes, headers: Mapping[str, object]) -> DeadLetter:
    """One that we published, or that the broker dead-lettered by itself (``x-death``).

    Where neither left its marks, or a stranger made them, reason and route are empty.
    """
    exchange, routing_key, reason = (
        headers.get(name) for name in (EXCHANGE_HEADER, ROUTING_KEY_HEADER, REASON_HEADER)
    )
    if reason is None:
        exchange, routing_key, reason = _first_death(headers.get("x-death"))
    return DeadLetter(
        tag=tag,
        body=body,
        headers=headers,
        exchange=_text(exchange),
        routing_key=_text(routing_key),
        reason=_text(reason),
    )


def dead_since(headers: Mapping[str, object]) -> datetime | None:
    """When it came to the dead letters, by our own mark or else by the broker's latest."""
    if headers.get(REASON_HEADER) is not None:
        return _time(headers.get(REJECTED_AT_HEADER))
    deaths = headers.get("x-death")
    latest = deaths[0] if isinstance(deaths, Sequence) and deaths else None
    return _time(latest.get("time")) if isinstance(latest, Mapping) else None


def _time(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    try:
        return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)
    except OverflowError:  # in UTC it is in no year from 1 to 9999
        return None


def _first_death(deaths: object) -> tuple[object, object, object]:
    """The oldest entry is the last: it has the route that was signed."""
    oldest = deaths[-1] if isinstance(deaths, Sequence) and deaths else None
    if not isinstance(oldest, Mapping):
        return None, None, None
    keys = oldest.get("routing-keys")
    first_key = keys[0] if isinstance(keys, Sequence) and keys else None
    return oldest.get("exchange"), first_key, oldest.get("reason")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
