"""What is sealed in connections in SQLite."""

from collections.abc import Sequence
from sqlite3 import Row
from typing import Final
from uuid import UUID

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.connections import live_connection
from fetcher.adapters.sqlite.database import Database, Session
from fetcher.domain.connections import Connection, ConnectionName, UpdateAnswer
from fetcher.domain.ids import ConnectionId

_NAMES: Final = "SELECT id, config_name FROM connection WHERE deleted_at IS NULL ORDER BY id"
_WRITTEN: Final = ("id", "password_encrypted", "encryption_key_version", "tls")


class SqliteCredentials:
    """Implements :class:`fetcher.ports.SealedCredentials`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_names(self) -> Sequence[ConnectionName]:
        def find(session: Session) -> list[ConnectionName]:
            return [_name_of(row) for row in session.rows(_NAMES)]

        return await self._database.read(find)

    async def reseal(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        def reseal(session: Session) -> UpdateAnswer:
            stored = live_connection(session, connection.id)
            if stored is None:
                return UpdateAnswer.GONE
            if not stored.is_as_read(before):
                return UpdateAnswer.CHANGED
            every = rows.connection_values(connection)
            values = {name: every[name] for name in _WRITTEN}
            session.change(rows.update_statement("connection", values), values)
            return UpdateAnswer.WRITTEN

        return await self._database.write(reseal)


def _name_of(row: Row) -> ConnectionName:
    return ConnectionName(id=ConnectionId(UUID(bytes=row["id"])), config_name=row["config_name"])
