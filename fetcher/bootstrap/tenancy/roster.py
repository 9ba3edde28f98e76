"""Who runs in a process with tenants: the ``tenants`` actor, and under it each tenant's own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import get_args

from quart_trio import QuartTrio

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import TenantWanted
from fetcher.actors.sampler import Sampler
from fetcher.actors.supervisor import Supervised
from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.actors.tenancy.parts import TenantTimes
from fetcher.actors.tenancy.tenants import Tenants
from fetcher.api.application import create_app
from fetcher.api.no_tenant import services_of_no_tenant
from fetcher.bootstrap.adapters import engine_limits, watched_disks
from fetcher.bootstrap.disks import disk_sample
from fetcher.bootstrap.live_metrics import LiveFigures
from fetcher.bootstrap.process_roster import ProcessRoster
from fetcher.bootstrap.tenancy.adapters import SharedByTenants
from fetcher.bootstrap.tenancy.gate import OpenTenantGate
from fetcher.bootstrap.tenancy.probes import process_probes, tenant_probes
from fetcher.bootstrap.tenancy.registry import OpenTenants
from fetcher.bootstrap.tenancy.tenant import OpenTenant, open_tenant
from fetcher.bootstrap.work_roster import http_settings
from fetcher.domain.tenants import TenantConfig
from fetcher.ports import Probe, TenantStateName
from fetcher.ports.tenants import TenantEvents
from fetcher.queries.tenant_readiness import LookAtTenant
from fetcher.settings import Role, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSources:
    """How a process hears of its tenants."""

    events: TenantEvents
    probe: Probe
    """Of the Redis that the events come by."""


class TenantsRoster(ProcessRoster):
    def __init__(
        self,
        settings: Settings,
        role: Role,
        shared: SharedByTenants,
        heard: TenantSources,
        lifecycle: Lifecycle,
    ) -> None:
        parts = shared.parts
        super().__init__(
            settings,
            role,
            lifecycle,
            probes=(*process_probes(settings), *parts.probes, heard.probe),
            redis_is_away=parts.shared.is_away,
        )
        self._shared = shared
        self._open = OpenTenants()
        self._wants = Channel[TenantWanted[OpenTenant]]("tenants", capacity=100)
        self._gate = OpenTenantGate(self._wants)
        self._view = self.view()
        self._tenants = Tenants(
            directory=shared.directory,
            open_tenant=self._opened,
            events=heard.events,
            wants=self._wants,
            lifecycle=lifecycle,
            times=TenantTimes(
                reconcile_seconds=settings.multi_tenant_reconcile_interval_sec,
                idle_seconds=settings.multi_tenant_idle_timeout_sec,
                most_open=settings.multi_tenant_max_tenant_pools,
                job_wait_seconds=settings.shutdown_job_wait_sec,
            ),
            metrics=TenantMetrics(self._registry),
            discovers=role.works,
        )
        self.show(
            LiveFigures(
                hints_dropped=self._open.hints_dropped,
                session_use=self._open.session_use,
                store_connections=shared.clients.connection_use,
                spool=parts.spool,
                tenants=self._by_state,
                tenant_manager_left_alone=lambda: shared.directory.is_left_alone,
            )
        )

    def _by_state(self) -> Mapping[str, int]:
        """Those of every state, so that none vanishes from a graph at 0."""
        counted = dict.fromkeys(get_args(TenantStateName), 0)
        for tenant in self._tenants.states():
            counted[tenant.state] += 1
        return counted

    def work(self) -> list[Supervised]:
        return [Supervised(self._tenants), *self._looks_at_disks()]

    def _looks_at_disks(self) -> list[Supervised]:
        """They are the process's: no tenant's sampler asks for them."""
        disks, sampled = watched_disks(None, self._shared.parts.spool), self.metrics.sampled
        if not disks:
            return []
        return [Supervised(Sampler({"disks": disk_sample(disks, sampled)}, metrics=sampled))]

    def tenant_readiness(self) -> LookAtTenant:
        return LookAtTenant(
            directory=self._shared.directory,
            probes=partial(tenant_probes, self._gate),
            is_draining=self._lifecycle.draining.is_set,
        )

    def application(self) -> QuartTrio:
        parts = self._shared.parts
        services = services_of_no_tenant(
            system=self._view.system,
            process=self._view.facts,
            ceilings=engine_limits(self._settings),
            settings=http_settings(self._settings),
            authorizer=parts.authorizer,
            tracer=parts.tracer,
        )
        return create_app(services, tenants=self._gate)

    @asynccontextmanager
    async def _opened(self, config: TenantConfig) -> AsyncIterator[OpenTenant]:
        with self._open.owning_places(config):
            async with open_tenant(self._view, self._shared, config) as tenant:
                with self._open.holding(tenant):
                    yield tenant
