"""Deletes what has had its time: results, then the records of jobs, and audit entries."""

import structlog
import trio

from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.commands.delete_result import DeleteResult
from fetcher.domain.errors import FetcherError, OperationRefused, PortError, PortUnavailable
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.retention import DAY_SECONDS, KeptResult, RetentionTimes
from fetcher.ports import AuditTrail, JobRetention

log = structlog.get_logger(__name__)

SWEEP_SECONDS = 3600.0
BATCH = 100
PAUSE_SECONDS = 0.5
"""Between two batches: whoever wants to write to the store comes first."""
MAX_FAILURES = 3
"""So many calls in a row that a store was away for end a round; the next goes on behind them."""


class Retention:
    """After ``first_after_seconds`` and then every hour, in small batches; decision 035.

    Several processes may do so at once: an object is deleted twice without harm, and a record goes
    by conditions that the store judges.
    """

    name = "retention"

    def __init__(
        self,
        *,
        retention: JobRetention,
        audit: AuditTrail,
        delete_result: DeleteResult,
        times: RetentionTimes,
        metrics: WorkerMetrics,
        sweep_seconds: float = SWEEP_SECONDS,
        first_after_seconds: float = 0.0,
    ) -> None:
        self._retention = retention
        self._audit = audit
        self._delete_result = delete_result
        self._times = times
        self._metrics = metrics
        self._sweep_seconds = sweep_seconds
        self._first_after_seconds = first_after_seconds
        self._after: EndedCursor | None = None
        """Up to here the list of results was gone through before a round was given up."""

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep(self._first_after_seconds)
        while True:
            try:
                if self._times.result_days:
                    await self._delete_results(self._times.result_days * DAY_SECONDS)
                if self._times.job_days:
                    await self._delete_jobs(self._times.job_days * DAY_SECONDS)
                if self._times.audit_days:
                    await self._delete_audit(self._times.audit_days * DAY_SECONDS)
            except PortError as failure:
                log.warning("retention_failed", code=failure.code)
            await trio.sleep(self._sweep_seconds)

    async def _delete_results(self, older_than_seconds: float) -> None:
        """One pass over all that are due, from where the last one was given up and then from the
        start. What fails is passed by, and due again in the next pass."""
        began_inside = self._after is not None
        if await self._came_to_the_end(older_than_seconds) and began_inside:
            await self._came_to_the_end(older_than_seconds)

    async def _came_to_the_end(self, older_than_seconds: float) -> bool:
        """False where a store is away. What was tried meanwhile does not stand first in the next
        round: a result that is never answered for would keep all others for ever."""
        failures = 0
        while True:
            batch = await self._retention.find_results(
                older_than_seconds=older_than_seconds, after=self._after, limit=BATCH
            )
            for kept in batch:
                failures = 0 if await self._answers_for(kept) else failures + 1
                self._after = kept.place
                if failures == MAX_FAILURES:
                    return False
            if len(batch) < BATCH:
                self._after = None
                return True
            await trio.sleep(PAUSE_SECONDS)

    async def _answers_for(self, kept: KeptResult) -> bool:
        """Delete a result; False where a store is away. True also where it alone stays: refused,
        under a hold, a path that is no key, a record that cannot be read."""
        job_id = kept.place.job_id
        try:
            await self._delete_result(job_id)
        except (PortError, ValueError) as failure:
            # ValueError: a store's word on a path that is no key of it, in a record of somebody's.
            code = failure.code if isinstance(failure, PortError) else "bad_key"
            log.warning("expired_result_kept", job_id=str(job_id), code=code)
            return not _is_away(failure)
        except FetcherError:
            # Another process was faster.
            return True
        log.info("expired_result_deleted", job_id=str(job_id))
        self._metrics.expired.labels(what="result").inc()
        return True

    async def _delete_audit(self, older_than_seconds: float) -> None:
        while True:
            count = await self._audit.delete_old(older_than_seconds=older_than_seconds, limit=BATCH)
            self._metrics.expired.labels(what="audit").inc(count)
            if count < BATCH:
                return
            await trio.sleep(PAUSE_SECONDS)

    async def _delete_jobs(self, older_than_seconds: float) -> None:
        while True:
            count = await self._retention.delete_jobs(
                older_than_seconds=older_than_seconds, limit=BATCH
            )
            if count:
                log.info("expired_jobs_deleted", count=count)
                self._metrics.expired.labels(what="job").inc(count)
            if count < BATCH:
                return
            await trio.sleep(PAUSE_SECONDS)


def _is_away(failure: Exception) -> bool:
    return isinstance(failure, PortUnavailable) and not isinstance(failure, OperationRefused)
