"""Takes back the jobs of workers that are gone, and deletes what lost attempts left."""

from collections.abc import Awaitable, Callable, Sequence

import structlog
import trio

from fetcher.actors.channels import Channel
from fetcher.actors.job_metrics import JobMetrics
from fetcher.actors.messages import DispatchHint, RelayHint
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
    """Every ``reap_seconds`` a lease that ran out sends its job back to pending, or ends it; every
    ``tidy_seconds`` what lost attempts left is deleted; both for the first time after
    ``first_after_seconds``.

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
        metrics: JobMetrics,
        reap_seconds: float = REAP_SECONDS,
        tidy_seconds: float = REAP_SECONDS,
        first_after_seconds: float = 0.0,
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
        self._tidy_seconds = tidy_seconds
        self._first_after_seconds = first_after_seconds

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Deletes beside the reaping: a bucket that is slow or away must not keep jobs waiting."""
        task_status.started()
        await trio.sleep(self._first_after_seconds)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._again_and_again, self._reap_all, self._reap_seconds)
            nursery.start_soon(self._again_and_again, self._delete_left_objects, self._tidy_seconds)

    async def _again_and_again(self, action: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            try:
                await action()
            except PortError as failure:
                log.warning("reaping_failed", code=failure.code)
            await trio.sleep(seconds)

    async def _reap_all(self) -> None:
        while await self._reap() == BATCH:
            pass

    async def _reap(self) -> int:
        """How many were found: a full batch means that there may be more."""
        jobs = await self._expired.find_expired(limit=BATCH)
        for job in jobs:
            try:
                await self._take_back(job)
            except PortUnavailable:
                raise
            except PortError as failure:
                # One record that cannot be written must not keep the others waiting.
                log.error("job_not_taken_back", job_id=str(job.id), code=failure.code)
                await self._expired.push_back(job, seconds=PUSHED_BACK_SECONDS)
        return len(jobs)

    async def _take_back(self, job: Job) -> None:
        if job.cancel_requested is not None:
            await self._finish(job, JobStatus.CANCELLED)
        elif job.takeovers >= MAX_TAKEOVERS:
            await self._finish(job, JobStatus.FAILED)
        elif await self._expired.requeue(job):
            log.warning("lease_ran_out", job_id=str(job.id), owner=job.lease_owner)
            self._metrics.took_over("requeued")
            self._dispatch_hints.offer(DispatchHint(job.id))

    async def _finish(self, job: Job, status: JobStatus) -> None:
        outcome = self._outcome_of(job, status)
        if await self._expired.finish(job, outcome):
            log.warning("lease_ran_out", job_id=str(job.id), outcome=status.value)
            self._metrics.took_over(status.value)
            if outcome.failure is not None:
                self._metrics.failed(outcome.failure.code)
            self._relay_hints.offer(RelayHint(job.id))
            # After the write: before it, the owner may be back and complete one of them.
            await self._cleanup.note(job.id, self._keys_of(job))

    async def _delete_left_objects(self) -> None:
        for job_id, keys in await self._cleanup.find_due(limit=BATCH):
            try:
                for key in keys:
                    await self._objects.delete(key)
            except (PortError, ValueError) as failure:
                # One object that cannot be deleted must not keep the others. ValueError: a store's
                # word on a path that is no key of it, in a record of somebody's.
                code = failure.code if isinstance(failure, PortError) else "bad_key"
                log.warning("left_objects_kept", job_id=str(job_id), code=code)
                await self._cleanup.push_back(job_id, seconds=PUSHED_BACK_SECONDS)
                continue
            await self._cleanup.clear(job_id, keys)
            log.info("left_objects_deleted", job_id=str(job_id), count=len(keys))
