"""Messages that must not be tried again, kept with the reason (decisions, row DLQ)."""

import struct
from collections.abc import Mapping
from typing import Final, cast

from fetcher.adapters.amqp.wire import encode_headers
from fetcher.domain.errors import PortUnavailable, Unroutable
from fetcher.ports import HeaderValue, MessagePublisher, OutgoingMessage, RejectReason

DEAD_LETTER_EXCHANGE: Final = "fetcher.dlx"
DEAD_LETTER_KEY: Final = "fetcher.dlq.key"

REASON_HEADER: Final = "x-fetcher-reject-reason"
EXCHANGE_HEADER: Final = "x-fetcher-original-exchange"
ROUTING_KEY_HEADER: Final = "x-fetcher-original-routing-key"
HEADERS_DROPPED_HEADER: Final = "x-fetcher-original-headers-dropped"

# A table of headers must fit into one frame (RabbitMQ: 131072 bytes) together with ours.
MAX_ORIGINAL_HEADERS_BYTES: Final = 64 * 1024


async def publish_dead_letter(
    publisher: MessagePublisher,
    *,
    body: bytes,
    headers: Mapping[str, object],
    exchange: str,
    routing_key: str,
    reason: RejectReason,
) -> None:
    """Publish a message to the dead letters, as it came, with its route and the reason.

    Raises PortUnavailable where the broker does not take it: it is full, missing or away.
    """
    message = OutgoingMessage(
        exchange=DEAD_LETTER_EXCHANGE,
        routing_key=DEAD_LETTER_KEY,
        body=body,
        headers={
            **_carried(headers),
            REASON_HEADER: reason.value,
            EXCHANGE_HEADER: exchange,
            ROUTING_KEY_HEADER: routing_key,
        },
    )
    try:
        await publisher.publish(message)
        return
    except Unroutable:
        pass
    raise PortUnavailable("the dead letter queue is not bound to its exchange")


def _carried(headers: Mapping[str, object]) -> Mapping[str, HeaderValue]:
    """The original headers, or a mark where a stranger made them so that they cannot be sent."""
    try:
        is_carried = len(encode_headers(headers)) <= MAX_ORIGINAL_HEADERS_BYTES
    except (TypeError, ValueError, OverflowError, RecursionError, struct.error):
        is_carried = False
    if is_carried:
        return cast("Mapping[str, HeaderValue]", headers)
    return {HEADERS_DROPPED_HEADER: "true"}
