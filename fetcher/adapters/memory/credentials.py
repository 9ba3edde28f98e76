"""What is sealed in connections in memory."""

from collections.abc import Sequence
from dataclasses import replace

import trio

from fetcher.adapters.memory.state import MemoryState
from fetcher.domain.connections import Connection, ConnectionName, UpdateAnswer


class MemoryCredentials:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def list_names(self) -> Sequence[ConnectionName]:
        await trio.lowlevel.checkpoint()
        live = (c for c in self._state.connections.values() if c.deleted_at is None)
        return [
            ConnectionName(id=each.id, config_name=each.config_name)
            for each in sorted(live, key=lambda c: c.id)
        ]

    async def reseal(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        await trio.lowlevel.checkpoint()
        stored = self._state.connections.get(connection.id)
        if stored is None or stored.deleted_at is not None:
            return UpdateAnswer.GONE
        if not stored.is_as_read(before):
            return UpdateAnswer.CHANGED
        self._state.connections[connection.id] = replace(
            stored,
            password_encrypted=connection.password_encrypted,
            encryption_key_version=connection.encryption_key_version,
            tls=stored.tls and replace(stored.tls, key=connection.sealed_tls_key),
        )
        return UpdateAnswer.WRITTEN
