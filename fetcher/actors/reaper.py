"""Takes back the jobs of workers that are gone, and deletes what lost attempts left."""

from collections.abc import Awaitable, Callable, Sequence

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.messages import DispatchHint, RelayHint
from fetcher.actors.metrics import ActorMetrics
from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.job_transitions import MAX_TAKEOVERS
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.ports import ExpiredLeases, ObjectCleanup, ObjectStore

log = structlog.get_logger(__name__)

REAP_SECONDS = 5.0
BATCH = 50
PUSHED_BACK_SECONDS = 60.0
"""How long what failed makes way for others: a batch of it would else be found for ever."""


class Reaper:
    """Every 5 s: a lease that ran out sends its job back to pending, or ends it.

    A job that was asked to stop ends as cancelled; one whose lease runs out after three takeovers
    fails. ``outcome_of`` builds the terminal state with its event, ``keys_of`` tells which objects
    and unfinished uploads the attempts of such a job may have left.
    """

    name = "reaper"

    def __init__(
        self,
        *,
        expired: ExpiredLeases,
        cleanup: ObjectCleanup,
        objects: ObjectStore,
        outcome_of: Callable[[Job, JobStatus], TerminalOutcome],
        keys_of: Callable[[Job], Sequence[str]],
        dispatch_hints: Channel[DispatchHint],
        relay_hints: Channel[RelayHint],
        metrics: ActorMetrics,
        reap_seconds: float = REAP_SECONDS,
    ) -> None:
        self._expired = expired
        self._cleanup = cleanup
        self._objects = objects
        self._outcome_of = outcome_of
        self._keys_of = keys_of
        self._dispatch_hints = dispatch_hints
        self._relay_hints = relay_hints
        self._metrics = metrics
        self._reap_seconds = reap_seconds

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Deletes beside the reaping: a bucket that is slow or away must not keep jobs waiting."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._again_and_again, self._reap_all)
            nursery.start_soon(self._again_and_again, self._delete_left_objects)

    async def _again_and_again(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await action()
            except PortError as failure:
                log.warning("reaping_failed", code=failure.code)
            await trio.sleep(self._reap_seconds)

    async def _reap_all(self) -> None:
        while await self._reap() == BATCH:
            pass

    async def _reap(self) -> int:
        """How many of a batch were dealt with: a full batch means that there may be more."""
        jobs = await self._expired.find_expired(limit=BATCH)
        done = 0
        for job in jobs:
            try:
                await self._take_back(job)
                done += 1
            except PortUnavailable:
                raise
            except PortError as failure:
                # One record that cannot be written must not keep the others waiting.
                log.error("job_not_taken_back", job_id=str(job.id), code=failure.code)
                await self._expired.push_back(job, seconds=PUSHED_BACK_SECONDS)
        return done

    async def _take_back(self, job: Job) -> None:
        if job.cancel_requested is not None:
            await self._finish(job, JobStatus.CANCELLED)
        elif job.takeovers >= MAX_TAKEOVERS:
            await self._finish(job, JobStatus.FAILED)
        elif await self._expired.requeue(job):
            log.warning("lease_ran_out", job_id=str(job.id), owner=job.lease_owner)
            self._metrics.reaped.labels(outcome="requeued").inc()
            self._dispatch_hints.offer(DispatchHint(job.id))

    async def _finish(self, job: Job, status: JobStatus) -> None:
        if await self._expired.finish(job, self._outcome_of(job, status)):
            log.warning("lease_ran_out", job_id=str(job.id), outcome=status.value)
            self._metrics.reaped.labels(outcome=status.value).inc()
            self._relay_hints.offer(RelayHint(job.id))
            # After the write: before it, the owner may be back and complete one of them.
            await self._cleanup.note(job.id, self._keys_of(job))

    async def _delete_left_objects(self) -> None:
        for job_id, keys in await self._cleanup.find_due(limit=BATCH):
            try:
                for key in keys:
                    await self._objects.delete(key)
            except PortError as failure:
                # One object that cannot be deleted must not keep the others.
                log.warning("left_objects_kept", job_id=str(job_id), code=failure.code)
                await self._cleanup.push_back(job_id, seconds=PUSHED_BACK_SECONDS)
                continue
            await self._cleanup.clear(job_id, keys)
            log.info("left_objects_deleted", job_id=str(job_id), count=len(keys))
