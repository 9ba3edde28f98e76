"""A tenant as this process has it: its own ports, its own actors, its own handlers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property

import structlog
import trio

from fetcher.actors.board import ActorBoard
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.supervisor import ShutdownTimes, Supervisor
from fetcher.actors.tenancy.uses import TenantUses
from fetcher.api.application import tenant_handlers
from fetcher.api.routing import Handler
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.tenancy.adapters import SharedByTenants, open_tenant_adapters
from fetcher.bootstrap.work_roster import ProcessView, WorkRoster
from fetcher.bootstrap.worker import JobPlaces, tenant_places
from fetcher.domain.tenants import TenantConfig
from fetcher.ports import Probe


class OpenTenant:
    """Implements :class:`fetcher.actors.tenancy.running.RunningTenant`."""

    def __init__(self, process: ProcessView, adapters: Adapters, places: JobPlaces) -> None:
        self.tenant_id = adapters.tenant.id
        self.lifecycle = Lifecycle()
        self.uses = TenantUses()
        self.cut = trio.Event()
        self._process = process
        self._adapters = adapters
        self._board = ActorBoard(utc_now)
        self._roster = WorkRoster(process, adapters, self.lifecycle, self._board, places)

    def probe(self, name: str) -> Probe:
        """By its entry in readiness. Raise KeyError."""
        return {probe.name: probe for probe in self._adapters.probes}[name]

    @property
    def hints_dropped(self) -> Mapping[str, int]:
        return self._roster.channels.hints_dropped

    @property
    def session_use(self) -> tuple[int, int]:
        """Sessions to sources: in use, and idle."""
        return self._adapters.session_use()

    @cached_property
    def handlers(self) -> Mapping[str, Handler]:
        """Made for the first request: a worker has none."""
        return tenant_handlers(self._roster.api_services())

    def forget_metrics(self) -> None:
        self._roster.forget_metrics()

    async def run(self) -> None:
        """As the protocol says; why it ended too early is in its lifecycle."""
        job_wait_seconds = self._process.settings.shutdown_job_wait_sec
        with structlog.contextvars.bound_contextvars(tenant_id=self.tenant_id):
            supervisor = Supervisor(
                self._roster.actors(),
                lifecycle=self.lifecycle,
                times=ShutdownTimes(drain_seconds=0.0, job_wait_seconds=job_wait_seconds),
                metrics=self._process.metrics,
                board=self._board,
            )
            await supervisor.run()


@asynccontextmanager
async def open_tenant(
    process: ProcessView, shared: SharedByTenants, config: TenantConfig
) -> AsyncIterator[OpenTenant]:
    """Raise TenantError for places that cannot work. A place that is away stops nothing: its
    adapter connects when it is used."""
    async with open_tenant_adapters(shared, config) as adapters:
        tenant = OpenTenant(process, adapters, tenant_places(shared.places, config.tenant_id))
        try:
            yield tenant
        finally:
            tenant.forget_metrics()
