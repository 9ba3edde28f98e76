"""What the tests of the ``tenants`` actor share: a Tenant Manager, events and tenants as fakes."""

import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import trio
import trio.testing
from prometheus_client import CollectorRegistry

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import TenantWanted
from fetcher.actors.tenancy.metrics import TenantMetrics
from fetcher.actors.tenancy.parts import TenantTimes
from fetcher.actors.tenancy.tenants import Tenants
from fetcher.actors.tenancy.uses import TenantUses
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenant_events import TenantEvent
from fetcher.domain.tenants import (
    BrokerPlace,
    MongoPlace,
    SourcePlace,
    TenantConfig,
    TenantError,
    TenantNotConfigured,
    TenantsUnavailable,
    TenantUnknown,
)

REMEMBERED_SECONDS = 120.0


def a_config(tenant_id: str, *, version: str = "1") -> TenantConfig:
    return TenantConfig(
        tenant_id=tenant_id,
        database=MongoPlace(database=f"fetcher_{tenant_id}", host="mongo.int", port=27017),
        broker=BrokerPlace(
            host="mq.int", port=5672, vhost=f"tenant_{tenant_id}", user="w", password=f"p{version}"
        ),
    )


def an_event(kind: str, tenant_id: str = "acme", service: str | None = "fetcher") -> TenantEvent:
    return TenantEvent(id="e-1", type=kind, tenant_id=tenant_id, service=service)


class FakeDirectory:
    """Implements TenantDirectory. It remembers as the real one does."""

    def __init__(self) -> None:
        self.known: dict[str, TenantConfig | Exception] = {}
        self.listed: list[str] = []
        self.is_away = False
        self.answer_seconds = 0.1
        self.asked: list[str] = []
        """Of whom it was really asked, in order."""
        self.lists = 0
        self.is_left_alone = False
        self._remembered: dict[str, tuple[TenantConfig, float]] = {}

    def add(self, *tenant_ids: str) -> None:
        for tenant_id in tenant_ids:
            self.known[tenant_id] = a_config(tenant_id)
            self.listed.append(tenant_id)

    async def active(self, *, within_seconds: float) -> Sequence[str]:
        self.lists += 1
        await trio.sleep(self.answer_seconds)
        if self.is_away:
            raise TenantsUnavailable("tenant manager returned status 502")
        return list(self.listed)

    async def config(self, tenant_id: str, *, fresh: bool = False) -> TenantConfig:
        await trio.lowlevel.checkpoint()
        if not fresh and self.remembers(tenant_id):
            return self._remembered[tenant_id][0]
        self.asked.append(tenant_id)
        await trio.sleep(self.answer_seconds)
        if self.is_away:
            raise TenantsUnavailable("tenant manager returned status 502")
        known = self.known.get(tenant_id, TenantUnknown(tenant_id))
        if isinstance(known, Exception):
            raise known
        self._remembered[tenant_id] = (known, trio.current_time())
        return known

    async def source(self, tenant_id: str, service: str, module: str) -> SourcePlace:
        await trio.lowlevel.checkpoint()
        raise TenantNotConfigured(module)

    def forget(self, tenant_id: str) -> None:
        self._remembered.pop(tenant_id, None)

    def remembers(self, tenant_id: str) -> bool:
        _, at = self._remembered.get(tenant_id, (None, -math.inf))
        return trio.current_time() - at < REMEMBERED_SECONDS


class FakeEvents:
    """Implements TenantEvents; an error among the events is a lost connection."""

    def __init__(self) -> None:
        self.listens = 0
        self.refusals = 0
        self._send, self._receive = trio.open_memory_channel[TenantEvent | Exception](1000)

    def tell(self, *items: TenantEvent | Exception) -> None:
        for item in items:
            self._send.send_nowait(item)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[AsyncIterator[TenantEvent]]:
        self.listens += 1
        await trio.sleep(0.01)
        if self.refusals > 0:
            self.refusals -= 1
            raise PortUnavailable("redis cannot be reached")
        yield self._events()

    async def _events(self) -> AsyncGenerator[TenantEvent, None]:
        while True:
            item = await self._receive.receive()
            if isinstance(item, Exception):
                raise item
            yield item


class FakeTenant:
    """Implements RunningTenant. Its run ends with its lifecycle, after the jobs it has by then."""

    def __init__(self, config: TenantConfig, world: "FakeWorld") -> None:
        self.config = config
        self.lifecycle = Lifecycle()
        self.uses = TenantUses()
        self.cut = trio.Event()
        self.crash: Exception | None = None
        self._crashed = trio.Event()
        self._world = world

    @property
    def id(self) -> str:
        return self.config.tenant_id

    def fail(self, crash: Exception) -> None:
        self.crash = crash
        self._crashed.set()

    async def run(self) -> None:
        counted = self._world.counted(self._world.running, self.id)
        async with counted, trio.open_nursery() as nursery:
            nursery.start_soon(self._crash_when_told)
            await self.lifecycle.draining.wait()
            await trio.sleep(self._world.job_seconds)
            nursery.cancel_scope.cancel()

    async def _crash_when_told(self) -> None:
        await self._crashed.wait()
        assert self.crash is not None
        raise self.crash


