"""Publish the events that the reference left in its outbox (decisions)."""

from collections.abc import Callable

from fetcher.commands.send_event import SendEvent, UnsignedEvent
from fetcher.crypto.signer import UnsignableMessage
from fetcher.domain.errors import PortError
from fetcher.domain.ids import uuid7
from fetcher.domain.reference_events import (
    EnvelopeUnknown,
    ReferenceEvent,
    ReferenceRecord,
    read_reference_event,
)
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.domain.terminal_event import EventRefused
from fetcher.ports import ReferenceOutbox


class PublishReferenceEvents:
    """Each once, under the ``ce-id`` it had. A failure of transport is tried again for ever; only
    a record that can never be sent becomes invalid: with tenants also one that names another than
    the one whose outbox it lies in.

    ``observe`` hears of each try, by the record's id: ``ok``, ``unrouted``, ``unavailable`` and
    the like, ``unknown_envelope``, ``refused``.
    """

    def __init__(
        self,
        *,
        outbox: ReferenceOutbox,
        sender: SendEvent,
        observe: Callable[[str, str], None],
        tenant: Tenant = NO_TENANT,
    ) -> None:
        self._outbox = outbox
        self._sender = sender
        self._observe = observe
        self._tenant = tenant

    async def publish_due(self, *, limit: int) -> int:
        """Claim what is due and publish it; how many were claimed, 0 when the store is away."""
        try:
            records = await self._outbox.claim_due(limit=limit)
        except PortError:
            return 0
        for record in records:
            try:
                await self._publish(record)
            except PortError:
                # The claim ages: after ten minutes the record is taken again.
                continue
        return len(records)

    async def _publish(self, record: ReferenceRecord) -> None:
        """Raise PortError where the record could not be written."""
        try:
            event = self._event(record)
            result = await self._sender.send(
                UnsignedEvent(
                    exchange=event.exchange,
                    routing_key=event.routing_key,
                    tenant=event.tenant,
                    body=event.body,
                    headers=event.headers,
                )
            )
        except (EventRefused, UnsignableMessage) as refused:
            self._observe(record.record_id, "refused")
            await self._outbox.refuse(record, problem=str(refused))
        except EnvelopeUnknown as unknown:
            self._observe(record.record_id, "unknown_envelope")
            await self._outbox.postpone(record, problem=str(unknown))
        except PortError as failure:
            self._observe(record.record_id, failure.code)
            await self._outbox.postpone(record, problem=failure.code)
        else:
            await self._outbox.mark_published(record)
            self._observe(record.record_id, result)

    def _event(self, record: ReferenceRecord) -> ReferenceEvent:
        event = read_reference_event(record.payload, request_id=str(uuid7()))
        if self._tenant.id and event.tenant != self._tenant.id:
            raise EventRefused("tenant", "is another one than the outbox's")
        return event
