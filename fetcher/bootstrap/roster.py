"""From adapters to actors: who runs in which role (design section 2)."""

from functools import partial

import trio
from prometheus_client import CollectorRegistry

from fetcher.actors.breaker_count import BreakerCount
from fetcher.actors.channels import ReplyLost
from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.health import Health
from fetcher.actors.http import Http
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import DispatchHint, HealthQuestion, HealthReport, RelayHint
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.outbox_relay import OutboxRelay
from fetcher.actors.probes import Probes
from fetcher.actors.supervisor import Restart, Supervised
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
from fetcher.bootstrap.channels import Channels
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.document import document_facts
from fetcher.bootstrap.publishing import Publishing
from fetcher.bootstrap.worker import WorkerParts, worker_actors
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.send_work import SendWork
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.ids import JobId
from fetcher.ports import ProbeResult, ProbeStatus
from fetcher.settings import DeploymentMode, Role, Settings

ANSWER_SECONDS = 12.0
"""Longer than the health actor waits for its probes."""


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
        self._channels = Channels()
        if adapters.shared.is_away is not None:
            show_redis(self._registry, adapters.shared.is_away)
        self._breaker_log = LoggedBreakers()
        self._recover = RecoverConnection(
            breakers=adapters.records.breakers,
            dispatch=adapters.records.dispatch,
            hint=self._hint_dispatch,
            log=self._breaker_log,
        )
        self._publishing = Publishing(settings, adapters, self.metrics)

    def actors(self) -> list[Supervised]:
        roster = [*self._common(), *self._outbox()]
        if self._adapters.queue.declare_topology is not None:
            declarer = TopologyDeclarer(declare=self._adapters.queue.declare_topology)
            roster.append(Supervised(declarer, Restart.TRANSIENT))
        if self._role.manages:
            roster.append(Supervised(self._api()))
        if self._role.works:
            roster += worker_actors(
                WorkerParts(
                    settings=self._settings,
                    adapters=self._adapters,
                    channels=self._channels,
                    lifecycle=self._lifecycle,
                    metrics=self.metrics,
                    publishing=self._publishing,
                    recover=self._recover,
                    breaker_log=self._breaker_log,
                )
            )
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
                    questions=self._channels.questions,
                    probe_orders=self._channels.probe_orders,
                    lifecycle=self._lifecycle,
                    gauge=self._readiness_metrics,
                    optional=self._settings.optional_dependencies,
                )
            ),
            Supervised(Probes(probes=self._adapters.probes, orders=self._channels.probe_orders)),
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
            hints=self._channels.dispatch_hints,
            metrics=self.metrics,
            sweep_seconds=self._settings.job_dispatch_sweep_sec,
        )
        relay = OutboxRelay(
            events=self._publishing.events(),
            hints=self._channels.relay_hints,
            lifecycle=self._lifecycle,
            metrics=self.metrics,
        )
        return [Supervised(dispatcher), Supervised(relay)]

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
        self._channels.dispatch_hints.offer(DispatchHint(job_id))

    def _hint_relay(self, job_id: JobId) -> None:
        self._channels.relay_hints.offer(RelayHint(job_id))

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
            await self._channels.questions.send(question)
            try:
                return await question.reply.get()
            except ReplyLost:
                pass
        return HealthReport(
            self_probe_passed=False,
            draining=self._lifecycle.draining.is_set(),
            checks={"health": ProbeResult(status=ProbeStatus.DOWN, error="no answer")},
        )
