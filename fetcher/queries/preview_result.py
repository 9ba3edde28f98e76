"""The first rows of a result, decrypted here (decisions, "Result over HTTP").

Nothing is told before the whole object was verified. The plain document is held in memory, which
bounds what can be previewed, and how many previews run at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import trio

from fetcher.crypto.keys import KeyRing, PreviousKeyEnded, UnknownKeyVersion
from fetcher.crypto.opener import ResultOpener, ResultRejected
from fetcher.crypto.sealer import sealed_size
from fetcher.domain.errors import FetcherError, ObjectNotFound, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import Job
from fetcher.domain.result_rows import DocumentMalformed, TableHead, head_of_tables
from fetcher.domain.stored_results import ResultGone
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.ports import JobRecords, ObjectStore, UtcNow
from fetcher.queries.stored_result import JobResult, result_of
from fetcher.queries.turns import Turns

MAX_DOCUMENT_BYTES: Final = 16 * 1024 * 1024
PREVIEW_SECONDS: Final = 60.0
AT_ONCE: Final = 2


class ResultTooLarge(FetcherError):
    def __init__(self, size_bytes: int) -> None:
        super().__init__(
            "FET-1026",
            "Result Too Large",
            f"only results of at most {MAX_DOCUMENT_BYTES} bytes can be previewed: this one has"
            f" {size_bytes}",
            details={"sizeBytes": size_bytes},
        )


class ResultUnverifiable(FetcherError):
    def __init__(self, defect: str) -> None:
        super().__init__(
            "FET-1027",
            "Result Not Verified",
            "the stored result is not what the job recorded: nothing of it is shown",
            details={"reason": defect},
        )


@dataclass(frozen=True, slots=True)
class ResultPreview:
    job: Job
    tables: Mapping[str, Mapping[str, TableHead]]


class PreviewResult:
    def __init__(
        self,
        *,
        jobs: JobRecords,
        objects: ObjectStore | None,
        keys: KeyRing,
        now: UtcNow,
        turns: Turns,
        tenant: Tenant = NO_TENANT,
    ) -> None:
        """``turns`` are :data:`AT_ONCE` places, of a whole process and all its tenants."""
        self._jobs = jobs
        self._objects = objects
        self._keys = keys
        self._now = now
        self._turns = turns
        self._tenant = tenant
        self._threads = trio.CapacityLimiter(AT_ONCE)

    async def __call__(self, job_id: JobId, *, rows: int) -> ResultPreview:
        """Raise what :func:`result_of` raises, ``FET-1026`` above 16 MiB, ``FET-1027`` for what
        cannot be verified, PortUnavailable after a minute."""
        found = await result_of(self._jobs, self._objects, job_id)
        if found.facts.size_bytes > MAX_DOCUMENT_BYTES:
            raise ResultTooLarge(found.facts.size_bytes)
        opener = self._opener(found)
        with trio.move_on_after(PREVIEW_SECONDS):
            async with self._turns.turn(self._tenant.id):
                return ResultPreview(found.job, await self._read(found, opener, rows))
        raise PortUnavailable("the result was not read in time")

    def _opener(self, found: JobResult) -> ResultOpener:
        version = found.facts.key_version or self._keys.version
        try:
            keys = self._keys.get_verifying(version, now=self._now())
        except UnknownKeyVersion:
            raise ResultUnverifiable("unknown_key_version") from None
        except PreviousKeyEnded:
            raise ResultUnverifiable("previous_key_ended") from None
        return ResultOpener(
            storage_key=keys.storage,
            hmac_key=keys.external_hmac,
            expected_hmac=found.facts.hmac,
            expected_size=found.facts.size_bytes,
            memory_bytes=sealed_size(MAX_DOCUMENT_BYTES),
        )

    async def _read(
        self, found: JobResult, opener: ResultOpener, rows: int
    ) -> Mapping[str, Mapping[str, TableHead]]:
        problem: FetcherError
        try:
            async with found.objects.read(found.facts.path) as chunks:
                async for chunk in chunks:
                    await self._in_thread(opener, chunk)
            return await trio.to_thread.run_sync(_heads, opener, rows, limiter=self._threads)
        except ResultRejected as rejected:
            problem = ResultUnverifiable(rejected.defect.value)
        except DocumentMalformed:
            problem = ResultUnverifiable("malformed")
        except ObjectNotFound:
            problem = ResultGone()
        finally:
            opener.close()
        raise problem

    async def _in_thread(self, opener: ResultOpener, chunk: bytes) -> None:
        await trio.to_thread.run_sync(opener.feed, chunk, limiter=self._threads)


def _heads(opener: ResultOpener, rows: int) -> Mapping[str, Mapping[str, TableHead]]:
    with opener.finish() as opened:
        return head_of_tables(opened.read(), rows=rows)
