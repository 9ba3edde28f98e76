"""What is sealed in connections in MongoDB."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fetcher.adapters.mongo.connection_documents import (
    LIVE,
    RECORD,
    as_read,
    read_connection,
    sealed_fields,
)
from fetcher.adapters.mongo.document_fields import DocumentFields, id_filter
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.connections import Connection, ConnectionName, UpdateAnswer
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import ConnectionId


class MongoSealedCredentials:
    """Implements :class:`fetcher.ports.SealedCredentials`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def list_names(self) -> Sequence[ConnectionName]:
        async def find(turn: Turn) -> list[ConnectionName]:
            found = turn.connections.find(LIVE, projection=["config_name"]).sort("_id")
            return [_name_of(document) async for document in found]

        return await self._server.run(find)

    async def reseal(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        own = {**id_filter(connection.id), **LIVE}
        # A path below `ssl` is written where there is one alone: it would make it otherwise.
        written = {name: text for name, text in sealed_fields(connection).items() if text}

        async def reseal(turn: Turn) -> UpdateAnswer:
            answer = await turn.connections.update_one(
                {**own, **as_read(before)}, {"$set": written}
            )
            if answer.matched_count == 1:
                return UpdateAnswer.WRITTEN
            is_there = await turn.connections.find_one(own, projection=["_id"]) is not None
            return UpdateAnswer.CHANGED if is_there else UpdateAnswer.GONE

        async def settle(turn: Turn) -> UpdateAnswer | None:
            document = await turn.majority_connections.find_one(own)
            ours = document is not None and read_connection(document).is_as_read(connection)
            return UpdateAnswer.WRITTEN if ours else None

        return await self._server.run(reseal, settle=settle)


def _name_of(document: Mapping[str, Any]) -> ConnectionName:
    name = document.get("config_name")
    connection_id: ConnectionId | None = None
    with suppress(RecordCorrupt):
        connection_id = ConnectionId(DocumentFields(RECORD, document).record_id())
    return ConnectionName(id=connection_id, config_name=name if isinstance(name, str) else "")
