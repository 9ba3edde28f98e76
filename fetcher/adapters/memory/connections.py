"""Connections in memory."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime

import trio

from fetcher.adapters.memory.state import MemoryState
from fetcher.domain.connections import (
    Connection,
    ConnectionPage,
    ConnectionQuery,
    UpdateAnswer,
)
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId
from fetcher.domain.json_values import JsonObject, JsonValue


class MemoryConnections:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def insert(self, connection: Connection) -> None:
        await trio.lowlevel.checkpoint()
        self._refuse_taken_name(connection)
        self._state.connections[connection.id] = deepcopy(connection)

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        await trio.lowlevel.checkpoint()
        return deepcopy(self._find(connection_id))

    async def find_by_config_names(self, names: Sequence[str]) -> list[Connection]:
        await trio.lowlevel.checkpoint()
        wanted = set(names)
        found = [c for c in self._live() if c.config_name in wanted]
        return deepcopy(sorted(found, key=lambda c: c.config_name))

    async def list_page(self, query: ConnectionQuery) -> ConnectionPage:
        await trio.lowlevel.checkpoint()
        found = sorted(
            (c for c in self._live() if _matches(c, query)),
            key=lambda c: (c.created_at, c.id),
            reverse=not query.ascending,
        )
        items = found[query.skip : query.skip + query.limit]
        return ConnectionPage(items=tuple(deepcopy(items)), total=len(found))

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        await trio.lowlevel.checkpoint()
        stored = self._find(connection.id)
        if stored is None:
            return UpdateAnswer.GONE
        if not stored.is_as_read(before):
            return UpdateAnswer.CHANGED
        self._refuse_taken_name(connection)
        self._state.connections[connection.id] = replace(
            deepcopy(connection),
            product_name=stored.product_name,
            created_at=stored.created_at,
            deleted_at=None,
        )
        return UpdateAnswer.WRITTEN

    async def assign(
        self, connection_id: ConnectionId, *, product_name: str, at: datetime
    ) -> Connection | None:
        await trio.lowlevel.checkpoint()
        stored = self._find(connection_id)
        if stored is None or stored.product_name:
            return None
        assigned = replace(stored, product_name=product_name, updated_at=at)
        self._state.connections[connection_id] = assigned
        return deepcopy(assigned)

    async def delete(self, connection_id: ConnectionId, *, at: datetime) -> bool:
        await trio.lowlevel.checkpoint()
        stored = self._find(connection_id)
        if stored is None:
            return False
        self._state.connections[connection_id] = replace(stored, updated_at=at, deleted_at=at)
        return True

    def _find(self, connection_id: ConnectionId) -> Connection | None:
        found = self._state.connections.get(connection_id)
        return found if found is not None and found.deleted_at is None else None

    def _live(self) -> list[Connection]:
        return [c for c in self._state.connections.values() if c.deleted_at is None]

    def _refuse_taken_name(self, connection: Connection) -> None:
        if any(
            other.config_name == connection.config_name and other.id != connection.id
            for other in self._live()
        ):
            raise DuplicateConfigName("a connection with this config name exists")


def _matches(connection: Connection, query: ConnectionQuery) -> bool:
    product = query.product_name
    return (
        (product is None or _product(connection.product_name) == _product(product))
        and not (query.unassigned and connection.product_name)
        and query.type in (None, connection.type)
        and query.host in (None, connection.host)
        and query.database_name in (None, connection.database_name)
        and (query.created_from is None or connection.created_at >= query.created_from)
        and (query.created_until is None or connection.created_at < query.created_until)
        and all(
            _value_at(connection.metadata, path) == text for path, text in query.metadata.items()
        )
    )


def _product(name: str) -> str:
    """As products are compared (decisions: without case)."""
    return name.strip().lower()


def _value_at(metadata: JsonObject, path: str) -> JsonValue:
    value: JsonValue = metadata
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
