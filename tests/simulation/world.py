"""The outside, the processes in it, and what must hold at every step."""

import random
from datetime import UTC, datetime, timedelta

import trio

from fetcher.adapters.memory.records import open_memory_records
from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.domain.ids import JobId
from fetcher.domain.work_message import parse_work_message
from fetcher.ports import OutgoingMessage
from tests.simulation.broker import SimBroker
from tests.simulation.faults import FaultPlan, Network
from tests.simulation.invariants import Safety
from tests.simulation.objects import Bucket
from tests.simulation.processes import Outside
from tests.simulation.roles import SimManager, SimWorker
from tests.simulation.sources import SOURCES, a_connection

EPOCH = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
WORKERS = 2


class World:
    """One manager and two workers; whoever died is started again when asked for."""

    def __init__(self, rng: random.Random, rate: float, nursery: trio.Nursery) -> None:
        self.clock_offset_seconds = 0.0
        self.turned_back_seconds = 0.0
        """How far the store's clock was turned back in all: leases last that much longer."""
        self.records = open_memory_records(self.store_now)
        self.bucket = Bucket()
        self.safety = Safety(self.state, self.bucket)
        self.broker = SimBroker(rng, self._acknowledged)
        self.faults = FaultPlan(rng, rate)
        self.network = Network(self.faults, rng, self._checked, nursery)
        self._nursery = nursery
        self.manager = self._new_manager()
        self.workers = [self._new_worker(number) for number in range(WORKERS)]

    @property
    def state(self) -> MemoryState:
        """The records as they lie in the store, looked at without a step."""
        state: MemoryState = self.records.jobs._state  # type: ignore[attr-defined] # the memory store's
        return state

    @property
    def entries(self) -> list[JobEntry]:
        return list(self.state.jobs.values())

    def now(self) -> datetime:
        """The processes' clocks."""
        return EPOCH + timedelta(seconds=trio.current_time())

    def store_now(self) -> datetime:
        return self.now() + timedelta(seconds=self.clock_offset_seconds)

    async def open(self) -> None:
        for source in SOURCES:
            await self.records.connections.insert(a_connection(source))
        for process in (self.manager, *self.workers):
            self._nursery.start_soon(process.run)

    def turn_clock(self, seconds: float) -> None:
        self.clock_offset_seconds += seconds
        self.turned_back_seconds += max(0.0, -seconds)

    def start_missing(self) -> None:
        if self.manager.has_ended:
            self.manager = self._new_manager()
            self._nursery.start_soon(self.manager.run)
        for number in range(WORKERS):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        if self.workers[number].has_ended:
            self.workers[number] = self._new_worker(number)
            self._nursery.start_soon(self.workers[number].run)

    def is_worked_on(self, entry: JobEntry) -> bool:
        return any(worker.works_on(entry.job) for worker in self.workers)

    def is_settled(self) -> bool:
        """Nothing is left to be done for any job."""
        return not self.broker.held() and all(
            not entry.job.status.is_active and entry.event is None and not entry.left_keys
            for entry in self.entries
        )

    def _new_manager(self) -> SimManager:
        return SimManager(self._outside(), "manager")

    def _new_worker(self, number: int) -> SimWorker:
        return SimWorker(self._outside(), f"worker-{number}")

    def _outside(self) -> Outside:
        return Outside(
            records=self.records,
            broker=self.broker,
            bucket=self.bucket,
            network=self.network,
            now=self.now,
        )

    def _checked(self) -> None:
        self.safety.check()
        if self.safety.violations:
            self._nursery.cancel_scope.cancel()

    def _acknowledged(self, message: OutgoingMessage) -> None:
        job_id = parse_work_message(message.body, message.headers).job_id
        self.safety.check_acknowledged(job_id, [_job_of(held) for held in self.broker.held()])


def _job_of(message: OutgoingMessage) -> JobId:
    return parse_work_message(message.body, message.headers).job_id
