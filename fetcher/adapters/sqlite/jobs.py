"""Jobs in SQLite: created, read, listed, asked to stop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from sqlite3 import Row
from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.job_lists import list_statement
from fetcher.adapters.sqlite.job_rows import ALL_OF_JOBS, end_job, find_job, next_end, save_state
from fetcher.adapters.sqlite.times import from_ms, later_ms, nearest_time, to_ms
from fetcher.adapters.together import Together
from fetcher.domain import job_transitions
from fetcher.domain.errors import DuplicateActiveJob, DuplicateIdempotencyKey, RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import (
    AHEAD_SECONDS,
    MOST_COUNTED,
    MOST_IDEMPOTENCY_KEYS,
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

_LATEST_OF_HASH: Final = """
    SELECT * FROM job WHERE request_hash = :request_hash AND created_at >= :since
    ORDER BY created_at DESC, id DESC LIMIT 1
"""
_ACTIVE_OF_HASH: Final = """
    SELECT * FROM job WHERE request_hash = :request_hash AND status IN ('pending', 'processing')
"""
_ENDED: Final = """
    SELECT * FROM job WHERE completed_at <= :most AND (completed_at, id) > (:time, :id)
    ORDER BY completed_at, id LIMIT :limit
"""
_ENDED_OF_PRODUCT: Final = """
    SELECT * FROM job WHERE product = :product
    AND completed_at <= :most AND (completed_at, id) > (:time, :id)
    ORDER BY completed_at, id LIMIT :limit
"""
_LATEST_ENDED: Final = """
    SELECT completed_at, id FROM job WHERE completed_at <= :most
    ORDER BY completed_at DESC, id DESC LIMIT 1
"""
LATEST_FAILED: Final = """
    SELECT * FROM job WHERE status = 'failed'
    AND completed_at IS NOT NULL AND (completed_at, id) < (:time, :id)
    ORDER BY completed_at DESC, id DESC LIMIT :limit
"""
_BEFORE_ALL_TIME: Final = -1
_AFTER_ALL_TIME: Final = 2**63 - 1
WITH_KEY: Final = """
    SELECT * FROM job WHERE idempotency_key = :key
    UNION ALL SELECT job.* FROM job_key JOIN job ON job.id = job_key.job_id
    WHERE job_key.key = :key
"""
_GIVE_KEY: Final = """
    UPDATE job SET idempotency_key = :key WHERE id = :id AND idempotency_key IS NULL
"""
_ADD_KEY: Final = """
    INSERT INTO job_key (key, job_id) SELECT :key, id FROM job
    WHERE id = :id AND (SELECT count(*) FROM job_key WHERE job_id = :id) + 1 < :most
"""
_FORGET_KEY: Final = """
    UPDATE job SET idempotency_key = NULL WHERE id = :id AND idempotency_key = :key
