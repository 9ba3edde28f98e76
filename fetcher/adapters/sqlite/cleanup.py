"""Objects of lost attempts that wait to be deleted, noted beside their job."""

from collections.abc import Sequence
from typing import Final

from fetcher.adapters.sqlite import json_columns, rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.domain.ids import JobId
from fetcher.domain.json_text import dumps

_COLUMN: Final = "cleanup_keys"
_NOTE: Final = """
    UPDATE job SET cleanup_keys = :keys, cleanup_due = coalesce(cleanup_due, :now) WHERE id = :id
"""
_CLEAR: Final = "UPDATE job SET cleanup_keys = NULL, cleanup_due = NULL WHERE id = :id"
_DUE: Final = """
    SELECT id, cleanup_keys FROM job WHERE cleanup_due <= :now ORDER BY cleanup_due, id LIMIT :limit
"""


class SqliteCleanup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, job_id: JobId, keys: Sequence[str]) -> None:
        def note(session: Session) -> None:
            noted = _noted(session, job_id)
            if noted is None:
                return
            together = dumps(list(dict.fromkeys((*noted, *keys))))
            session.change(_NOTE, {"id": job_id.bytes, "keys": together, "now": session.now_ms})

        if keys:
            await self._database.write(note)

    async def find_due(self, *, limit: int) -> list[tuple[JobId, tuple[str, ...]]]:
        def find(session: Session) -> list[tuple[JobId, tuple[str, ...]]]:
            found = session.rows(_DUE, now=session.now_ms, limit=limit)
            return [(rows.job_id_of(row), _keys(row[_COLUMN])) for row in found]

        return await self._database.read(find)

    async def clear(self, job_id: JobId, keys: Sequence[str]) -> None:
        def clear(session: Session) -> None:
            noted = _noted(session, job_id)
            if noted is None:
                return
            left = [key for key in noted if key not in keys]
            if left:
                session.change(
                    _NOTE, {"id": job_id.bytes, "keys": dumps(left), "now": session.now_ms}
                )
            else:
                session.change(_CLEAR, {"id": job_id.bytes})

        await self._database.write(clear)


def _noted(session: Session, job_id: JobId) -> tuple[str, ...] | None:
    """None where there is no such job."""
    row = session.row("SELECT cleanup_keys FROM job WHERE id = :id", id=job_id.bytes)
    if row is None:
        return None
    return _keys(row[_COLUMN]) if row[_COLUMN] is not None else ()


def _keys(text: str) -> tuple[str, ...]:
    return json_columns.load(_COLUMN, text, json_columns.texts)
