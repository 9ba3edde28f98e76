"""From adapters to actors: who runs in which role (design section 2)."""

import math
import os
import socket
from datetime import UTC, datetime
from functools import partial

import structlog
import trio
from prometheus_client import CollectorRegistry

from fetcher.actors.breaker_count import BreakerCount
from fetcher.actors.channels import Channel, ReplyLost
from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.extractor import Extractor
from fetcher.actors.health import Health
from fetcher.actors.http import Http
from fetcher.actors.intake import Intake
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import (
    DispatchHint,
    ExtractOrder,
    HealthQuestion,
    HealthReport,
    LeaseEnded,
    LeaseStarted,
    ProbeOrder,
    RelayHint,
    StoreAway,
)
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.outbox_relay import OutboxRelay
from fetcher.actors.outbox_repairer import OutboxRepairer
from fetcher.actors.probes import Probes
from fetcher.actors.reaper import Reaper
from fetcher.actors.supervisor import Actor, Restart, Supervised
from fetcher.actors.topology_declarer import TopologyDeclarer
from fetcher.api.application import create_app
from fetcher.api.metrics import HttpMetrics, ReadinessMetrics, process_registry, render, show_redis
from fetcher.api.server import serve_http, tell_listening
from fetcher.api.services import (
    ApiServices,
    HealthAnswer,
    HttpSettings,
    ReadinessAnswer,
    SystemServices,
)
from fetcher.api.system_app import create_system_app
from fetcher.bootstrap.adapters import Adapters, engine_limits
from fetcher.bootstrap.breakers import LoggedBreakers
from fetcher.bootstrap.document import document_facts
from fetcher.commands.job_sources import JobSources
from fetcher.commands.publish_events import PublishEvents
from fetcher.commands.publish_reference_events import PublishReferenceEvents
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.commands.send_event import SendEvent
from fetcher.commands.send_work import SendWork
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.sealer import ResultSealer
from fetcher.crypto.signer import MessageSigner, MessageVerifier
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.ports import ProbeResult, ProbeStatus
from fetcher.settings import DeploymentMode, Role, Settings

log = structlog.get_logger(__name__)

