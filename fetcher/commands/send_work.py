"""Sign and publish one job's work message."""

from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import Job
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import MessagePublisher, OutgoingMessage, UtcNow

DEFAULT_EXCHANGE = ""


class SendWork:
    """The signature is new at each try: its time is the publish's (spec worker-and-events 2)."""

    def __init__(
        self, *, publisher: MessagePublisher, signer: MessageSigner, queue: str, now: UtcNow
    ) -> None:
        self._publisher = publisher
        self._signer = signer
        self._queue = queue
        self._now = now

    async def send(self, job: Job) -> None:
        """Raise Unroutable or PortUnavailable, as the publisher does."""
        body = encode_work_message(job)
        headers = work_headers(job)
        signed = self._signer.headers(
            tenant="",
            body=body,
            exchange=DEFAULT_EXCHANGE,
            routing_key=self._queue,
            timestamp=int(self._now().timestamp()),
        )
        await self._publisher.publish(
            OutgoingMessage(
                exchange=DEFAULT_EXCHANGE,
                routing_key=self._queue,
                body=body,
                headers={**headers, **signed},
            )
        )
