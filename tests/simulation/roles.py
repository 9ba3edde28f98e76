"""What a manager and a worker add to a process."""

from collections.abc import Sequence
from functools import partial

import trio

from fetcher.actors.channels import Channel
from fetcher.actors.extractor import Extractor
from fetcher.actors.intake import Intake
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.messages import (
    DispatchHint,
    ExtractOrder,
    HeldJob,
    LeaseEnded,
    LeaseStarted,
    RelayHint,
    StoreAway,
)
from fetcher.actors.outbox_repairer import OutboxRepairer
from fetcher.actors.reaper import Reaper
from fetcher.actors.retention import Retention
from fetcher.actors.supervisor import Actor
from fetcher.commands.cancel_job import CancelJob
from fetcher.commands.connection_input import ConnectionChange
from fetcher.commands.create_job import CreateJob, JobRules
from fetcher.commands.delete_result import DeleteResult
from fetcher.commands.job_admission import JobAdmission
from fetcher.commands.job_sources import JobSources
from fetcher.commands.patch_connection import PatchConnection
from fetcher.commands.preflight import Preflight
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.sealer import ResultSealer
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.errors import FetcherError, PortError
from fetcher.domain.ids import ConnectionId, JobId
from fetcher.domain.job_order import JobOrder
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher_engine import Limits, TenantContext
from tests.simulation.broker import SimConsumer
from tests.simulation.expiry import SWEEP_SECONDS
from tests.simulation.processes import (
    EXTERNAL_KEY,
    INTERNAL_KEY,
    PREFIX,
    STORAGE_KEY,
    SimProcess,
)
from tests.unit.api.harness import ReversingCipher

PLACES = 3
HOLD_SECONDS = 900.0
MAX_WAIT_SECONDS = 600.0
TENANT = TenantContext.new("default")


class SimManager(SimProcess):
    """Takes orders and cancellations as its HTTP handlers would."""

    def create(self, config_name: str, number: int) -> None:
        """The same number is the same request: a repeat, or a job of its own once that ended."""
        use_case = CreateJob(
            resolve=self._resolve(),
            jobs=self.records.jobs,
            preflight=Preflight(self._engines, self.records.breakers),
            admission=JobAdmission(self.records.jobs, max_pending=0, max_pending_of_product=0),
            hint=lambda job, until: self._hint(DispatchHint(job.id, HeldJob(job, until))),
            now=self._now,
            rules=JobRules(ceilings=Limits.defaults(), preflight_test=False),
        )
        judged = use_case.judge(
            JobOrder(
                mapped_fields={config_name: {"orders": ["id", "note"]}},
                metadata={"source": "acme", "number": number},
                request_id="r-1",
            )
        )

        async def request() -> None:
            try:
                await use_case(judged, tenant=TENANT)
            except (PortError, FetcherError):
                return  # answered with an error; the caller may ask again

        self.serve(request)

    def cancel(self, job_id: JobId) -> None:
        use_case = CancelJob(
            jobs=self.records.jobs,
            cleanup=self.records.cleanup,
            hint=lambda ended: self._hint(RelayHint(ended)),
            now=self._now,
            key_prefix=PREFIX,
        )

        async def request() -> None:
            try:
                await use_case(job_id)
            except (PortError, FetcherError):
                return  # answered with an error

        self.serve(request)

    def delete_result(self, job_id: JobId) -> None:
        use_case = DeleteResult(jobs=self.records.jobs, objects=self._objects, now=self._now)

        async def request() -> None:
            try:
                await use_case(job_id)
            except (PortError, FetcherError):
                return  # answered with an error

        self.serve(request)

    def repair(self, connection_id: ConnectionId) -> None:
        """PATCH with the right password."""
        use_case = PatchConnection(
            connections=self.records.connections,
            jobs=self.records.jobs,
            cipher=ReversingCipher(),
            forget_schemas=_remembers_none,
            recover=self._recover(),
            now=self._now,
            sqlite_allowed=False,
        )

        async def request() -> None:
            try:
                await use_case(connection_id, ConnectionChange(password="right"), tenant=TENANT)
            except (PortError, FetcherError):
                return  # answered with an error

        self.serve(request)