@dataclass
class FakeWorld:
    """Opens tenants, and says when one runs twice or was left open."""

    open_seconds: float = 0.2
    job_seconds: float = 0.0
    broken: dict[str, Exception] = field(default_factory=dict)
    """What becomes of opening a tenant."""
    never_open: set[str] = field(default_factory=set)
    opened: list[FakeTenant] = field(default_factory=list)
    open_now: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    ran_twice: list[str] = field(default_factory=list)
    most_opening: int = 0
    _opening: int = 0

    @asynccontextmanager
    async def open_tenant(self, config: TenantConfig) -> AsyncIterator[FakeTenant]:
        self._opening += 1
        self.most_opening = max(self.most_opening, self._opening)
        try:
            if config.tenant_id in self.never_open:
                await trio.sleep_forever()
            await trio.sleep(self.open_seconds)
            if config.tenant_id in self.broken:
                raise self.broken[config.tenant_id]
        finally:
            self._opening -= 1
        # A nursery, as real ones have.
        async with self.counted(self.open_now, config.tenant_id), trio.open_nursery() as nursery:
            tenant = FakeTenant(config, self)
            self.opened.append(tenant)
            yield tenant
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def counted(self, counter: Counter[str], tenant_id: str) -> AsyncIterator[None]:
        counter[tenant_id] += 1
        try:
            if counter is self.running and counter[tenant_id] > 1:
                self.ran_twice.append(tenant_id)
            yield
        finally:
            counter[tenant_id] -= 1

    @property
    def runs(self) -> list[str]:
        return sorted(self.running.elements())

    def last(self, tenant_id: str) -> FakeTenant:
        return next(each for each in reversed(self.opened) if each.id == tenant_id)

    def opened_count(self, tenant_id: str) -> int:
        return sum(each.id == tenant_id for each in self.opened)


@dataclass
class TenantBench:
    times: TenantTimes = field(default_factory=TenantTimes)
    directory: FakeDirectory = field(default_factory=FakeDirectory)
    events: FakeEvents = field(default_factory=FakeEvents)
    world: FakeWorld = field(default_factory=FakeWorld)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    wants: Channel[TenantWanted[FakeTenant]] = field(
        default_factory=lambda: Channel("tenants", capacity=100)
    )

    def limited(self, **times: float) -> "TenantBench":
        self.times = replace(self.times, **times)  # type: ignore[arg-type] # a test's builder
        return self

    def actor(self, *, discovers: bool) -> Tenants[FakeTenant]:
        return Tenants(
            directory=self.directory,
            open_tenant=self.world.open_tenant,
            events=self.events,
            wants=self.wants,
            lifecycle=self.lifecycle,
            times=self.times,
            metrics=TenantMetrics(self.registry),
            discovers=discovers,
        )

    @asynccontextmanager
    async def running(self, *, discovers: bool) -> AsyncIterator[Tenants[FakeTenant]]:
        """The actor; after the body the process drains, and nothing may be left."""
        actor = self.actor(discovers=discovers)
        async with trio.open_nursery() as nursery:
            await nursery.start(self._run, actor)
            yield actor
            self.lifecycle.drain()
            self.lifecycle.closing.set()
        assert not +self.world.open_now
        assert not +self.world.running
        assert self.world.ran_twice == []
        assert actor.states() == []
        assert self.counted("fetcher_tenants_active") == 0

    async def _run(
        self,
        actor: Tenants[FakeTenant],
        *,
        task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED,
    ) -> None:
        await actor.run(task_status=task_status)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Look twice a second, for five minutes."""
        with trio.fail_after(300):
            while not condition():  # noqa: ASYNC110 - the fakes tell nobody
                await trio.sleep(0.5)

    async def remove(self, tenant_id: str) -> None:
        await self.tell("tenant.service.suspended", tenant_id)

    async def look(self, tenant_id: str) -> None:
        await self.tell("tenant.updated", tenant_id)

    async def tell(self, kind: str, tenant_id: str) -> None:
        """Return once the event was heard."""
        self.events.tell(an_event(kind, tenant_id))
        await trio.testing.wait_all_tasks_blocked()

    async def ask(self, tenant_id: str = "acme") -> FakeTenant | TenantError | PortUnavailable:
        wanted = TenantWanted[FakeTenant](tenant_id=tenant_id)
        await self.wants.send(wanted)
        return await wanted.reply.get()

    async def open(self, tenant_id: str = "acme") -> FakeTenant:
        answer = await self.ask(tenant_id)
        assert isinstance(answer, FakeTenant)
        return answer

    def counted(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)
