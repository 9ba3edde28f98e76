"""Connections in SQLite."""

from collections.abc import Sequence
from typing import Final

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.adapters.sqlite.metadata_filter import metadata_filter
from fetcher.adapters.sqlite.times import to_ms
from fetcher.domain.connections import Connection, ConnectionPage, ConnectionQuery
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId

_MATCHING: Final = """
    FROM connection WHERE deleted_at IS NULL
    AND (:product IS NULL OR product = :product)
    AND (:type IS NULL OR type = :type)
    AND (:host IS NULL OR host = :host)
    AND (:database_name IS NULL OR database_name = :database_name)
    AND (:created_from IS NULL OR created_at >= :created_from)
    AND (:created_until IS NULL OR created_at < :created_until)
    AND (:metadata IS NULL OR metadata_has(metadata, :metadata))
"""
_COUNT: Final = f"SELECT count(*) {_MATCHING}"
_OLDEST_FIRST: Final = f"SELECT * {_MATCHING} ORDER BY created_at, id LIMIT :limit OFFSET :skip"
_NEWEST_FIRST: Final = (
    f"SELECT * {_MATCHING} ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :skip"
)


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
        def find(session: Session) -> Connection | None:
            row = session.row(
                "SELECT * FROM connection WHERE id = :id AND deleted_at IS NULL",
                id=connection_id.bytes,
            )
            return rows.connection_of(row) if row is not None else None

        return await self._database.read(find)

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
            page = session.rows(
                statement, **wanted, limit=query.limit, skip=(query.page - 1) * query.limit
            )
            return ConnectionPage(items=tuple(map(rows.connection_of, page)), total=total)

        return await self._database.read(find)
