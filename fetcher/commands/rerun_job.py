"""Run the request of a job that has ended once more, as a new job."""

from fetcher.commands.create_job import CreatedJob, CreateJob
from fetcher.domain.errors import FetcherError, JobNotFound
from fetcher.domain.ids import JobId
from fetcher.domain.job_order import CheckedOrder, JudgedOrder
from fetcher.domain.jobs import Job
from fetcher.domain.request_hash import request_hash
from fetcher.ports import JobRecords
from fetcher_engine import TenantContext


class JobNotEnded(FetcherError):
    def __init__(self, job: Job) -> None:
        super().__init__(
            "FET-1023",
            "Job Not Ended",
            f"only a job that has ended can run again: this one is {job.status}",
            details={"status": str(job.status)},
        )


class RerunJob:
    """Neither the old job nor another that has ended counts as its repeat; one that runs does."""

    def __init__(self, *, jobs: JobRecords, create: CreateJob) -> None:
        self._jobs = jobs
        self._create = create

    async def __call__(
        self, job_id: JobId, *, tenant: TenantContext, request_id: str
    ) -> CreatedJob:
        """Products, connections and admission are judged anew.

        Raise ``FET-1001``, ``FET-1023``, or what creating a job raises.
        """
        job = await self._jobs.get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        if job.status.is_active:
            raise JobNotEnded(job)
        judged = _same_request(job, request_id)
        active = await self._jobs.find_active_by_hash(judged.request_hash)
        if active is not None:
            return CreatedJob(active, is_new=False)
        return await self._create.anew(judged, tenant=tenant)


def _same_request(job: Job, request_id: str) -> JudgedOrder:
    asked = CheckedOrder(
        mapped_fields=job.mapped_fields,
        requested_fields=job.mapped_fields,
        filters=job.filters,
        metadata={
            key: value
            for key, value in job.metadata.items()
            if key != "error" and not key.startswith("terminalEvent")
        },
        options=job.options,
        request_id=request_id,
    )
    # The record's own hash covers the fields as they were sent: it may hold one twice.
    digest = job.request_hash or request_hash(
        asked.requested_fields, asked.filters, asked.metadata, asked.options
    )
    return JudgedOrder(asked, digest)
