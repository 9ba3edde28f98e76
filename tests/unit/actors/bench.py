"""What the actors' tests share: a clock on trio's, a record store in memory, and plain fakes."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import trio
from prometheus_client import CollectorRegistry

from fetcher.actors.channels import Channel
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import (
    DispatchHint,
    ExtractOrder,
    LeaseEnded,
    LeaseStarted,
    RelayHint,
    StoreAway,
)
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.adapters.memory.records import open_memory_records
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.job_store import Lease
from fetcher.domain.jobs import (
    EventMark,
    FailureFacts,
    Job,
    JobStatus,
    Parking,
    ResultFacts,
    TerminalOutcome,
)
from fetcher.domain.tenants import NO_TENANT
from fetcher.domain.terminal_event import JOB_CANCELLED
from fetcher.domain.work_message import WorkMessage
from fetcher.ports import Delivery, RecordStore, RejectReason

EPOCH = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def now() -> datetime:
    """The store's clock: trio's, so that a MockClock moves both."""
    return EPOCH + timedelta(seconds=trio.current_time())


def a_job(**changes: object) -> Job:
    job_id = new_job_id()
    fields: dict[str, object] = {
        "id": job_id,
        "status": JobStatus.PENDING,
        "created_at": now(),
        "mapped_fields": {"sales_db": {"orders": ("id",)}},
        "request_hash": str(job_id),
        "metadata": {"source": "acme-reports"},
        "request_id": "r-1",
    }
    return Job(**{**fields, **changes})  # type: ignore[arg-type] # a test's builder


def an_outcome(status: JobStatus, job: Job, attempt: int = 1) -> TerminalOutcome:
    event = "completed" if status is JobStatus.COMPLETED else "failed"
    mark = EventMark(status=event, payload=f'{{"jobId":"{job.id}"}}', time=now())
    if status is JobStatus.COMPLETED:
        facts = ResultFacts(
            path=f"external-data/{job.id}.{attempt}.json",
            hmac="ab" * 32,
            size_bytes=2,
            row_count=0,
            key_version="1",
        )
        return TerminalOutcome(status=status, event=mark, result=facts)
    failure = (
        JOB_CANCELLED
        if status is JobStatus.CANCELLED
        else FailureFacts(message="sales_db: rows failed", code="unavailable")
    )
    return TerminalOutcome(status=status, event=mark, failure=failure)


@dataclass
class FakeDelivery:
    """Remembers how it was settled."""

    body: bytes = b"{}"
    headers: Mapping[str, object] = field(default_factory=dict)
    exchange: str = ""
    routing_key: str = "queue"
    settled: list[str] = field(default_factory=list)

    async def ack(self) -> None:
        await self._settle("ack")

    async def reject(self, reason: RejectReason) -> None:
        await self._settle(f"reject {reason.value}")

    async def requeue(self) -> None:
        await self._settle("requeue")

    async def _settle(self, how: str) -> None:
        await trio.lowlevel.checkpoint()
        self.settled.append(how)


class FakeDeliveries:
    def __init__(self, receive: trio.MemoryReceiveChannel[Delivery | PortError]) -> None:
        self._receive = receive
        self._stopped = trio.Event()

    async def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        while True:
            received: list[Delivery | PortError] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_when_stopped, nursery.cancel_scope)
                received.append(await self._receive.receive())
                nursery.cancel_scope.cancel()
            if not received:
                return
            item = received[0]
            if isinstance(item, PortError):
                raise item
            yield item

    async def _cancel_when_stopped(self, scope: trio.CancelScope) -> None:
        await self._stopped.wait()
        scope.cancel()

    async def stop(self) -> None:
        await trio.lowlevel.checkpoint()
        self._stopped.set()


class FakeConsumer:
    """A queue that the test fills; an error among the deliveries is a lost connection."""

    def __init__(self, *, refusals: int = 0) -> None:
        self.opened = 0
        self.left_at: list[float] = []
        self._refusals = refusals
        self._send, self._receive = trio.open_memory_channel[Delivery | PortError](100)

    @property
    def untaken(self) -> int:
        return self._receive.statistics().current_buffer_used

    def put(self, item: Delivery | PortError) -> None:
        self._send.send_nowait(item)

    @asynccontextmanager
    async def consume(self, *, prefetch: int) -> AsyncIterator[FakeDeliveries]:
        self.opened += 1
        if self.opened <= self._refusals:
            raise PortUnavailable("queue away")
        try:
            yield FakeDeliveries(self._receive)
        finally:
            self.left_at.append(trio.current_time())


class FakeVerifier:
    """Takes the body as a job's id; anything else is malformed."""

    def verify(self, delivery: Delivery) -> WorkMessage | RejectReason:
        text = delivery.body.decode()
        if text == "forged":
            return RejectReason.BAD_SIGNATURE
        return WorkMessage(job_id=JobId(UUID(text)), tenant_id=None, request_id="r-1")


class FakeJobRun:
    """A job that takes some seconds and then ends as scripted."""

    def __init__(self, *, seconds: float = 1, status: JobStatus = JobStatus.COMPLETED) -> None:
        self.seconds = seconds
        self.status = status
        self.parks_for = 0.0
        self.started: list[tuple[JobId, int]] = []
        self.cut_off: list[JobId] = []
        self.tidied: list[tuple[JobId, int | None]] = []
        self.discarded: list[tuple[JobId, int]] = []

    async def run(self, job: Job, lease: Lease) -> TerminalOutcome | Parking:
        self.started.append((job.id, lease.attempt))
        try:
            await trio.sleep(self.seconds)
        except trio.Cancelled:
            self.cut_off.append(job.id)
            raise
        if self.parks_for > 0:
            until = now() + timedelta(seconds=self.parks_for)
            return Parking(until=until, reason="connection sales_db is down")
        return an_outcome(self.status, job, lease.attempt)

    def cancelled(self, job: Job) -> TerminalOutcome:
        return an_outcome(JobStatus.CANCELLED, job)

    async def tidy(self, job: Job, *, keep_attempt: int | None) -> None:
        await trio.lowlevel.checkpoint()
        self.tidied.append((job.id, keep_attempt))

    async def discard(self, job: Job, lease: Lease) -> None:
        await trio.lowlevel.checkpoint()
        self.discarded.append((job.id, lease.attempt))


@dataclass
class Bench:
    """Channels, records and metrics for one process's actors."""

    records: RecordStore = field(default_factory=lambda: open_memory_records(now))
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    dispatch_hints: Channel[DispatchHint] = field(
        default_factory=lambda: Channel("dispatch", capacity=10)
    )
    relay_hints: Channel[RelayHint] = field(default_factory=lambda: Channel("relay", capacity=10))
    orders: Channel[ExtractOrder] = field(default_factory=lambda: Channel("orders", capacity=0))
    store_away: Channel[StoreAway] = field(
        default_factory=lambda: Channel("store_away", capacity=1)
    )
    leases: Channel[LeaseStarted | LeaseEnded] = field(
        default_factory=lambda: Channel("leases", capacity=10)
    )

    def __post_init__(self) -> None:
        self.metrics = WorkerMetrics(self.registry, places=3)
        self.jobs = self.metrics.jobs_of(NO_TENANT)

    def counted(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    async def status_of(self, job: Job) -> JobStatus:
        stored = await self.records.jobs.get(job.id)
        assert stored is not None
        return stored.status

    async def insert(self, *jobs: Job) -> Sequence[Job]:
        for job in jobs:
            await self.records.jobs.insert(job)
        return jobs
