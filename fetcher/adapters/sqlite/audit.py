"""The audit trail in SQLite."""

from sqlite3 import Row
from typing import Final
from uuid import UUID

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import nearest_time, time_of, to_ms
from fetcher.domain.audit import AuditAction, AuditCursor, AuditEntry, AuditPage, AuditQuery

_ACTIONS: Final = frozenset(AuditAction)
_DELETE: Final = """
    DELETE FROM audit WHERE id IN
    (SELECT id FROM audit WHERE time < :until ORDER BY time, id LIMIT :limit)
"""


class SqliteAudit:
    """Implements :class:`fetcher.ports.AuditTrail`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, entry: AuditEntry) -> None:
        values: rows.Values = {
            "id": entry.id.bytes,
            "time": to_ms(entry.time),
            "actor": entry.actor,
            "action": entry.action.value,
            "target": entry.target,
            "product": entry.product,
            "request_id": entry.request_id,
            "outcome": entry.outcome,
        }
        statement = rows.insert_statement("audit", values, on_conflict="ON CONFLICT DO NOTHING")
        await self._database.write(lambda session: session.change(statement, values))

    async def list_page(self, query: AuditQuery) -> AuditPage:
        statement, values = page_statement(query)

        def find(session: Session) -> AuditPage:
            found = session.rows(statement, **values)
            page = found[: query.limit]
            return AuditPage(
                items=tuple(readable((row for row in page if row["action"] in _ACTIONS), _entry)),
                next=_place(page[-1]) if len(found) > len(page) else None,
            )

        return await self._database.read(find)

    async def delete_old(self, *, older_than_seconds: float, limit: int) -> int:
        def delete(session: Session) -> int:
            until = session.old_ms(older_than_seconds)
            return session.change(_DELETE, {"until": until, "limit": limit})

        return await self._database.write(delete)


def page_statement(query: AuditQuery) -> tuple[str, rows.Values]:
    """Rows of one page; one more than it asks for, where there is one."""
    wanted: rows.Values = {
        name: value
        for name, value in (
            ("actor", query.actor),
            ("action", query.action.value if query.action is not None else None),
            ("target", query.target),
        )
        if value is not None
    }
    conditions = [f"{name} = :{name}" for name in wanted]
    values: rows.Values = {**wanted, "limit": query.limit + 1}
    if query.before is not None:
        conditions.append("(time, id) < (:before_time, :before_id)")
        values |= {"before_time": to_ms(query.before.time), "before_id": query.before.id.bytes}
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    statement = f"SELECT * FROM audit {where} ORDER BY time DESC, id DESC LIMIT :limit"  # noqa: S608  # our names
    return statement, values


def _place(row: Row) -> AuditCursor:
    return AuditCursor(time=nearest_time(row["time"]), id=UUID(bytes=row["id"]))


def _entry(row: Row) -> AuditEntry:
    return AuditEntry(
        id=UUID(bytes=row["id"]),
        time=time_of(row, "time"),
        actor=row["actor"],
        action=AuditAction(row["action"]),
        target=row["target"],
        product=row["product"],
        request_id=row["request_id"],
        outcome=row["outcome"],
    )
