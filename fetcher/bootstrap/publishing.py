"""How events leave the records: our own, and what the reference left in its outbox."""

import structlog

from fetcher.actors.metrics import ActorMetrics
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.told import ToldOnce
from fetcher.commands.publish_events import PublishEvents
from fetcher.commands.publish_reference_events import PublishReferenceEvents
from fetcher.commands.send_event import SendEvent
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.ids import JobId
from fetcher.domain.job_stages import JobStage
from fetcher.settings import Settings

log = structlog.get_logger(__name__)


class Publishing:
    """The use cases that relay and repairer share; counts and tells what becomes of events."""

    def __init__(self, settings: Settings, adapters: Adapters, metrics: ActorMetrics) -> None:
        self._settings = settings
        self._adapters = adapters
        self._metrics = metrics
        self._told = ToldOnce()

    def events(self) -> PublishEvents:
        return PublishEvents(
            outbox=self._adapters.records.events,
            publisher=self._adapters.queue.events,
            signer=MessageSigner(self._adapters.keys.current.external_hmac),
            exchange=self._settings.events_exchange,
            source=self._settings.events_source,
            require_route=self._settings.rabbitmq_events_require_route,
            now=utc_now,
            observe=self._event_published,
            tenant=self._adapters.tenant,
            tracer=self._adapters.tracer,
            took=self._metrics.stages.labels(stage=JobStage.EVENT.value).observe,
        )

    def reference_events(self) -> PublishReferenceEvents | None:
        outbox = self._adapters.records.reference_events
        if outbox is None:
            return None
        sender = SendEvent(
            publisher=self._adapters.queue.events,
            signer=MessageSigner(self._adapters.keys.current.external_hmac),
            require_route=self._settings.rabbitmq_events_require_route,
            now=utc_now,
        )
        return PublishReferenceEvents(
            outbox=outbox,
            sender=sender,
            observe=self._reference_event_published,
            tenant=self._adapters.tenant,
        )

    def _reference_event_published(self, record_id: str, result: str) -> None:
        """As our own, but that one which never goes out is told each time: nobody tries again."""
        self._metrics.publishes.labels(kind="reference_event", result=result).inc()
        if result == "refused":
            log.error("reference_event_invalid", record_id=record_id)
        elif result != "ok" and self._told.may_tell(f"reference {result}"):
            log.warning("reference_events_not_published", code=result, record_id=record_id)

    def _event_published(self, job_id: JobId, result: str) -> None:
        """Counted each time, told once a minute a result: an outage may meet thousands of them."""
        self._metrics.publishes.labels(kind="event", result=result).inc()
        if result != "ok" and self._told.may_tell(result):
            log.warning("events_not_published", code=result, job_id=str(job_id))
