"""Jobs in SQLite: created, read, listed, asked to stop."""

from dataclasses import replace
from datetime import datetime
from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_lists import list_statement
from fetcher.adapters.sqlite.job_rows import end_job, find_job, next_end, save_state
from fetcher.adapters.sqlite.times import from_ms, later_ms, to_ms
from fetcher.domain import job_transitions
from fetcher.domain.errors import DuplicateActiveJob, DuplicateIdempotencyKey, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.jobs import (
    MOST_COUNTED,
    CancelAnswer,
    EndedCursor,
    EventMark,
    Job,
    JobCursor,
    JobPage,
    JobQuery,
    JobStatus,
    PendingCounts,
    TerminalOutcome,
)
from fetcher.domain.terminal_event import JOB_CANCELLED

_LATEST_OF_HASH: Final = """
    SELECT * FROM job WHERE request_hash = :request_hash AND created_at >= :since
    ORDER BY created_at DESC, id DESC LIMIT 1
"""
_ACTIVE_OF_HASH: Final = """
    SELECT * FROM job WHERE request_hash = :request_hash AND status IN ('pending', 'processing')
"""
_ENDED: Final = """
    SELECT * FROM job WHERE completed_at IS NOT NULL AND (completed_at, id) > (:time, :id)
    ORDER BY completed_at, id LIMIT :limit
"""
_ENDED_OF_PRODUCT: Final = """
    SELECT * FROM job WHERE product = :product
    AND completed_at IS NOT NULL AND (completed_at, id) > (:time, :id)
    ORDER BY completed_at, id LIMIT :limit
"""
_BEFORE_ALL_TIME: Final = -1
_WITH_KEY: Final = "SELECT * FROM job WHERE idempotency_key = :key"
_GIVE_KEY: Final = """
    UPDATE job SET idempotency_key = :key
    WHERE id = :id AND (idempotency_key IS NULL OR idempotency_key = :key)
"""
_ADD_SOURCE: Final = """
    INSERT INTO job_source (config_name, created_at, job_id)
    VALUES (:config_name, :created_at, :id)
"""
# Active jobs are few, those that ever read from one connection may be a million.
_IN_USE: Final = """
    SELECT 1 FROM job INDEXED BY job_active_hash
    WHERE status IN ('pending', 'processing')
    AND (status = 'processing' OR waiting_reason IS NULL)
    AND EXISTS (
        SELECT 1 FROM job_source
        WHERE config_name = :config_name AND created_at = job.created_at AND job_id = job.id
    )
    LIMIT 1
"""
_PENDING: Final = """
    SELECT count(*) FROM (SELECT 1 FROM job WHERE status = 'pending' LIMIT :most)
"""
_PENDING_OF_PRODUCT: Final = """
    SELECT count(*) FROM
    (SELECT 1 FROM job WHERE status = 'pending' AND product = :product LIMIT :most)
"""


