"""``Idempotency-Key``: the same key means the same job, for 24 hours (decisions)."""

from dataclasses import dataclass
from datetime import timedelta

from fetcher.domain.errors import DuplicateIdempotencyKey, FetcherError
from fetcher.domain.jobs import Job
from fetcher.ports import JobRecords, UtcNow

KEPT = timedelta(hours=24)


class IdempotencyKeyReused(FetcherError):
    def __init__(self, job: Job) -> None:
        super().__init__(
            "FET-1025",
            "Idempotency Key Reused",
            "this Idempotency-Key came with another request before",
            details={"jobId": str(job.id)},
        )


@dataclass(frozen=True, slots=True)
class IdempotencyKeys:
    """The jobs that hold a key in the records; ``scoped_key`` is as the records keep it."""

    jobs: JobRecords
    now: UtcNow

    async def find(self, scoped_key: str, *, request_hash: str) -> Job | None:
        """The job that the same request made under this key, None where the key is free.

        Raise IdempotencyKeyReused where another request has it. An expired one is taken from its
        job: it is free from then on.
        """
        held = await self.jobs.find_by_idempotency_key(scoped_key)
        if held is None:
            return None
        if self.now() - held.created_at >= KEPT:
            await self.jobs.forget_idempotency_key(held.id, scoped_key)
            return None
        if held.request_hash != request_hash:
            raise IdempotencyKeyReused(held)
        return held

    async def give(self, scoped_key: str | None, job: Job) -> Job:
        """The job that answers a repeat which came with this key: from then on, ``job`` holds it,
        beside those that it has.

        Unless it holds as many as it may; where another job has taken the key meanwhile, that one
        answers, or IdempotencyKeyReused is raised.
        """
        if scoped_key is None:
            return job
        try:
            await self.jobs.give_idempotency_key(job.id, scoped_key)
        except DuplicateIdempotencyKey:
            held = await self.find(scoped_key, request_hash=job.request_hash)
            return job if held is None else held
        return job
