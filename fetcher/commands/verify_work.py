"""Judge one delivery of the work queue (spec worker-and-events 3.3 and 7.3)."""

from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.work_message import WorkMessage, WorkMessageError, parse_work_message
from fetcher.ports import Delivery, RejectReason, UtcNow


class VerifyWork:
    """The message's age never decides: the claim on the record does (decisions)."""

    def __init__(self, *, verifier: MessageVerifier, now: UtcNow) -> None:
        self._verifier = verifier
        self._now = now

    def verify(self, delivery: Delivery) -> WorkMessage | RejectReason:
        """What a genuine message asks for, or why it goes to the dead letters."""
        outcome = self._verifier.verify(
            delivery.headers,
            delivery.body,
            exchange=delivery.exchange,
            routing_key=delivery.routing_key,
            now=self._now().timestamp(),
        )
        if not outcome.is_valid:
            return RejectReason.BAD_SIGNATURE
        try:
            return parse_work_message(delivery.body, delivery.headers)
        except WorkMessageError:
            return RejectReason.MALFORMED
