"""Who looks after a process, whatever it works on (design section 2)."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from fetcher.actors.board import ActorBoard
from fetcher.actors.channels import ReplyLost
from fetcher.actors.health import Health
from fetcher.actors.heartbeat import Heartbeat
from fetcher.actors.http import Http
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import HealthQuestion, HealthReport
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.probe_history import ProbeHistory
from fetcher.actors.probes import Probes
from fetcher.actors.supervisor import Supervised
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.api.metrics import HttpMetrics, ReadinessMetrics, process_registry, render, show_redis
from fetcher.api.server import serve_http, tell_listening
from fetcher.api.services import HealthAnswer, ReadinessAnswer, SystemServices
from fetcher.api.system_app import create_system_app
from fetcher.bootstrap.channels import HealthChannels
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.live_metrics import LiveFigures, live_metrics
from fetcher.bootstrap.operations import process_facts
from fetcher.bootstrap.versions import running_version
from fetcher.bootstrap.work_roster import ProcessView
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.queries.tenant_readiness import TenantReadiness
from fetcher.settings import Role, Settings

ANSWER_SECONDS = 5.0
"""Longer than the health actor waits for its probes."""


class ProcessRoster(ABC):
    """Builds the process's actors over channels of its own; who works is a subclass's to say."""

    def __init__(
        self,
        settings: Settings,
        role: Role,
        lifecycle: Lifecycle,
        *,
        probes: Sequence[Probe],
        redis_is_away: Callable[[], bool] | None,
    ) -> None:
        """``redis_is_away`` is None where there is no Redis."""
        self._settings = settings
        self._role = role
        self._lifecycle = lifecycle
        self._probes = tuple(probes)
        self._registry: CollectorRegistry = process_registry()
        self._worker_metrics = (
            WorkerMetrics(
                self._registry,
                places=settings.rabbitmq_numbers_of_workers,
                tenant_label=settings.metrics_tenant_label,
            )
            if role.works
            else None
        )
        self.metrics = self._worker_metrics or ActorMetrics(self._registry)
        self.board = ActorBoard(utc_now)
        self._history = ProbeHistory(utc_now)
        self._readiness_metrics = ReadinessMetrics(self._registry)
        self._http_metrics = HttpMetrics(self._registry)
        self._channels = HealthChannels()
        if redis_is_away is not None:
            show_redis(self._registry, redis_is_away)

    @abstractmethod
    def work(self) -> list[Supervised]:
        """Those who work on jobs."""

    @abstractmethod
    def application(self) -> QuartTrio:
        """The API, for a role that has it."""

    def tenant_readiness(self) -> Callable[[str], Awaitable[TenantReadiness]] | None:
        """None without tenants."""
        return None

    def actors(self) -> list[Supervised]:
        roster = [*self._common(), *self.work()]
        if self._role.manages:
            roster.append(Supervised(self._api()))
        if self._settings.has_health_port(self._role):
            roster.append(Supervised(self._health_port()))
        return roster

    def view(self) -> ProcessView:
        return ProcessView(
            settings=self._settings,
            role=self._role,
            metrics=self.metrics,
            worker_metrics=self._worker_metrics,
            system=self._system(),
            history=self._history,
            facts=process_facts(self._settings, self._role),
        )

    def show(self, figures: LiveFigures) -> None:
        """Among the metrics; once."""
        self._registry.register(
            live_metrics(
                figures,
                version=running_version(self._settings),
                role=self._role,
                lifecycle=self._lifecycle,
            )
        )

    def _common(self) -> list[Supervised]:
        return [
            Supervised(Heartbeat(metrics=self.metrics)),
            Supervised(
                Health(
                    questions=self._channels.questions,
                    probe_orders=self._channels.probe_orders,
                    lifecycle=self._lifecycle,
                    gauge=self._readiness_metrics,
                    optional=self._settings.optional_dependencies,
                    checker_count=len(self._probes),
                    watches=self._role.manages,
                )
            ),
            Supervised(
                Probes(
                    probes=self._probes,
                    orders=self._channels.probe_orders,
                    observe=self._history.observe,
                )
            ),
        ]

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
            tenant_readiness=self.tenant_readiness(),
        )

    def _api(self) -> Http:
        serve = partial(
            serve_http,
            self.application(),
            address=self._settings.listen_address,
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
