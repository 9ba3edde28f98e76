"""Publish terminal events that are due (design section 4, step 7)."""

from collections.abc import Callable, Iterator, Sequence

import trio

from fetcher.commands.send_event import SendEvent, UnsignedEvent
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import LeftAlone, PortError
from fetcher.domain.ids import JobId, uuid7
from fetcher.domain.job_store import EventClaim
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.terminal_event import (
    EventRefused,
    event_body,
    event_headers,
    event_routing_key,
)
from fetcher.domain.trace_context import TraceContext
from fetcher.ports import (
    UNTRACED,
    EventOutbox,
    MessagePublisher,
    SpanKind,
    SpanValue,
    Tracer,
    UtcNow,
)

EVENT_LEASE_SECONDS = 30.0
RETRY_BASE_SECONDS = 1.0
RETRY_CAP_SECONDS = 300.0
SIDE_BY_SIDE = 4
"""Of one round. One after another, their round trips would be what bounds a worker's jobs."""


class PublishEvents:
    """A transport failure is tried again for ever, with full jitter up to five minutes.

    ``observe`` hears of each try: ``ok``, ``unroutable``, ``unavailable`` and the like. With
    ``require_route`` off, an event that no queue takes counts as published: ``unrouted``.
    """

    def __init__(
        self,
        *,
        outbox: EventOutbox,
        publisher: MessagePublisher,
        signer: MessageSigner,
        exchange: str,
        source: str,
        require_route: bool,
        now: UtcNow,
        observe: Callable[[JobId, str], None],
        took: Callable[[float], None],
        tenant: Tenant = NO_TENANT,
        tracer: Tracer = UNTRACED,
    ) -> None:
        """``took`` hears how many seconds after its job's end an event was published."""
        self._outbox = outbox
        self._sender = SendEvent(
            publisher=publisher, signer=signer, require_route=require_route, now=now
        )
        self._exchange = exchange
        self._source = source
        self._tenant = tenant.event_id
        self._observe = observe
        self._took = took
        self._now = now
        self._tracer = tracer

    async def publish_due(self, *, limit: int, job_ids: Sequence[JobId] | None = None) -> int:
        """Claim what is due and publish it; how many were claimed, 0 when the store is away."""
        try:
            claims = await self._outbox.claim_due(
                limit=limit, lease_seconds=EVENT_LEASE_SECONDS, job_ids=job_ids
            )
        except PortError:
            return 0
        left = iter(claims)
        async with trio.open_nursery() as nursery:
            for _ in claims[:SIDE_BY_SIDE]:
                nursery.start_soon(self._publish_each, left)
        return len(claims)

    async def _publish_each(self, left: Iterator[EventClaim]) -> None:
        for claim in left:
            await self._publish(claim)

    async def _publish(self, claim: EventClaim) -> None:
        try:
            result = await self._send(claim)
            await self._outbox.mark_published(claim.job_id)
            self._observe(claim.job_id, result)
            self._took(max(0.0, (self._now() - claim.mark.time).total_seconds()))
        except (PortError, EventRefused) as failure:
            code = failure.code if isinstance(failure, PortError) else "refused"
            self._observe(claim.job_id, code)
            await self._postpone(claim, code, _wait_seconds(claim, failure))

    async def _send(self, claim: EventClaim) -> str:
        sent: dict[str, SpanValue] = {
            "messaging.destination.name": self._exchange,
            "fetcher.job.id": str(claim.job_id),
            "fetcher.event.attempts": claim.attempts,
        }
        with self._tracer.span(
            "outbox.dispatcher.dispatch_once",
            kind=SpanKind.PRODUCER,
            parent=claim.trace,
            attributes=sent,
        ) as span:
            return await self._sender.send(self._event(claim, span.context))

    async def _postpone(self, claim: EventClaim, code: str, seconds: float) -> None:
        try:
            await self._outbox.postpone(claim.job_id, retry_in_seconds=seconds, error_code=code)
        except PortError:
            # The claim's own lease runs out: the repairer takes the event again.
            return

    def _event(self, claim: EventClaim, trace: TraceContext | None) -> UnsignedEvent:
        """Raise EventRefused when the event may not be sent as it is."""
        return UnsignedEvent(
            exchange=self._exchange,
            routing_key=event_routing_key(claim.mark),
            tenant=self._tenant,
            body=event_body(claim.mark),
            headers=event_headers(
                claim.job_id,
                claim.mark,
                source=self._source,
                tenant=self._tenant,
                request_id=str(uuid7()),
                trace=trace,
            ),
        )


def _wait_seconds(claim: EventClaim, failure: Exception) -> float:
    """An event that was not even tried waits until it can be, however often that happened: its wait
    would go on for minutes after the broker is back."""
    if isinstance(failure, LeftAlone):
        return failure.seconds + full_jitter(
            0, base_seconds=RETRY_BASE_SECONDS, cap_seconds=RETRY_CAP_SECONDS
        )
    return full_jitter(
        claim.attempts, base_seconds=RETRY_BASE_SECONDS, cap_seconds=RETRY_CAP_SECONDS
    )
