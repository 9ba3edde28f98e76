"""Jobs as records in MongoDB."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from uuid import UUID

from pymongo import DESCENDING
from pymongo.errors import DuplicateKeyError

from fetcher.adapters.mongo.document_fields import (
    Document,
    DocumentFields,
    id_filter,
    id_forms,
)
from fetcher.adapters.mongo.job_changes import TRIES, event_fields, unchanged, write_change
from fetcher.adapters.mongo.job_documents import RECORD, job_document, read_job
from fetcher.adapters.mongo.job_keys import forget_key, give_key
from fetcher.adapters.mongo.job_lists import (
    FIRST_ENDED_FIRST,
    LAST_ENDED_FIRST,
    in_use_filter,
    list_filter,
    list_order,
    place_in_list,
    reads_from,
)
from fetcher.adapters.mongo.job_reading import find_job
from fetcher.adapters.mongo.product_filter import product_filter
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.adapters.together import Together
from fetcher.domain import job_transitions
from fetcher.domain.errors import (
    DuplicateActiveJob,
    DuplicateIdempotencyKey,
    PortUnavailable,
    RecordCorrupt,
)
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    AHEAD_SECONDS,
    MOST_COUNTED,
    CancelAnswer,
    EndedCursor,
    JobCursor,
    JobPage,
    JobQuery,
    PendingCounts,
    place_to_read_from,
)
from fetcher.domain.jobs import EventMark, Job, JobStatus, TerminalOutcome
from fetcher.domain.terminal_event import JOB_CANCELLED

_ACTIVE: Document = {"$in": [status.value for status in JobStatus if status.is_active]}
_ENDED: Document = {"$in": [status.value for status in JobStatus if not status.is_active]}
_NEWEST = [("created_at", DESCENDING), ("_id", DESCENDING)]


class _Inserted(Enum):
    WRITTEN = auto()
    KEY_TAKEN = auto()
    HASH_ACTIVE = auto()


class MongoJobRecords:
    """Implements :class:`fetcher.ports.JobRecords`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server
        self._documents = Together(self._documents_of)

    async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
        key = job.idempotency_key

        def document(now: datetime) -> Document:
            if not dispatch_lease_seconds:
                return job_document(job)
            until = now + timedelta(seconds=dispatch_lease_seconds)
            return {**job_document(job), "dispatch_lease_until": until}

        async def insert(turn: Turn) -> _Inserted:
            try:
                await turn.jobs.insert_one(document(turn.now))
            except DuplicateKeyError:
                # Not every server says which index it was. The key comes first (decisions).
                if key is not None and await turn.jobs.find_one({"idempotency_key": key}):
                    return _Inserted.KEY_TAKEN
                return _Inserted.HASH_ACTIVE
            return _Inserted.WRITTEN

        async def settle(turn: Turn) -> _Inserted | None:
            found = await turn.majority_jobs.find_one(id_filter(job.id))
            return None if found is None else _Inserted.WRITTEN

        answer = await self._server.run(insert, settle=settle)
        if answer is _Inserted.KEY_TAKEN:
            raise DuplicateIdempotencyKey("a job with this idempotency key exists")
        if answer is _Inserted.HASH_ACTIVE:
            raise DuplicateActiveJob("an active job with this request hash exists")

    async def get(self, job_id: JobId) -> Job | None:
        document = await self._documents.ask(job_id)
        return None if document is None else read_job(document)

    async def _documents_of(self, ids: Sequence[JobId]) -> Mapping[JobId, Document]:
        async def read(turn: Turn) -> Mapping[JobId, Document]:
            found = await turn.jobs.find({"_id": {"$in": id_forms(ids)}}).to_list()
            return {JobId(UUID(bytes=bytes(each["_id"]))): each for each in found}

        return await self._server.run(read)

    async def list_page(self, query: JobQuery) -> JobPage:
        async def read(turn: Turn) -> JobPage:
            wanted = await list_filter(turn.jobs, query)
            size = query.limit + 1
            page: list[tuple[JobCursor, Document]] = []
            order = list_order(query)
            async with turn.jobs.find(wanted, batch_size=size).sort(order) as documents:
                async for document in documents:
                    place = place_in_list(document)
                    if place is not None and (
                        query.config_name is None or reads_from(document, query.config_name)
                    ):
                        page.append((place, document))
                    if len(page) == size:
                        break
            jobs = [_listed(document) for _, document in page[: query.limit]]
            return JobPage(
                items=tuple(job for job in jobs if job is not None),
                next=page[query.limit - 1][0] if len(page) == size else None,
            )

        return await self._server.run(read)

    async def find_by_idempotency_key(self, key: str) -> Job | None:
        async def find(turn: Turn) -> Job | None:
            document = await turn.jobs.find_one({"idempotency_key": key})
            return None if document is None else read_job(document)

        return await self._server.run(find)

    async def give_idempotency_key(self, job_id: JobId, key: str) -> bool:
        given = await self._server.run(lambda turn: give_key(turn, job_id, key))
        if given is None:
            raise DuplicateIdempotencyKey("a job with this idempotency key exists")
        return given

    async def forget_idempotency_key(self, job_id: JobId, key: str) -> None:
        await self._server.run(lambda turn: forget_key(turn, job_id, key))

    async def is_in_use(self, config_name: str) -> bool:
        async def look(turn: Turn) -> bool:
            wanted = in_use_filter(config_name)
            async with turn.jobs.find(wanted, projection=["mapped_fields"]) as documents:
                async for document in documents:
                    if reads_from(document, config_name):
                        return True
            return False

        return await self._server.run(look)

    async def pending_counts(self, *, product_name: str) -> PendingCounts:
        pending = {"status": JobStatus.PENDING.value}
        of_product = {**pending, "metadata.source": product_filter(product_name)}

        async def count(turn: Turn) -> PendingCounts:
            return PendingCounts(
                total=await turn.jobs.count_documents(pending, limit=MOST_COUNTED),
                of_product=await turn.jobs.count_documents(of_product, limit=MOST_COUNTED),
            )

        return await self._server.run(count)

    async def mark_result_deleted(self, job_id: JobId, *, at: datetime) -> bool:
        own = {**id_filter(job_id), "status": JobStatus.COMPLETED.value}

        async def mark(turn: Turn) -> bool:
            written = await turn.jobs.update_one(
                {**own, "result_deleted_at": None}, {"$set": {"result_deleted_at": at}}
            )
            return written.matched_count == 1

        async def settle(turn: Turn) -> bool | None:
            ours = {**own, "result_deleted_at": at}
            return await turn.majority_jobs.find_one(ours) is not None or None

        return await self._server.run(mark, settle=settle)

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        async def find(turn: Turn) -> Job | None:
            since = turn.now - timedelta(seconds=within_seconds)
            wanted = {"request_hash": request_hash, "created_at": {"$gte": since}}
            document = await turn.jobs.find_one(wanted, sort=_NEWEST)
            return None if document is None else read_job(document)

        return await self._server.run(find)

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        async def find(turn: Turn) -> Job | None:
            wanted = {"request_hash": request_hash, "status": _ACTIVE}
            document = await turn.jobs.find_one(wanted, sort=_NEWEST)
            return None if document is None else read_job(document)

        return await self._server.run(find)

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        wanted: Document = {"status": _ENDED}
        if product_name is not None:
            wanted["metadata.source"] = product_filter(product_name)

        async def read(turn: Turn) -> list[Job]:
            jobs: list[Job] = []
            place = place_to_read_from(after, turn.now)
            # By the type of the bound, only dates are compared with it.
            times = {"$lte": turn.now + timedelta(seconds=AHEAD_SECONDS)}
            if place is not None:
                times["$gte"] = place.completed_at
            ended = {**wanted, "completed_at": times}
            found = turn.jobs.find(ended, batch_size=limit + 1).sort(FIRST_ENDED_FIRST)
            async with found as documents:
                async for document in documents:
                    job = _listed(document)
                    # The cursor's own instant is read again: others may come after it in there.
                    if job is not None and (
                        place is None or _place(job) > (place.completed_at, place.job_id)
                    ):
                        jobs.append(job)
                    if len(jobs) == limit:
                        break
            return jobs

        return await self._server.run(read)

    async def latest_ended(self) -> EndedCursor | None:
        async def read(turn: Turn) -> EndedCursor | None:
            until = turn.now + timedelta(seconds=AHEAD_SECONDS)
            wanted = {"status": _ENDED, "completed_at": {"$lte": until}}
            document = await turn.jobs.find_one(wanted, sort=LAST_ENDED_FIRST)
            if document is None:
                return None
            fields = DocumentFields(RECORD, document)
            return EndedCursor(
                completed_at=fields.time("completed_at"), job_id=JobId(fields.record_id())
            )

        return await self._server.run(read)

    async def latest_failed(self, *, limit: int) -> list[Job]:
        wanted: Document = {"status": JobStatus.FAILED.value, "completed_at": {"$ne": None}}

        async def read(turn: Turn) -> list[Job]:
            jobs: list[Job] = []
            async with turn.jobs.find(wanted, batch_size=limit).sort(LAST_ENDED_FIRST) as found:
                async for document in found:
                    job = _listed(document)
                    if job is not None:
                        jobs.append(job)
                    if len(jobs) == limit:
                        break
            return jobs

        return await self._server.run(read)

    async def request_cancel(self, job_id: JobId, mark: EventMark) -> CancelAnswer:
        outcome = TerminalOutcome(status=JobStatus.CANCELLED, event=mark, failure=JOB_CANCELLED)

        async def cancel(turn: Turn) -> CancelAnswer:
            for _ in range(TRIES):
                job = await find_job(turn.jobs, job_id)
                if job is None:
                    return CancelAnswer.UNKNOWN
                if not job.status.is_active:
                    cancelled = job.status is JobStatus.CANCELLED
                    return CancelAnswer.CANCELLED if cancelled else CancelAnswer.ENDED
                if await _ask_to_stop(turn, job, outcome):
                    pending = job.status is JobStatus.PENDING
                    return CancelAnswer.CANCELLED if pending else CancelAnswer.REQUESTED
            raise PortUnavailable("the job's record changes too often")

        return await self._server.run(cancel)


def _place(job: Job) -> tuple[datetime, JobId]:
    """The place in the order of ended jobs; the query lets none through without an end."""
    return job.completed_at or job.created_at, job.id


def _listed(document: Document) -> Job | None:
    """None for a record that cannot be read: whoever asks for that job is told, and nobody who
    waits for others is kept from them. Not logged, since a place is read again twice a second."""
    try:
        return read_job(document)
    except RecordCorrupt:
        return None


async def _ask_to_stop(turn: Turn, job: Job, outcome: TerminalOutcome) -> bool:
    now = turn.now
    asked = replace(job, cancel_requested=job.cancel_requested or now)
    if job.status is JobStatus.PROCESSING:
        condition = {**id_filter(job.id), "status": JobStatus.PROCESSING.value}
        already = job.cancel_requested is not None
        return already or await write_change(turn, job, asked, condition=condition)
    ended = job_transitions.ended(asked, outcome, completed_at=now)
    event = event_fields(outcome.event, now=now)
    return await write_change(turn, job, ended, condition=unchanged(job), also=event)