async def _remembers_none(tenant: TenantContext, config_name: str) -> None:
    """No schema cache here."""


class SimWorker(SimProcess):
    """Consumes, runs jobs, and repairs what others left."""

    _keeper: LeaseKeeper | None = None

    def works_on(self, job: Job) -> bool:
        held = self._keeper._held.get(job.id) if self._keeper is not None else None
        return (
            not self.has_ended and held is not None and held.started.lease.token == job.lease_token
        )

    def _actors(self) -> Sequence[Actor]:
        orders: Channel[ExtractOrder] = Channel("orders", capacity=0)
        store_away: Channel[StoreAway] = Channel("store_away", capacity=1)
        lease_commands: Channel[LeaseStarted | LeaseEnded] = Channel("leases", capacity=100)
        times = LeaseTimes()
        run_job = self._run_job()
        self._keeper = keeper = LeaseKeeper(
            leases=self.records.leases, commands=lease_commands, times=times
        )
        intake = Intake(
            consumer=SimConsumer(self._broker, self.link),
            verifier=VerifyWork(verifier=MessageVerifier([INTERNAL_KEY]), now=self._now),
            orders=orders,
            leases=self.records.leases,
            store_away=store_away,
            places=trio.Semaphore(PLACES),
            prefetch=PLACES,
            hold_seconds=HOLD_SECONDS,
            lifecycle=self.lifecycle,
            metrics=self._metrics,
        )
        repairer = OutboxRepairer(events=self._events())
        reaper = Reaper(
            expired=self.records.expired,
            cleanup=self.records.cleanup,
            objects=self._objects,
            outcome_of=partial(_outcome_of, run_job),
            keys_of=run_job.keys,
            dispatch_hints=self._dispatch_hints,
            relay_hints=self._relay_hints,
            metrics=self._jobs,
        )
        extractors = [
            Extractor(
                number=number,
                owner=self.name,
                leases=self.records.leases,
                lease_seconds=times.lease_seconds,
                hold_seconds=HOLD_SECONDS,
                job_run=run_job,
                orders=orders,
                store_away=store_away,
                lease_commands=lease_commands,
                relay_hints=self._relay_hints,
                lifecycle=self.lifecycle,
                metrics=self._jobs,
            )
            for number in range(1, PLACES + 1)
        ]
        kept = [] if self._retention.keeps_everything else [self._expirer()]
        return [*super()._actors(), intake, keeper, repairer, reaper, *extractors, *kept]

    def _expirer(self) -> Retention:
        return Retention(
            retention=self.records.retention,
            audit=self.records.audit,
            delete_result=DeleteResult(
                jobs=self.records.jobs, objects=self._objects, now=self._now
            ),
            times=self._retention,
            metrics=self._metrics,
            sweep_seconds=SWEEP_SECONDS,
        )

    def _run_job(self) -> RunJob:
        breakers = SourceBreakers(
            breakers=self.records.breakers,
            recover=self._recover(),
            sources=self._engines,
            log=self._breaker_log,
        )
        return RunJob(
            JobRunParts(
                sources=JobSources(
                    resolve=self._resolve(), breakers=breakers, max_wait_seconds=MAX_WAIT_SECONDS
                ),
                breakers=breakers,
                leases=self.records.leases,
                engines=self._engines,
                objects=self._objects,
                cleanup=self.records.cleanup,
                new_sealer=lambda: ResultSealer(storage_key=STORAGE_KEY, hmac_key=EXTERNAL_KEY),
                key_version="1",
                key_prefix=PREFIX,
                now=self._now,
                observer=self._metrics,
            )
        )


def _outcome_of(run_job: RunJob, job: Job, status: JobStatus) -> TerminalOutcome:
    return run_job.cancelled(job) if status is JobStatus.CANCELLED else run_job.lost(job)
