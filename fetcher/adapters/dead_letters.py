"""How a message that must not be tried again is marked (decisions, row DLQ)."""

from collections.abc import Mapping
from typing import Final

from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import OutgoingMessage, RejectReason

DEAD_LETTER_EXCHANGE: Final = "fetcher.dlx"
DEAD_LETTER_KEY: Final = "fetcher.dlq.key"
DEAD_LETTER_QUEUE: Final = "fetcher.dlq"

REASON_HEADER: Final = "x-fetcher-reject-reason"
EXCHANGE_HEADER: Final = "x-fetcher-original-exchange"
ROUTING_KEY_HEADER: Final = "x-fetcher-original-routing-key"


def dead_letter(
    *,
    body: bytes,
    headers: Mapping[str, HeaderValue],
    exchange: str,
    routing_key: str,
    reason: RejectReason,
) -> OutgoingMessage:
    """The message as it came, on the route of dead letters, with its old route and the reason.

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
        },
    )
