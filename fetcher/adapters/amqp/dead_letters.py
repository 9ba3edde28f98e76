"""Publishes rejected messages, whatever their headers hold."""

import struct
from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast

from fetcher.adapters.amqp.wire import encode_headers
from fetcher.adapters.dead_letters import dead_letter
from fetcher.domain.errors import PortUnavailable, Unroutable
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import Delivery, MessagePublisher, RejectReason

HEADERS_DROPPED_HEADER: Final = "x-fetcher-original-headers-dropped"

# A table of headers must fit into one frame (RabbitMQ: 131072 bytes) together with ours.
MAX_ORIGINAL_HEADERS_BYTES: Final = 64 * 1024


async def publish_dead_letter(
    publisher: MessagePublisher, delivery: Delivery, reason: RejectReason, *, rejected_at: datetime
) -> None:
    """Raises PortUnavailable where the broker does not take it: it is full, missing or away."""
    message = dead_letter(
        body=delivery.body,
        headers=_carried(delivery.headers),
        exchange=delivery.exchange,
        routing_key=delivery.routing_key,
        reason=reason,
        rejected_at=rejected_at,
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
