"""The ``tenants`` actor: which tenants run in this process (spec configuration 11.5-11.9)."""

from collections.abc import Sequence
from typing import Final, Generic

import trio

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import TenantWanted
from fetcher.actors.tenancy.discovery import TenantDiscovery
from fetcher.actors.tenancy.listener import TenantListener
from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.actors.tenancy.parts import OPEN_AT_ONCE, OpenTenant, TenantParts, TenantTimes
from fetcher.actors.tenancy.room import TenantRoom
from fetcher.actors.tenancy.running import TenantT
from fetcher.actors.tenancy.table import TenantTable
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import TenantState
from fetcher.ports.tenants import TenantDirectory, TenantEvents

LAST_REQUEST_SECONDS: Final = 30.0
"""How long requests may go on at the process's end."""


class Tenants(Generic[TenantT]):
    """Starts and stops tenants. Each has a task of its own here; what fails in one ends in it.

    With ``discovers`` (a process that works) every active tenant runs, and is tried again until it
    does. Without, tenants run that somebody wants, and are closed once they were idle for long.
    """

    name = "tenants"

    def __init__(
        self,
        *,
        directory: TenantDirectory,
        open_tenant: OpenTenant[TenantT],
        events: TenantEvents,
        wants: Channel[TenantWanted[TenantT]],
        lifecycle: Lifecycle,
        times: TenantTimes,
        metrics: TenantMetrics,
        discovers: bool,
    ) -> None:
        self._wants = wants
        self._lifecycle = lifecycle
        self._times = times
        self._discovers = discovers
        parts = TenantParts(
            directory=directory,
            open_tenant=open_tenant,
            times=times,
            metrics=metrics,
            turns=trio.Semaphore(OPEN_AT_ONCE),
            discovers=discovers,
            is_draining=self._is_draining,
        )
        self._table = TenantTable(parts)
        self._room = TenantRoom(self._table.entries, times=times, metrics=metrics)
        self._listener = TenantListener(
            events, self._table, missed=self._look_for_what_was_missed, metrics=metrics
        )
        self._discovery = TenantDiscovery(
            directory, self._table, seconds=times.reconcile_seconds, metrics=metrics
        )

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """End once the process closes and every tenant has ended. Until then requests may open
        tenants; tenants' actors end with the drain where this process works, else with them."""
        async with trio.open_nursery() as answers:
            async with trio.open_nursery() as nursery:
                self._table.run_in(nursery)
                answers.start_soon(self._answer)
                task_status.started()
                await self._watch()
                for entry in self._table.entries.values():
                    entry.stop(request_seconds=LAST_REQUEST_SECONDS)
            answers.cancel_scope.cancel()
        while left := self._wants.receive_waiting(limit=100):
            for wanted in left:
                wanted.reply.set(PortUnavailable("the process ends"))

    def states(self) -> Sequence[TenantState]:
        """How the tenants are that this process knows of, by their ids."""
        entries = self._table.entries
        return [entries[tenant_id].state() for tenant_id in sorted(entries)]

    def _look_for_what_was_missed(self) -> None:
        self._discovery.soon()
        self._table.look_at_all()

    def _is_draining(self) -> bool:
        lifecycle = self._lifecycle
        return (lifecycle.draining if self._discovers else lifecycle.closing).is_set()

    async def _watch(self) -> None:
        """Until the process closes."""
        async with trio.open_nursery() as watchers:
            watchers.start_soon(self._listener.run)
            if self._discovers:
                await self._discover()
                for entry in self._table.entries.values():
                    entry.drain()
            elif self._times.most_open > 0:
                watchers.start_soon(self._room.sweep)
            await self._lifecycle.closing.wait()
            watchers.cancel_scope.cancel()

    async def _discover(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discovery.run)
            await self._lifecycle.draining.wait()
            nursery.cancel_scope.cancel()

    async def _answer(self) -> None:
        async for wanted in self._wants:
            if self._lifecycle.closing.is_set():
                wanted.reply.set(PortUnavailable("the process ends"))
            else:
                if not (self._discovers or self._table.is_open(wanted.tenant_id)):
                    self._room.make()
                self._table.entry(wanted.tenant_id).want(wanted.reply)
