"""Whether a job has a result that can be fetched (decisions, "Result over HTTP")."""

from fetcher.domain.errors import FetcherError
from fetcher.domain.jobs import Job, JobStatus, ResultFacts


class ResultMissing(FetcherError):
    def __init__(self, message: str) -> None:
        super().__init__("FET-1024", "Result Not Found", message)


class ResultGone(ResultMissing):
    """The record names an object that the store does not have."""

    def __init__(self) -> None:
        super().__init__("the stored result is gone from the object store")


class ResultDeleted(ResultMissing):
    def __init__(self) -> None:
        super().__init__("the result was deleted")


class NoObjectStore(FetcherError):
    """A manager without a store cannot serve results (decisions, "S3 in the Manager")."""

    def __init__(self) -> None:
        super().__init__(
            "FET-0003", "Service Unavailable", "this process has no object store (OBJECT_STORAGE_*)"
        )


def stored_facts(job: Job) -> ResultFacts:
    """What the record says of the result. Raise ResultMissing where there is none any more."""
    if job.status is not JobStatus.COMPLETED or job.result is None:
        raise ResultMissing(f"the job has no result: it is {job.status}")
    if job.result_deleted_at is not None:
        raise ResultDeleted
    return job.result