HINTS = 1000
TELL_SECONDS = 60.0
ANSWER_SECONDS = 12.0
"""Longer than the health actor waits for its probes."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class Roster:
    """Builds the role's actors over channels of this process."""

    def __init__(
        self, settings: Settings, role: Role, adapters: Adapters, lifecycle: Lifecycle
    ) -> None:
        self._settings = settings
        self._role = role
        self._adapters = adapters
        self._lifecycle = lifecycle
        self._registry: CollectorRegistry = process_registry()
        self.metrics = ActorMetrics(self._registry)
        self._readiness_metrics = ReadinessMetrics(self._registry)
        self._http_metrics = HttpMetrics(self._registry)
        if adapters.shared.is_away is not None:
            show_redis(self._registry, adapters.shared.is_away)
        self._breaker_log = LoggedBreakers()
        self._recover = RecoverConnection(
            breakers=adapters.records.breakers,
            dispatch=adapters.records.dispatch,
            hint=self._hint_dispatch,
            log=self._breaker_log,
        )
        self._told_at: dict[str, float] = {}
        self._dispatch_hints: Channel[DispatchHint] = Channel("dispatch", capacity=HINTS)
        self._relay_hints: Channel[RelayHint] = Channel("relay", capacity=HINTS)
        self._orders: Channel[ExtractOrder] = Channel("orders", capacity=0)
        self._store_away: Channel[StoreAway] = Channel("store_away", capacity=1)
        self._leases: Channel[LeaseStarted | LeaseEnded] = Channel("leases", capacity=100)
        self._probe_orders: Channel[ProbeOrder] = Channel("probes", capacity=100)
        self._questions: Channel[HealthQuestion] = Channel("health", capacity=100)

    def actors(self) -> list[Supervised]:
        roster = [*self._common(), *self._outbox()]
        if self._adapters.queue.declare_topology is not None:
            declarer = TopologyDeclarer(declare=self._adapters.queue.declare_topology)
            roster.append(Supervised(declarer, Restart.TRANSIENT))
        if self._role.manages:
            roster.append(Supervised(self._api()))
        if self._role.works:
            roster += self._worker()
        if self._has_health_port():
            roster.append(Supervised(self._health_port()))
        return roster

    def _has_health_port(self) -> bool:
        """A worker's own port; with everything embedded only where it was asked for."""
        if self._settings.health_port is not None:
            return self._role.works
        return self._role is Role.WORKER or (
            self._role is Role.ALL and not self._settings.is_embedded
        )

    def _common(self) -> list[Supervised]:
        breakers = self._adapters.records.breakers
        return [
            Supervised(BreakerCount(breakers=breakers, metrics=self.metrics)),
            Supervised(
                Health(
                    questions=self._questions,
                    probe_orders=self._probe_orders,
                    lifecycle=self._lifecycle,
                    gauge=self._readiness_metrics,
                    optional=self._settings.optional_dependencies,
                )
            ),
            Supervised(Probes(probes=self._adapters.probes, orders=self._probe_orders)),
        ]

    def _outbox(self) -> list[Supervised]:
        queue = self._adapters.queue
        sender = SendWork(
            publisher=queue.work,
            signer=MessageSigner(self._adapters.keys.current.internal_hmac),
            queue=self._settings.work_queue,
            now=utc_now,
        )
        dispatcher = Dispatcher(
            outbox=self._adapters.records.dispatch,
            sender=sender,
            backlog=queue.backlog,
            hints=self._dispatch_hints,
            metrics=self.metrics,
            sweep_seconds=self._settings.job_dispatch_sweep_sec,
        )
        relay = OutboxRelay(
            events=self._events(),
            hints=self._relay_hints,
            lifecycle=self._lifecycle,
            metrics=self.metrics,
        )
        return [Supervised(dispatcher), Supervised(relay)]

    def _events(self) -> PublishEvents:
        return PublishEvents(
            outbox=self._adapters.records.events,
            publisher=self._adapters.queue.events,
            signer=MessageSigner(self._adapters.keys.current.external_hmac),
            exchange=self._settings.events_exchange,
            source=self._settings.events_source,
            require_route=self._settings.rabbitmq_events_require_route,
            now=utc_now,
            observe=self._event_published,
        )

    def _reference_events(self) -> PublishReferenceEvents | None:
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
            outbox=outbox, sender=sender, observe=self._reference_event_published
        )

    def _reference_event_published(self, record_id: str, result: str) -> None:
        """As our own, but that one which never goes out is told each time: nobody tries again."""
        self.metrics.publishes.labels(kind="reference_event", result=result).inc()
        if result == "refused":
            log.error("reference_event_invalid", record_id=record_id)
        elif result != "ok" and self._may_tell(f"reference {result}"):
            log.warning("reference_events_not_published", code=result, record_id=record_id)

    def _event_published(self, job_id: JobId, result: str) -> None:
        """Counted each time, told once a minute a result: an outage may meet thousands of them."""
        self.metrics.publishes.labels(kind="event", result=result).inc()
        if result != "ok" and self._may_tell(result):
            log.warning("events_not_published", code=result, job_id=str(job_id))

    def _may_tell(self, what: str) -> bool:
        now = trio.current_time()
        if now - self._told_at.get(what, -math.inf) < TELL_SECONDS:
            return False
        self._told_at[what] = now
        return True

    def _worker(self) -> list[Supervised]:
        settings, adapters = self._settings, self._adapters
        assert adapters.objects is not None  # noqa: S101 - open_adapters gives a worker its store
        breakers = SourceBreakers(
            breakers=adapters.records.breakers,
            recover=self._recover,
            sources=adapters.engines,
            log=self._breaker_log,
        )
        job_run = RunJob(
            JobRunParts(
                sources=JobSources(
                    resolve=ResolveSources(
                        internal=adapters.internal_sources, stored=adapters.records.connections
                    ),
                    breakers=breakers,
                    max_wait_seconds=settings.job_max_wait_sec,
                ),
                breakers=breakers,
                leases=adapters.records.leases,
                engines=adapters.engines,
                objects=adapters.objects,
                cleanup=adapters.records.cleanup,
                new_sealer=self._new_sealer,
                key_version=adapters.keys.version,
                key_prefix=settings.object_storage_key_prefix,
                now=utc_now,
                keeps_default_schema=settings.datasource_legacy_default_schema,
            )
        )

        def outcome_of(job: Job, status: JobStatus) -> TerminalOutcome:
            return job_run.cancelled(job) if status is JobStatus.CANCELLED else job_run.lost(job)

        places = settings.rabbitmq_numbers_of_workers
        owner = f"{socket.gethostname()}:{os.getpid()}"
        intake = Intake(
            consumer=adapters.queue.consumer,
            verifier=VerifyWork(
                verifier=MessageVerifier(
                    [k.internal_hmac for k in adapters.keys],
                    allow_legacy=settings.rabbitmq_allow_legacy_body_signature_fallback,
                ),
                now=utc_now,
                saw_legacy=self._legacy_signature_taken,
            ),
            orders=self._orders,
            leases=adapters.records.leases,
            store_away=self._store_away,
            places=places,
            lifecycle=self._lifecycle,
            metrics=self.metrics,
        )
        keeper = LeaseKeeper(
            leases=adapters.records.leases,
            commands=self._leases,
            times=LeaseTimes(
                lease_seconds=settings.job_lease_sec,
                renew_seconds=settings.job_lease_renew_sec,
                margin_seconds=settings.job_lease_margin_sec,
            ),
        )
        repairer = OutboxRepairer(
            events=self._events(),
            outbox=adapters.records.events,
            metrics=self.metrics,
            reference=self._reference_events(),
            repair_seconds=settings.outbox_repair_sec,
        )
        reaper = Reaper(
            expired=adapters.records.expired,
            cleanup=adapters.records.cleanup,
            objects=adapters.objects,
            outcome_of=outcome_of,
            keys_of=job_run.keys,
            dispatch_hints=self._dispatch_hints,
            relay_hints=self._relay_hints,
            metrics=self.metrics,
            reap_seconds=settings.job_reap_sec,
        )
        extractors = [
            Extractor(
                number=number,
                owner=owner,
                leases=adapters.records.leases,
                lease_seconds=settings.job_lease_sec,
                hold_seconds=settings.rabbitmq_consumer_timeout_sec / 2,
                job_run=job_run,
                orders=self._orders,
                store_away=self._store_away,
                lease_commands=self._leases,
                relay_hints=self._relay_hints,
                lifecycle=self._lifecycle,
                metrics=self.metrics,
            )
            for number in range(1, places + 1)
        ]
        actors: list[Actor] = [intake, keeper, repairer, reaper, *extractors]
        return [Supervised(actor) for actor in actors]

    def _legacy_signature_taken(self) -> None:
        if self._may_tell("legacy signature"):
            log.warning("legacy_body_signature_accepted")

    def _new_sealer(self) -> ResultSealer:
        keys = self._adapters.keys.current
        return ResultSealer(storage_key=keys.storage, hmac_key=keys.external_hmac)

    def _system(self) -> SystemServices:
        settings = self._settings
        return SystemServices(
            health=self._health,
            readiness=self._readiness,
            render_metrics=partial(render, self._registry),
            http_metrics=self._http_metrics,
            readiness_metrics=self._readiness_metrics,
            now=utc_now,
            version=settings.version,
            readiness_version=settings.readyz_version,
            deployment_mode=settings.deployment_mode.value,
            optional_dependencies=frozenset(settings.optional_dependencies),
        )

    def _api(self) -> Http:
        settings, adapters = self._settings, self._adapters
        app = create_app(
            ApiServices(
                system=self._system(),
                connections=adapters.records.connections,
                internal_sources=adapters.internal_sources,
                jobs=adapters.records.jobs,
                sources=adapters.remembering_engines,
                cipher=adapters.cipher,
                limiter=adapters.shared.limiter,
                forget_schemas=adapters.shared.forget_schemas,
                recover=self._recover,
                hint=self._hint_dispatch,
                hint_event=self._hint_relay,
                cleanup=adapters.records.cleanup,
                keys=adapters.keys,
                now=utc_now,
                stopping=self._lifecycle.closing,
                ceilings=engine_limits(settings),
                objects=adapters.objects,
                key_prefix=settings.object_storage_key_prefix,
                refuses_host=adapters.guard.refuses_as_written if adapters.guard else None,
                authorizer=adapters.authorizer,
                settings=HttpSettings(
                    cors_origins=settings.allowed_origins,
                    document=document_facts(settings),
                    max_page_limit=settings.max_pagination_limit,
                    max_date_range_months=settings.max_pagination_month_date_range,
                    sqlite_allowed=settings.deployment_mode is not DeploymentMode.SAAS,
                    options_enabled=settings.options_enabled,
                    preflight_test=settings.job_preflight_test,
                    result_redirect=settings.result_redirect,
                    result_preview=settings.previews_results,
                    jobs_max_pending=settings.jobs_max_pending,
                    jobs_max_pending_per_product=settings.jobs_max_pending_per_product,
                    keeps_default_schema=settings.datasource_legacy_default_schema,
                ),
            )
        )
        serve = partial(
            serve_http,
            app,
            address=settings.listen_address,
            on_listening=partial(tell_listening, "http"),
        )
        return Http(serve=serve, lifecycle=self._lifecycle)

    def _health_port(self) -> Http:
        app = create_system_app(self._system())
        serve = partial(
            serve_http,
            app,
            address=f"0.0.0.0:{self._settings.health_address_port}",
            on_listening=partial(tell_listening, "health_port"),
        )
        return Http(serve=serve, lifecycle=self._lifecycle, name="health_port", until_closing=False)

    def _hint_dispatch(self, job_id: JobId) -> None:
        self._dispatch_hints.offer(DispatchHint(job_id))

    def _hint_relay(self, job_id: JobId) -> None:
        self._relay_hints.offer(RelayHint(job_id))

    async def _health(self) -> HealthAnswer:
        report = await self._ask(probe=False)
        return HealthAnswer(self_probe_passed=report.self_probe_passed)

    async def _readiness(self) -> ReadinessAnswer:
        report = await self._ask(probe=True)
        return ReadinessAnswer(draining=report.draining, checks=report.checks or {})

    async def _ask(self, *, probe: bool) -> HealthReport:
        """What the health actor says; while it says nothing, the process is not well."""
        question = HealthQuestion(probe)
        with trio.move_on_after(ANSWER_SECONDS):
            await self._questions.send(question)
            try:
                return await question.reply.get()
            except ReplyLost:
                pass
        return HealthReport(
            self_probe_passed=False,
            draining=self._lifecycle.draining.is_set(),
            checks={"health": ProbeResult(status=ProbeStatus.DOWN, error="no answer")},
        )
