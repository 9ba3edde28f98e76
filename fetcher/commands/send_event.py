"""Sign and publish one event's message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fetcher.crypto.signer import MessageSigner
from fetcher.domain.errors import Unroutable
from fetcher.domain.message_envelope import HeaderValue
from fetcher.ports import MessagePublisher, OutgoingMessage, UtcNow

ROUTED: Final = "ok"
UNROUTED: Final = "unrouted"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedEvent:
    exchange: str
    routing_key: str
    tenant: str
    body: bytes = field(repr=False)
    headers: Mapping[str, HeaderValue] = field(repr=False)


class SendEvent:
    """The signature is new at each try: its time is the publish's (spec worker-and-events 8.2)."""

    def __init__(
        self,
        *,
        publisher: MessagePublisher,
        signer: MessageSigner,
        require_route: bool,
        now: UtcNow,
    ) -> None:
        self._publisher = publisher
        self._signer = signer
        self._require_route = require_route
        self._now = now

    async def send(self, event: UnsignedEvent) -> str:
        """``ok``, or ``unrouted`` for an event that no queue took where that is allowed.

        Raise Unroutable where it is not, PortUnavailable as the publisher does.
        """
        signed = self._signer.headers(
            tenant=event.tenant,
            body=event.body,
            exchange=event.exchange,
            routing_key=event.routing_key,
            timestamp=int(self._now().timestamp()),
        )
        try:
            await self._publisher.publish(
                OutgoingMessage(
                    exchange=event.exchange,
                    routing_key=event.routing_key,
                    body=event.body,
                    headers={**event.headers, **signed},
                )
            )
        except Unroutable:
            if self._require_route:
                raise
            return UNROUTED
        return ROUTED