"""
_FORGET_ADDED_KEY: Final = "DELETE FROM job_key WHERE key = :key AND job_id = :id"
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
    later than every ``completed_at`` before it that the clock is not far behind. So whatever a
    reader of :meth:`list_ended` saw, a job that becomes visible afterwards stands behind it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Together(self._rows_of)

    async def insert(self, job: Job, *, dispatch_lease_seconds: float = 0.0) -> None:
        values = rows.request_values(job) | rows.state_values(job) | {"dispatch_lease_until": None}
        statement = rows.insert_statement("job", values, on_conflict="ON CONFLICT DO NOTHING")
        key = job.idempotency_key

        def insert(session: Session) -> None:
            if key is not None and session.row(WITH_KEY, key=key) is not None:
                raise DuplicateIdempotencyKey("a job with this idempotency key exists")
            if dispatch_lease_seconds:
                values["dispatch_lease_until"] = later_ms(session.now_ms, dispatch_lease_seconds)
            if not session.change(statement, values):
                raise DuplicateActiveJob("an active job with this request hash exists")
            for config_name in job.mapped_fields:
                session.change(_ADD_SOURCE, rows.source_values(job, config_name))

        await self._database.write(insert)

    async def get(self, job_id: JobId) -> Job | None:
        row = await self._rows.ask(job_id.bytes)
        return None if row is None else rows.job_of(row)

    async def _rows_of(self, ids: Sequence[bytes]) -> Mapping[bytes, Row]:
        names = {f"id{number}": job_id for number, job_id in enumerate(ids)}
        places = ", ".join(f":{name}" for name in names)
        found = await self._database.read_rows(f"{ALL_OF_JOBS} WHERE id IN ({places})", **names)
        return {row["id"]: row for row in found}

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
        return await self._database.read_row(WITH_KEY, rows.job_of, key=key)

    async def give_idempotency_key(self, job_id: JobId, key: str) -> bool:
        values: rows.Values = {"id": job_id.bytes, "key": key}

        def give(session: Session) -> bool:
            holder = session.row(WITH_KEY, key=key)
            if holder is not None and rows.job_id_of(holder) != job_id:
                raise DuplicateIdempotencyKey("a job with this idempotency key exists")
            if holder is not None or session.change(_GIVE_KEY, values):
                return True
            return session.change(_ADD_KEY, {**values, "most": MOST_IDEMPOTENCY_KEYS}) == 1

        return await self._database.write(give)

    async def forget_idempotency_key(self, job_id: JobId, key: str) -> None:
        values: rows.Values = {"id": job_id.bytes, "key": key}

        def forget(session: Session) -> None:
            session.change(_FORGET_KEY, values)
            session.change(_FORGET_ADDED_KEY, values)

        await self._database.write(forget)

    async def is_in_use(self, config_name: str) -> bool:
        used = await self._database.read_row(_IN_USE, bool, config_name=config_name)
        return used is not None

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
        return await self._database.read_row(
            _ACTIVE_OF_HASH, rows.job_of, request_hash=request_hash
        )

    async def list_ended(
        self, *, after: EndedCursor | None, limit: int, product_name: str | None = None
    ) -> list[Job]:
        statement, wanted = _ENDED, {}
        if product_name is not None:
            statement, wanted = _ENDED_OF_PRODUCT, {"product": rows.product_key(product_name)}

        def read(session: Session) -> list[Job]:
            place = place_to_read_from(after, from_ms(session.now_ms))
            start: rows.Values = {
                "time": to_ms(place.completed_at) if place is not None else _BEFORE_ALL_TIME,
                "id": place.job_id.bytes if place is not None else b"",
                "most": later_ms(session.now_ms, AHEAD_SECONDS),
            }
            return _ended_page(session, statement, {**start, **wanted}, limit=limit)

        return await self._database.read(read)

    async def latest_ended(self) -> EndedCursor | None:
        def read(session: Session) -> EndedCursor | None:
            row = session.row(_LATEST_ENDED, most=later_ms(session.now_ms, AHEAD_SECONDS))
            return _ended_place_of(row) if row is not None else None

        return await self._database.read(read)

    async def latest_failed(self, *, limit: int) -> list[Job]:
        start: rows.Values = {"time": _AFTER_ALL_TIME, "id": b""}
        return await self._database.read(
            lambda session: _ended_page(session, LATEST_FAILED, start, limit=limit)
        )

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


def _ended_page(session: Session, statement: str, values: rows.Values, *, limit: int) -> list[Job]:
    """What cannot be read takes no place: a page that is not full is the last one."""
    jobs: list[Job] = []
    while len(jobs) < limit:
        most = limit - len(jobs)
        found = session.rows(statement, **{**values, "limit": most})
        jobs += [job for row in found if (job := _listed(row)) is not None]
        if len(found) < most:
            break
        values = {**values, "time": found[-1]["completed_at"], "id": found[-1]["id"]}
    return jobs


def _place_of(row: Row) -> JobCursor:
    return JobCursor(created_at=nearest_time(row["created_at"]), job_id=rows.job_id_of(row))


def _ended_place_of(row: Row) -> EndedCursor:
    return EndedCursor(completed_at=nearest_time(row["completed_at"]), job_id=rows.job_id_of(row))


def _listed(row: Row) -> Job | None:
    """None for a record that cannot be read: whoever asks for that job is told, and nobody who
    waits for others is kept from them. Not logged, since a place is read again twice a second."""
    try:
        return rows.job_of(row)
    except RecordCorrupt:
        return None
