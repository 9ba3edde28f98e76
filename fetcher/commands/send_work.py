"""Sign and publish one job's work message."""

from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import Job
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.trace_context import TraceContext
from fetcher.domain.work_message import encode_work_message, work_headers
from fetcher.ports import UNTRACED, MessagePublisher, OutgoingMessage, SpanKind, Tracer, UtcNow

DEFAULT_EXCHANGE = ""


class SendWork:
    """The signature is new at each try: its time is the publish's (spec worker-and-events 2).

    The tenant's id is sent and signed; where there are no tenants there is no such header.
    """

    def __init__(
        self,
        *,
        publisher: MessagePublisher,
        signer: MessageSigner,
        queue: str,
        now: UtcNow,
        tenant: Tenant = NO_TENANT,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self._publisher = publisher
        self._signer = signer
        self._queue = queue
        self._now = now
        self._tenant = tenant.id
        self._tracer = tracer

    async def send(self, job: Job) -> None:
        """Raise Unroutable or PortUnavailable, as the publisher does."""
        sent = {"messaging.destination.name": self._queue, "fetcher.job.id": str(job.id)}
        with self._tracer.span(
            "adapter.rabbitmq.produce", kind=SpanKind.PRODUCER, parent=job.trace, attributes=sent
        ) as span:
            await self._publish(job, span.context)

    async def _publish(self, job: Job, trace: TraceContext | None) -> None:
        body = encode_work_message(job)
        headers = work_headers(job, tenant=self._tenant, trace=trace)
        signed = self._signer.headers(
            tenant=self._tenant,
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