class SqliteJobs:
    """The order of ended jobs has no gaps that fill later.

    ``completed_at`` is taken inside the write transaction, of which there is one at a time, and is
    later than every ``completed_at`` before it. So whatever a reader of :meth:`list_ended` saw, a
    job that becomes visible afterwards stands behind it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, job: Job) -> None:
        values = rows.request_values(job) | rows.state_values(job)
        statement = rows.insert_statement("job", values, on_conflict="ON CONFLICT DO NOTHING")
        key = job.idempotency_key

        def insert(session: Session) -> None:
            if key is not None and session.row(_WITH_KEY, key=key) is not None:
                raise DuplicateIdempotencyKey("a job with this idempotency key exists")
            if not session.change(statement, values):
                raise DuplicateActiveJob("an active job with this request hash exists")
            for config_name in job.mapped_fields:
                session.change(_ADD_SOURCE, rows.source_values(job, config_name))

        await self._database.write(insert)

    async def get(self, job_id: JobId) -> Job | None:
        return await self._database.read(lambda session: find_job(session, job_id))

    async def list_page(self, query: JobQuery) -> JobPage:
        statement, values = list_statement(query)

        def find(session: Session) -> JobPage:
            found = session.rows(statement, **values)
            page = found[: query.limit]
            jobs = (_listed(row) for row in page)
            return JobPage(
                items=tuple(job for job in jobs if job is not None),
                next=_place_of(page[-1]) if len(found) > len(page) else None,
            )

        return await self._database.read(find)

    async def find_by_idempotency_key(self, key: str) -> Job | None:
        def find(session: Session) -> Job | None:
            row = session.row(_WITH_KEY, key=key)
            return rows.job_of(row) if row is not None else None

        return await self._database.read(find)

    async def give_idempotency_key(self, job_id: JobId, key: str) -> bool:
        values: rows.Values = {"id": job_id.bytes, "key": key}

        def give(session: Session) -> bool:
            holder = session.row(_WITH_KEY, key=key)
            if holder is not None and rows.job_id_of(holder) != job_id:
                raise DuplicateIdempotencyKey("a job with this idempotency key exists")
            return session.change(_GIVE_KEY, values) == 1

        return await self._database.write(give)

    async def forget_idempotency_key(self, job_id: JobId, key: str) -> None:
        statement = (
            "UPDATE job SET idempotency_key = NULL WHERE id = :id AND idempotency_key = :key"
        )
        values: rows.Values = {"id": job_id.bytes, "key": key}
        await self._database.write(lambda session: session.change(statement, values))

    async def is_in_use(self, config_name: str) -> bool:
        return await self._database.read(
            lambda session: session.row(_IN_USE, config_name=config_name) is not None
        )

    async def pending_counts(self, *, product_name: str) -> PendingCounts:
        product = rows.product_key(product_name)

        def count(session: Session) -> PendingCounts:
            of_product = session.rows(_PENDING_OF_PRODUCT, product=product, most=MOST_COUNTED)
            return PendingCounts(
                total=session.rows(_PENDING, most=MOST_COUNTED)[0][0], of_product=of_product[0][0]
            )

        return await self._database.read(count)

    async def mark_result_deleted(self, job_id: JobId, *, at: datetime) -> bool:
        statement = (
            "UPDATE job SET result_deleted_at = :at"
            " WHERE id = :id AND status = 'completed' AND result_deleted_at IS NULL"
        )
        values: rows.Values = {"id": job_id.bytes, "at": to_ms(at)}
        return await self._database.write(lambda session: session.change(statement, values)) == 1

    async def find_latest_by_hash(self, request_hash: str, *, within_seconds: float) -> Job | None:
        def find(session: Session) -> Job | None:
            since = later_ms(session.now_ms, -within_seconds)
            row = session.row(_LATEST_OF_HASH, request_hash=request_hash, since=since)
            return rows.job_of(row) if row is not None else None

        return await self._database.read(find)

    async def find_active_by_hash(self, request_hash: str) -> Job | None:
        def find(session: Session) -> Job | None:
            row = session.row(_ACTIVE_OF_HASH, request_hash=request_hash)
            return rows.job_of(row) if row is not None else None

        return await self._database.read(find)

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        time = to_ms(after.completed_at) if after is not None else _BEFORE_ALL_TIME
        job_id = after.job_id.bytes if after is not None else b""

        def find(session: Session) -> list[Job]:
            found = (
                session.rows(_ENDED, time=time, id=job_id, limit=limit)
                if product_name is None
                else session.rows(
                    _ENDED_OF_PRODUCT,
                    product=rows.product_key(product_name),
                    time=time,
                    id=job_id,
                    limit=limit,
                )
            )
            return [job for row in found if (job := _listed(row)) is not None]

        return await self._database.read(find)

    async def latest_ended(self) -> EndedCursor | None:
        def find(session: Session) -> EndedCursor | None:
            row = session.row(
                "SELECT completed_at, id FROM job WHERE completed_at IS NOT NULL"
                " ORDER BY completed_at DESC, id DESC LIMIT 1"
            )
            if row is None:
                return None
            return EndedCursor(
                completed_at=from_ms(row["completed_at"]), job_id=rows.job_id_of(row)
            )

        return await self._database.read(find)

    async def request_cancel(self, job_id: JobId, mark: EventMark) -> CancelAnswer:
        def cancel(session: Session) -> CancelAnswer:
            job = find_job(session, job_id)
            if job is None:
                return CancelAnswer.UNKNOWN
            if job.status is JobStatus.PROCESSING:
                asked_at = job.cancel_requested or from_ms(session.now_ms)
                save_state(session, replace(job, cancel_requested=asked_at))
                return CancelAnswer.REQUESTED
            if job.status is JobStatus.PENDING:
                outcome = TerminalOutcome(
                    status=JobStatus.CANCELLED, event=mark, failure=JOB_CANCELLED
                )
                completed_at = next_end(session)
                ended = job_transitions.ended(job, outcome, completed_at=completed_at)
                end_job(session, replace(ended, cancel_requested=completed_at), outcome)
                return CancelAnswer.CANCELLED
            return (
                CancelAnswer.CANCELLED if job.status is JobStatus.CANCELLED else CancelAnswer.ENDED
            )

        return await self._database.write(cancel)


def _place_of(row: Row) -> JobCursor:
    return JobCursor(created_at=from_ms(row["created_at"]), job_id=rows.job_id_of(row))


def _listed(row: Row) -> Job | None:
    """None for a record that cannot be read: whoever asks for that job is told, and nobody who
    waits for others is kept from them. Not logged, since a place is read again twice a second."""
    try:
        return rows.job_of(row)
    except RecordCorrupt:
        return None
