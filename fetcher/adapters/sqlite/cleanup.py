"""Objects of lost attempts that wait to be deleted, noted beside their job."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import structlog

from fetcher.adapters.sqlite import json_columns, rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.times import later_ms
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import JobId
from fetcher.domain.job_transitions import UNREADABLE_SECONDS
from fetcher.domain.json_text import dumps
from fetcher.domain.result_keys import LATE_WRITE_SECONDS

log = structlog.get_logger(__name__)

_COLUMN: Final = "cleanup_keys"
_NOTE: Final = """
    UPDATE job SET cleanup_keys = :keys,
        cleanup_due = min(coalesce(cleanup_due, :now), :now),
        cleanup_until = max(coalesce(cleanup_until, :until), :until)
    WHERE id = :id
"""
_LEAVE: Final = "UPDATE job SET cleanup_keys = :keys WHERE id = :id"
_LOOK_AGAIN: Final = "UPDATE job SET cleanup_due = cleanup_until WHERE id = :id"
_PUSH_BACK: Final = """
    UPDATE job SET cleanup_due = :due WHERE id = :id AND cleanup_due IS NOT NULL
"""
_CLEAR: Final = """
    UPDATE job SET cleanup_keys = NULL, cleanup_due = NULL, cleanup_until = NULL WHERE id = :id
"""
_NOTED: Final = "SELECT cleanup_keys, coalesce(cleanup_until, 0) AS until FROM job WHERE id = :id"
_DUE: Final = """
    SELECT id, cleanup_keys FROM job WHERE cleanup_due <= :now ORDER BY cleanup_due, id LIMIT :limit
"""


class SqliteCleanup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(
        self, job_id: JobId, keys: Sequence[str], *, late_seconds: float = LATE_WRITE_SECONDS
    ) -> None:
        def note(session: Session) -> None:
            row = session.row(_NOTED, id=job_id.bytes)
            if row is None:
                return
            now = session.now_ms
            times = {"now": now, "until": later_ms(now, late_seconds)}
            together = dumps(list(dict.fromkeys((*_noted(row), *keys))))
            session.change(_NOTE, {"id": job_id.bytes, "keys": together, **times})

        if keys:
            await self._database.write(note)

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]:
        def find(session: Session) -> tuple[list[tuple[JobId, tuple[str, ...]]], list[JobId]]:
            due, unreadable = [], []
            for row in session.rows(_DUE, now=session.now_ms, limit=limit):
                job_id = rows.job_id_of(row)
                try:
                    due.append((job_id, _keys(row[_COLUMN])))
                except RecordCorrupt as corrupt:
                    log.error("record_corrupt", what=str(corrupt), record_id=row["id"].hex())
                    unreadable.append(job_id)
            return due, unreadable

        due, unreadable = await self._database.read(find)
        while unreadable:
            for job_id in unreadable:
                await self.push_back(job_id, seconds=UNREADABLE_SECONDS)
            due, unreadable = await self._database.read(find)
        return due

    async def push_back(self, job_id: JobId, *, seconds: float) -> None:
        def push_back(session: Session) -> None:
            due = later_ms(session.now_ms, seconds)
            session.change(_PUSH_BACK, {"id": job_id.bytes, "due": due})

        await self._database.write(push_back)

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        def clear(session: Session) -> None:
            row = session.row(_NOTED, id=job_id.bytes)
            if row is None:
                return
            left = [key for key in _noted(row) if key not in keys]
            may_come_late = row["until"] > session.now_ms
            if not left:
                session.change(_LOOK_AGAIN if may_come_late else _CLEAR, {"id": job_id.bytes})
            elif not may_come_late:
                session.change(_LEAVE, {"id": job_id.bytes, "keys": dumps(left)})

        await self._database.write(clear)


def _noted(row: sqlite3.Row) -> tuple[str, ...]:
    return _keys(row[_COLUMN]) if row[_COLUMN] is not None else ()


def _keys(text: str) -> tuple[str, ...]:
    return json_columns.load(_COLUMN, text, json_columns.texts)
