"""The outside, the processes in it, and what must hold at every step."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import trio

from fetcher.adapters.memory.records import open_memory_records
from fetcher.adapters.memory.state import JobEntry, MemoryState
from fetcher.domain import breakers as rules
from fetcher.domain.breakers import SourceDown
from fetcher.domain.connections import Connection
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.domain.retention import RetentionTimes
from fetcher.domain.work_message import parse_work_message
from fetcher.ports import ObjectCleanup, OutgoingMessage
from tests.simulation.broker import SimBroker
from tests.simulation.expiry import LONGEST_JUMP_SECONDS, TIMES, Expiry
from tests.simulation.faults import LATEST_SECONDS, FaultPlan, Network
from tests.simulation.invariants import Safety
from tests.simulation.objects import Bucket
from tests.simulation.processes import Outside
from tests.simulation.roles import SimManager, SimWorker
from tests.simulation.sources import SOURCES, Outages, a_connection

EPOCH = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
WORKERS = 2
BREAKER_CALLS = frozenset({"find", "change"})


class SoonAgain:
    """ObjectCleanup, whose second look comes soon after what is late in these programs."""

    def __init__(self, cleanup: ObjectCleanup) -> None:
        self.find_due, self.clear = cleanup.find_due, cleanup.clear
        self.push_back = cleanup.push_back
        self.note = partial(cleanup.note, late_seconds=3 * LATEST_SECONDS)


class World:
    """One manager and two workers; whoever died is started again when asked for."""

    def __init__(
        self, rng: random.Random, rate: float, nursery: trio.Nursery, *, expires: bool = False
    ) -> None:
        self.clock_offset_seconds = 0.0
        self.turned_back_seconds = 0.0
        """How far the store's clock was turned back in all: leases last that much longer."""
        records = open_memory_records(self.store_now)
        self.records = replace(records, cleanup=SoonAgain(records.cleanup))
        self.bucket = Bucket()
        self.outages = Outages()
        self.expiry = Expiry(self.bucket, latest=self.store_now()) if expires else None
        self.safety = Safety(self.state, self.bucket, self.outages, self.expiry)
        self.broker = SimBroker(rng, self._acknowledged)
        self.faults = FaultPlan(rng, rate, self._met_fault)
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
        """Not forwards while an effect is late: its second look would come before it."""
        if seconds > 0 and self.network.under_way:
            return
        if self.expiry is not None:
            # What takes place by the hour here is a matter of days.
            seconds = min(seconds, LONGEST_JUMP_SECONDS)
        self.outages.is_exact = False
        self.clock_offset_seconds += seconds
        self.turned_back_seconds += max(0.0, -seconds)

    def refuse_logins(self, source: str, *, seconds: float, known_failures: int) -> None:
        """A database refuses our password; so many jobs of others have met that already."""
        connection = self.connection(source)
        self.outages.begin(connection, seconds)
        rule = rules.failed(connection, SourceDown(stage="auth", reason="auth"))
        for _ in range(known_failures):
            known = rule(self.state.breakers.get(connection.id), self.state.now())
            assert known is not None
            self.state.breakers[connection.id] = known

    def delete_result(self, job_id: JobId) -> None:
        """Somebody asks for it over HTTP."""
        if self.expiry is not None:
            self.expiry.asked.add(job_id)
            self.manager.delete_result(job_id)

    def lock_results(self) -> None:
        """From now on nobody may delete the results that there are."""
        results = [entry.job.result for entry in self.entries]
        paths = {result.path for result in results if result is not None}
        self.bucket.locked |= paths & self.bucket.objects.keys()

    def connection(self, source: str) -> Connection:
        [found] = [c for c in self.state.connections.values() if c.config_name == source]
        return found

    def stall(self, number: int, seconds: float) -> None:
        self.outages.is_exact = False
        self.workers[number].stall(seconds)

    def end_faults(self) -> None:
        """From now on everything works."""
        self.faults.end()
        self.outages.end()

    def waits(self, job: Job) -> bool:
        """Whether it is rightly left alone for now."""
        return job.is_parked and job.due_at is not None and job.due_at > self.store_now()

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
        is_kept = self.expiry is None or self.expiry.is_done(self.entries)
        return (
            is_kept
            and not self.broker.held()
            and all(
                not entry.job.status.is_active and entry.event is None and not entry.left_keys
                for entry in self.entries
            )
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
            outages=self.outages,
            network=self.network,
            now=self.now,
            retention=TIMES if self.expiry is not None else RetentionTimes(),
        )

    def _met_fault(self, operation: str) -> None:
        if operation in BREAKER_CALLS:
            self.outages.is_exact = False

    def _checked(self) -> None:
        if self.expiry is not None:
            self.expiry.look(self.store_now())
        self.safety.check()
        if self.safety.violations:
            self._nursery.cancel_scope.cancel()

    def _acknowledged(self, message: OutgoingMessage) -> None:
        job_id = parse_work_message(message.body, message.headers).job_id
        self.safety.check_acknowledged(job_id, [_job_of(held) for held in self.broker.held()])


def _job_of(message: OutgoingMessage) -> JobId:
    return parse_work_message(message.body, message.headers).job_id
