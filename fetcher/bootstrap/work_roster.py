"""Who works for one tenant, or for a process without tenants, and what its API is given."""

from dataclasses import dataclass, field

from fetcher.actors.board import ActorBoard
from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import DispatchHint, HeldJob, RelayHint
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.outbox_relay import OutboxRelay
from fetcher.actors.probe_history import ProbeHistory
from fetcher.actors.sampler import Sampler, store_samples
from fetcher.actors.supervisor import Restart, Supervised
from fetcher.actors.topology_declarer import TopologyDeclarer
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.api.services import ApiServices, HttpSettings, SystemServices
from fetcher.api.stream_places import StreamRooms
from fetcher.bootstrap.adapters import Adapters, engine_limits
from fetcher.bootstrap.audit import open_audit
from fetcher.bootstrap.breakers import LoggedBreakers
from fetcher.bootstrap.channels import WorkChannels
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.disks import disk_sample
from fetcher.bootstrap.document import document_facts
from fetcher.bootstrap.operations import operations_services
from fetcher.bootstrap.publishing import Publishing
from fetcher.bootstrap.sweep_times import sweep_times
from fetcher.bootstrap.worker import JobPlaces, WorkerParts, worker_actors
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.send_work import SendWork
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.ports import ProcessFacts
from fetcher.settings import DeploymentMode, Role, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """What those who work for a tenant are told of their process."""

    settings: Settings
    role: Role
    metrics: ActorMetrics
    worker_metrics: WorkerMetrics | None
    """None in a manager."""
    system: SystemServices
    history: ProbeHistory
    facts: ProcessFacts
    stream_rooms: StreamRooms = field(default_factory=StreamRooms)
    """For the streams of all tenants."""


