"""Breakers of connections in SQLite."""

from collections.abc import Mapping, Sequence
from sqlite3 import Row
from typing import Final
from uuid import UUID

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import from_ms, later_ms, optional_time_of, time_of, to_ms
from fetcher.domain.breakers import (
    REMEMBERED_SECONDS,
    Breaker,
    BreakerChange,
    BreakerRule,
    SourceDown,
)
from fetcher.domain.ids import ConnectionId

_FORGET: Final = "DELETE FROM connection_breaker WHERE changed_at <= :until"
_FIND: Final = "SELECT * FROM connection_breaker WHERE id = :id AND changed_at > :until"
_COUNT_OPEN: Final = """
    SELECT count(*) FROM connection_breaker WHERE retry_at IS NOT NULL AND changed_at > :until
"""
_LIST_OPEN: Final = """
    SELECT * FROM connection_breaker WHERE retry_at IS NOT NULL AND changed_at > :until
    ORDER BY changed_at DESC, id DESC LIMIT :limit
"""
_DELETE: Final = "DELETE FROM connection_breaker WHERE id = :id"


class SqliteBreakers:
    """A change is one transaction that reads the record, lets the rule judge it and writes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, connection_ids: Sequence[ConnectionId]) -> Mapping[ConnectionId, Breaker]:
        def find(session: Session) -> Mapping[ConnectionId, Breaker]:
            found = {each: _find(session, each) for each in connection_ids}
            return {each: breaker for each, breaker in found.items() if breaker is not None}

        return await self._database.read(find)

    async def change(self, connection_id: ConnectionId, rule: BreakerRule) -> BreakerChange:
        def change(session: Session) -> BreakerChange:
            session.change(_FORGET, {"until": _forgotten_until(session)})
            now = from_ms(session.now_ms)
            before = _find(session, connection_id)
            after = rule(before, now)
            if after is not before:
                session.change(_DELETE, {"id": connection_id.bytes})
                if after is not None:
                    values = _values(after)
                    session.change(rows.insert_statement("connection_breaker", values), values)
            return BreakerChange(before=before, after=after, at=now)

        return await self._database.write(change)

    async def count_open(self) -> int:
        def count(session: Session) -> int:
            found: int = session.rows(_COUNT_OPEN, until=_forgotten_until(session))[0][0]
            return found

        return await self._database.read(count)

    async def list_open(self, *, limit: int) -> Sequence[Breaker]:
        def find(session: Session) -> Sequence[Breaker]:
            found = session.rows(_LIST_OPEN, until=_forgotten_until(session), limit=limit)
            return readable(found, _breaker_of)

        return await self._database.read(find)


def _forgotten_until(session: Session) -> int:
    return later_ms(session.now_ms, -REMEMBERED_SECONDS)


def _find(session: Session, connection_id: ConnectionId) -> Breaker | None:
    """One that cannot be read holds nobody back, and the next failure is written over it."""
    found = session.rows(_FIND, id=connection_id.bytes, until=_forgotten_until(session))
    return next(iter(readable(found, _breaker_of)), None)


def _values(breaker: Breaker) -> rows.Values:
    return {
        "id": breaker.connection_id.bytes,
        "config_name": breaker.config_name,
        "version": to_ms(breaker.version),
        "stage": breaker.down.stage,
        "reason": breaker.down.reason,
        "failures": breaker.failures,
        "openings": breaker.openings,
        "retry_at": to_ms(breaker.retry_at),
        "probe_token": breaker.probe_token,
        "probe_until": to_ms(breaker.probe_until),
        "changed_at": to_ms(breaker.changed_at),
    }


def _breaker_of(row: Row) -> Breaker:
    return Breaker(
        connection_id=ConnectionId(UUID(bytes=row["id"])),
        config_name=row["config_name"],
        version=time_of(row, "version"),
        down=SourceDown(stage=row["stage"], reason=row["reason"]),
        failures=row["failures"],
        openings=row["openings"],
        retry_at=optional_time_of(row, "retry_at"),
        probe_token=row["probe_token"],
        probe_until=optional_time_of(row, "probe_until"),
        changed_at=time_of(row, "changed_at"),
    )
