"""Stored results for tests of the API: a bucket in memory, and jobs that have completed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self, cast

import trio

from fetcher.crypto.sealer import ResultSealer
from fetcher.domain.errors import ObjectNotFound, PortUnavailable
from fetcher.domain.jobs import Job, JobStatus, ResultFacts
from fetcher.domain.times import cut_to_milliseconds
from tests.unit.api.harness import JOBS, KEYS, Api, a_job, an_api

DOCUMENT = b'{"sales_db":{"orders":[{"id":1,"total":"12.50"},{"id":2,"total":"0.10"}],"people":[]}}'


class MemoryObjects:
    """A bucket. ``chunk_bytes`` is what a reader gets at once; ``breaks_after`` chunks it fails."""

    def __init__(self, *, chunk_bytes: int = 1000, address: str | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.chunk_bytes = chunk_bytes
        self.address = address
        self.breaks_after: int | None = None
        self.given_chunks = 0
        self.open_reads = 0
        self.down = False

    @asynccontextmanager
    async def read(self, key: str) -> AsyncIterator[AsyncIterator[bytes]]:
        await self._reached()
        if key not in self.objects:
            raise ObjectNotFound(key)
        self.open_reads += 1
        try:
            yield _Chunks(self, self.objects[key])
        finally:
            self.open_reads -= 1

    async def before_chunk(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.given_chunks == self.breaks_after:
            raise PortUnavailable("bucket away")

    async def size(self, key: str) -> int | None:
        await self._reached()
        return len(self.objects[key]) if key in self.objects else None

    async def delete(self, key: str) -> None:
        await self._reached()
        self.objects.pop(key, None)

    async def temporary_address(self, key: str, *, seconds: int) -> str | None:
        await trio.lowlevel.checkpoint()
        return f"{self.address}/{key}?expires={seconds}" if self.address else None

    async def _reached(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.down:
            raise PortUnavailable("bucket away")


class _Chunks:
    def __init__(self, bucket: MemoryObjects, data: bytes) -> None:
        self._bucket = bucket
        self._left = data

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await self._bucket.before_chunk()
        size = self._bucket.chunk_bytes
        chunk, self._left = self._left[:size], self._left[size:]
        if not chunk:
            raise StopAsyncIteration
        self._bucket.given_chunks += 1
        return chunk


def sealed(document: bytes) -> tuple[bytes, str]:
    """The stored text and its signature, by the keys of the tests' API."""
    sealer = ResultSealer(storage_key=KEYS.current.storage, hmac_key=KEYS.current.external_hmac)
    text = bytes(sealer.feed(document)) + sealer.finish()
    return text, sealer.hmac_hex


def an_api_with_store(objects: MemoryObjects | None = None, **options: Any) -> Api:
    return an_api(objects=objects or MemoryObjects(), **options)


def bucket(api: Api) -> MemoryObjects:
    return cast("MemoryObjects", api.services.objects)


async def completed(api: Api, document: bytes = DOCUMENT, **changed: Any) -> Job:
    """A job whose result lies in the bucket; the result's facts can be changed by their names."""
    text, signature = sealed(document)
    facts = ResultFacts(
        path=f"external-data/{signature[:8]}.json",
        hmac=signature,
        size_bytes=len(document),
        row_count=2,
        key_version="7",
    )
    facts = replace(facts, **changed)
    job = replace(
        a_job(request_hash=signature),
        status=JobStatus.COMPLETED,
        completed_at=cut_to_milliseconds(api.services.now()),
        result=facts,
    )
    await put(api, job)
    bucket(api).objects[facts.path] = text
    return job


async def put(api: Api, job: Job) -> Job:
    """Store the job in whatever state it is."""
    await api.records.jobs.insert(replace(job, status=JobStatus.PENDING))
    state = api.records.jobs._state  # type: ignore[attr-defined] # the memory store's own state
    state.jobs[job.id].job = job
    return job


def result_path(job: Job) -> str:
    return f"{JOBS}/{job.id}/result"