class WorkRoster:
    """Builds the actors over channels of their own; none of them knows another tenant's."""

    def __init__(
        self,
        process: ProcessView,
        adapters: Adapters,
        lifecycle: Lifecycle,
        board: ActorBoard,
        places: JobPlaces,
    ) -> None:
        self._process = process
        self._settings = process.settings
        self._adapters = adapters
        self._lifecycle = lifecycle
        self._board = board
        self._places = places
        self.channels = WorkChannels()
        self._breaker_log = LoggedBreakers()
        self._recover = RecoverConnection(
            breakers=adapters.records.breakers,
            dispatch=adapters.records.dispatch,
            hint=self._hint_dispatch,
            log=self._breaker_log,
        )
        self._publishing = Publishing(process.settings, adapters, process.metrics)
        self._times = sweep_times(process.settings)
        self._sampled = process.metrics.sampled.share()
        self._worker = self._worker_parts()

    def actors(self) -> list[Supervised]:
        roster = [Supervised(self._sampler()), *self._outbox()]
        if self._adapters.queue.declare_topology is not None:
            declarer = TopologyDeclarer(declare=self._adapters.queue.declare_topology)
            roster.append(Supervised(declarer, Restart.TRANSIENT))
        if self._worker is not None:
            roster += worker_actors(self._worker)
        return roster

    def forget_metrics(self) -> None:
        """The tenant has stopped: the process's metrics tell nothing of it any more."""
        self._process.metrics.sampled.forget(self._sampled)
        if self._worker is not None:
            self._worker.metrics.dead_letters.forget(self._worker.dead_letters)
            self._worker.jobs.forget()

    def _worker_parts(self) -> WorkerParts | None:
        metrics = self._process.worker_metrics
        if metrics is None:
            return None
        return WorkerParts(
            settings=self._settings,
            adapters=self._adapters,
            channels=self.channels,
            lifecycle=self._lifecycle,
            metrics=metrics,
            jobs=metrics.jobs_of(self._adapters.tenant),
            dead_letters=metrics.dead_letters.share(),
            times=self._times,
            publishing=self._publishing,
            recover=self._recover,
            breaker_log=self._breaker_log,
            places=self._places,
        )

    def _sampler(self) -> Sampler:
        sampled = self._process.metrics.sampled
        samples = store_samples(self._adapters.records, self._adapters.queue.backlog, self._sampled)
        if self._adapters.disks:
            samples["disks"] = disk_sample(self._adapters.disks, sampled)
        return Sampler(
            samples,
            metrics=sampled,
            sample_seconds=self._times.sample_seconds,
            first_after_seconds=self._times.first_after(self._times.sample_seconds),
        )

    def _outbox(self) -> list[Supervised]:
        queue = self._adapters.queue
        sender = SendWork(
            publisher=queue.work,
            signer=MessageSigner(self._adapters.keys.current.internal_hmac),
            queue=self._settings.work_queue,
            now=utc_now,
            tenant=self._adapters.tenant,
            tracer=self._adapters.tracer,
        )
        dispatcher = Dispatcher(
            outbox=self._adapters.records.dispatch,
            sender=sender,
            backlog=queue.backlog,
            hints=self.channels.dispatch_hints,
            metrics=self._process.metrics,
            sweep_seconds=self._times.dispatch_seconds,
            stale_check_seconds=self._times.stale_check_seconds,
            first_after_seconds=self._times.first_after(self._times.dispatch_seconds),
        )
        relay = OutboxRelay(
            events=self._publishing.events(),
            hints=self.channels.relay_hints,
            lifecycle=self._lifecycle,
        )
        return [Supervised(dispatcher), Supervised(relay)]

    def api_services(self) -> ApiServices:
        settings, adapters = self._settings, self._adapters
        return ApiServices(
            system=self._process.system,
            operations=operations_services(
                adapters,
                self._process.facts,
                history=self._process.history,
                board=self._board,
            ),
            connections=adapters.records.connections,
            internal_sources=adapters.internal_sources,
            jobs=adapters.records.jobs,
            sources=adapters.remembering_engines,
            cipher=adapters.cipher,
            limiter=adapters.shared.limiter,
            forget_schemas=adapters.shared.forget_schemas,
            recover=self._recover,
            hint=self._hint_new_job,
            hint_event=self._hint_relay,
            cleanup=adapters.records.cleanup,
            audit=open_audit(adapters.records.audit, self._process.metrics),
            keys=adapters.keys,
            now=utc_now,
            tenant=adapters.tenant,
            stopping=self._lifecycle.closing,
            ceilings=engine_limits(settings),
            objects=adapters.objects,
            key_prefix=adapters.tenant.object_prefix(settings.object_storage_key_prefix),
            refuses_host=adapters.guard.refuses_as_written if adapters.guard else None,
            authorizer=adapters.authorizer,
            tracer=adapters.tracer,
            settings=http_settings(settings),
            stream_rooms=self._process.stream_rooms,
        )

    def _hint_dispatch(self, job_id: JobId) -> None:
        self.channels.dispatch_hints.offer(DispatchHint(job_id))

    def _hint_new_job(self, job: Job, until: float) -> None:
        self.channels.dispatch_hints.offer(DispatchHint(job.id, HeldJob(job, until)))

    def _hint_relay(self, job_id: JobId) -> None:
        self.channels.relay_hints.offer(RelayHint(job_id))


def http_settings(settings: Settings) -> HttpSettings:
    return HttpSettings(
        console=settings.console_enabled,
        cors_origins=settings.allowed_origins,
        document=document_facts(settings),
        max_page_limit=settings.max_pagination_limit,
        max_date_range_months=settings.max_pagination_month_date_range,
        sqlite_allowed=settings.has_sqlite_sources
        and settings.deployment_mode is not DeploymentMode.SAAS,
        options_enabled=settings.options_enabled,
        preflight_test=settings.job_preflight_test,
        result_redirect=settings.result_redirect,
        result_preview=settings.previews_results,
        jobs_max_pending=settings.jobs_max_pending,
        jobs_max_pending_per_product=settings.jobs_max_pending_per_product,
        keeps_default_schema=settings.datasource_legacy_default_schema,
        max_tenant_requests=settings.multi_tenant_max_requests,
        trusts_sent_trace=settings.otel_trust_inbound_trace_context,
    )
