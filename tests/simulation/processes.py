"""One process as bootstrap builds it: the real actors and commands, over links that may fail."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import cast

import trio
from prometheus_client import CollectorRegistry

from fetcher.actors.board import ActorBoard
from fetcher.actors.channels import Channel
from fetcher.actors.dispatcher import Dispatcher
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import (
    DispatchHint,
    RelayHint,
)
from fetcher.actors.outbox_relay import OutboxRelay
from fetcher.actors.supervisor import Actor, ShutdownTimes, Supervised, Supervisor
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.adapters.environment.internal_sources import EnvironmentSources
from fetcher.commands.publish_events import PublishEvents
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.send_work import SendWork
from fetcher.crypto.signer import MessageSigner
from fetcher.domain.jobs import Job
from fetcher.domain.retention import RetentionTimes
from fetcher.domain.tenants import NO_TENANT
from fetcher.ports import ObjectStore, RecordStore, UtcNow
from tests.simulation.broker import EVENTS, QUEUE, SimBroker, SimPublisher
from tests.simulation.faults import Link, LinkedPort, Network, ProcessKilled
from tests.simulation.objects import Bucket, SimObjects
from tests.simulation.sources import Outages, SimEngines
from tests.unit.commands.job_bench import BreakerTexts

INTERNAL_KEY, EXTERNAL_KEY, STORAGE_KEY = bytes([1] * 32), bytes([2] * 32), bytes([3] * 32)
PREFIX = "results/"
TIMES = ShutdownTimes(drain_seconds=2.0, job_wait_seconds=10.0)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """What the processes share."""

    records: RecordStore
    broker: SimBroker
    bucket: Bucket
    outages: Outages
    network: Network
    now: UtcNow
    retention: RetentionTimes
    """Zero where everything is kept."""


class SimProcess:
    """One life of one process: from its start to its drain or its death."""

    def __init__(
        self,
        outside: Outside,
        name: str,
    ) -> None:
        self.name = name
        self.link = Link(outside.network, name, self.kill)
        self.lifecycle = Lifecycle()
        self.has_ended = False
        self.nursery: trio.Nursery | None = None
        self._broker = outside.broker
        self._now = outside.now
        self._retention = outside.retention
        self._engines = SimEngines(outside.outages)
        self._breaker_log = BreakerTexts()
        self._metrics = WorkerMetrics(CollectorRegistry(), places=1)
        self._jobs = self._metrics.jobs_of(NO_TENANT)
        self._publisher = SimPublisher(outside.broker, self.link)
        self._objects = cast("ObjectStore", SimObjects(outside.bucket, self.link))
        self.records = RecordStore(
            **{
                port: LinkedPort(getattr(outside.records, port), self.link)  # type: ignore[arg-type] # a proxy
                for port in RecordStore.__dataclass_fields__
            }
        )
        self._dispatch_hints: Channel[DispatchHint] = Channel("dispatch", capacity=100)
        self._relay_hints: Channel[RelayHint] = Channel("relay", capacity=100)

    async def run(self) -> None:
        """Until the drain has ended, or a kill."""
        supervisor = Supervisor(
            [Supervised(actor) for actor in self._actors()],
            lifecycle=self.lifecycle,
            times=TIMES,
            metrics=self._metrics,
            board=ActorBoard(self._now),
        )
        try:
            async with trio.open_nursery() as nursery:
                self.nursery = nursery
                if self.link.is_dead:
                    return
                await supervisor.run()
                nursery.cancel_scope.cancel()
        except* ProcessKilled:
            pass
        self.has_ended = True
        self._broker.lose_all_of(self.link)

    def kill(self) -> None:
        """As kill -9: from here on nothing reaches the outside, clean-up least of all."""
        self.link.is_dead = True
        self.has_ended = True
        self._broker.lose_all_of(self.link)
        if self.nursery is not None:
            self.nursery.cancel_scope.cancel()

    def stall(self, seconds: float) -> None:
        """Cut off: what is asked meanwhile takes effect, and is answered, only afterwards."""
        self.link.stalled_until = trio.current_time() + seconds

    def works_on(self, job: Job) -> bool:
        """Whether an attempt of this process holds the job's lease and knows of it."""
        return False

    def serve(self, request: Callable[[], Awaitable[None]]) -> None:
        """Answer one request in this process, unless it is gone."""
        if not self.has_ended and self.nursery is not None:
            self.nursery.start_soon(request)

    def _actors(self) -> Sequence[Actor]:
        sender = SendWork(
            publisher=self._publisher,
            signer=MessageSigner(INTERNAL_KEY),
            queue=QUEUE,
            now=self._now,
        )
        dispatcher = Dispatcher(
            outbox=self.records.dispatch,
            sender=sender,
            backlog=self._publisher,
            hints=self._dispatch_hints,
            metrics=self._metrics,
        )
        relay = OutboxRelay(
            events=self._events(),
            hints=self._relay_hints,
            lifecycle=self.lifecycle,
        )
        return [dispatcher, relay]

    def _hint(self, hint: DispatchHint | RelayHint) -> None:
        if isinstance(hint, DispatchHint):
            self._dispatch_hints.offer(hint)
        else:
            self._relay_hints.offer(hint)

    def _events(self) -> PublishEvents:
        return PublishEvents(
            outbox=self.records.events,
            publisher=self._publisher,
            signer=MessageSigner(EXTERNAL_KEY),
            exchange=EVENTS,
            source="https://fetcher.test",
            require_route=True,
            now=self._now,
            observe=lambda _job_id, _result: None,
            took=lambda _seconds: None,
        )

    def _recover(self) -> RecoverConnection:
        return RecoverConnection(
            breakers=self.records.breakers,
            dispatch=self.records.dispatch,
            hint=lambda job_id: self._hint(DispatchHint(job_id)),
            log=self._breaker_log,
        )

    def _resolve(self) -> ResolveSources:
        return ResolveSources(internal=EnvironmentSources({}), stored=self.records.connections)
