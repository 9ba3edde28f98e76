"""Connections in SQLite."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.metadata_filter import metadata_filter
from fetcher.adapters.sqlite.readable import readable
from fetcher.adapters.sqlite.times import to_ms
from fetcher.domain.connections import (
    Connection,
    ConnectionPage,
    ConnectionQuery,
    UpdateAnswer,
)
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId

_MATCHING: Final = """
    FROM connection WHERE deleted_at IS NULL
    AND (:product IS NULL OR product = :product)
    AND (:unassigned = 0 OR product_name = '')
    AND (:type IS NULL OR type = :type)
    AND (:host IS NULL OR host = :host)
    AND (:database_name IS NULL OR database_name = :database_name)
    AND (:created_from IS NULL OR created_at >= :created_from)
    AND (:created_until IS NULL OR created_at < :created_until)
    AND (:metadata IS NULL OR metadata_has(CAST(metadata AS BLOB), :metadata))
"""
_COUNT: Final = f"SELECT count(*) {_MATCHING}"
_OLDEST_FIRST: Final = f"SELECT * {_MATCHING} ORDER BY created_at, id LIMIT :limit OFFSET :skip"
_NEWEST_FIRST: Final = (
    f"SELECT * {_MATCHING} ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :skip"
)
_LIVE_BY_ID: Final = "SELECT * FROM connection WHERE id = :id AND deleted_at IS NULL"
_NAME_IS_TAKEN: Final = """
    SELECT 1 FROM connection WHERE config_name = :config_name AND deleted_at IS NULL AND id <> :id
"""
_ASSIGN: Final = """
    UPDATE connection SET product_name = :product_name, product = :product, updated_at = :at
    WHERE id = :id AND deleted_at IS NULL AND product_name = ''
"""
_DELETE: Final = """
    UPDATE connection SET deleted_at = :at, updated_at = :at WHERE id = :id AND deleted_at IS NULL
"""


class SqliteConnections:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, connection: Connection) -> None:
        values = rows.connection_values(connection)
        statement = rows.insert_statement(
            "connection", values, on_conflict="ON CONFLICT DO NOTHING"
        )
        if not await self._database.write(lambda session: session.change(statement, values)):
            raise DuplicateConfigName("a connection with this config name exists")

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        return await self._database.read_row(
            _LIVE_BY_ID, rows.connection_of, id=connection_id.bytes
        )

    async def find_by_config_names(self, names: Sequence[str]) -> list[Connection]:
        def find(session: Session) -> list[Connection]:
            return [
                rows.connection_of(row)
                for name in sorted(set(names))
                for row in session.rows(
                    "SELECT * FROM connection WHERE config_name = :name AND deleted_at IS NULL",
                    name=name,
                )
            ]

        return await self._database.read(find)

    async def list_page(self, query: ConnectionQuery) -> ConnectionPage:
        wanted = {
            "product": None if query.product_name is None else rows.product_key(query.product_name),
            "unassigned": int(query.unassigned),
            "type": query.type,
            "host": query.host,
            "database_name": query.database_name,
            "created_from": to_ms(query.created_from),
            "created_until": to_ms(query.created_until),
            "metadata": metadata_filter(query.metadata),
        }
        statement = _OLDEST_FIRST if query.ascending else _NEWEST_FIRST

        def find(session: Session) -> ConnectionPage:
            total = session.rows(_COUNT, **wanted)[0][0]
            page = session.rows(statement, **wanted, limit=query.limit, skip=query.skip)
            return ConnectionPage(items=tuple(readable(page, rows.connection_of)), total=total)

        return await self._database.read(find)

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        def update(session: Session) -> UpdateAnswer:
            stored = live_connection(session, connection.id)
            if stored is None:
                return UpdateAnswer.GONE
            if not stored.is_as_read(before):
                return UpdateAnswer.CHANGED
            own_id = connection.id.bytes
            if session.row(_NAME_IS_TAKEN, config_name=connection.config_name, id=own_id):
                raise DuplicateConfigName("a connection with this config name exists")
            kept = replace(
                connection,
                product_name=stored.product_name,
                created_at=stored.created_at,
                deleted_at=None,
            )
            values = rows.connection_values(kept)
            session.change(rows.update_statement("connection", values), values)
            return UpdateAnswer.WRITTEN

        return await self._database.write(update)

    async def assign(
        self, connection_id: ConnectionId, *, product_name: str, at: datetime
    ) -> Connection | None:
        values: rows.Values = {
            "id": connection_id.bytes,
            "product_name": product_name,
            "product": rows.product_key(product_name),
            "at": to_ms(at),
        }

        def assign(session: Session) -> Connection | None:
            is_ours = session.change(_ASSIGN, values)
            return live_connection(session, connection_id) if is_ours else None

        return await self._database.write(assign)

    async def delete(self, connection_id: ConnectionId, *, at: datetime) -> bool:
        values: rows.Values = {"id": connection_id.bytes, "at": to_ms(at)}
        return await self._database.write(lambda session: session.change(_DELETE, values)) == 1


def live_connection(session: Session, connection_id: ConnectionId) -> Connection | None:
    """None: not there, or deleted. Raise RecordCorrupt."""
    row = session.row(_LIVE_BY_ID, id=connection_id.bytes)
    return rows.connection_of(row) if row is not None else None
