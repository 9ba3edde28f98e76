"""Connections in MongoDB."""

from collections.abc import Sequence
from datetime import datetime

from bson import Binary
from pymongo import ASCENDING, DESCENDING, ReturnDocument
from pymongo.errors import DuplicateKeyError

from fetcher.adapters.mongo.connection_documents import (
    LIVE,
    as_read,
    changed_fields,
    connection_document,
    read_connection,
)
from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.product_filter import product_filter
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.connections import (
    Connection,
    ConnectionPage,
    ConnectionQuery,
    UpdateAnswer,
)
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId

_UNASSIGNED: Document = {"product_name": {"$in": ["", None]}}
_NAME_TAKEN = "a live connection has this config name"


class MongoConnectionRecords:
    """Implements :class:`fetcher.ports.ConnectionRecords`."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def insert(self, connection: Connection) -> None:
        own = {"_id": Binary(connection.id.bytes, 0)}

        async def insert(turn: Turn) -> bool:
            try:
                await turn.connections.insert_one(connection_document(connection))
            except DuplicateKeyError:
                # Of the name by another connection, or by an earlier try of this very insert.
                return await turn.connections.find_one(own) is not None
            return True

        async def settle(turn: Turn) -> bool | None:
            return await turn.majority_connections.find_one(own) is not None or None

        if not await self._server.run(insert, settle=settle):
            raise DuplicateConfigName(_NAME_TAKEN)

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        async def get(turn: Turn) -> Connection | None:
            document = await turn.connections.find_one({**id_filter(connection_id), **LIVE})
            return None if document is None else read_connection(document)

        return await self._server.run(get)

    async def find_by_config_names(self, names: Sequence[str]) -> list[Connection]:
        async def find(turn: Turn) -> list[Connection]:
            found = turn.connections.find({"config_name": {"$in": list(names)}, **LIVE})
            return [read_connection(document) async for document in found.sort("config_name")]

        return await self._server.run(find)

    async def list_page(self, query: ConnectionQuery) -> ConnectionPage:
        wanted = _filter_of(query)
        direction = ASCENDING if query.ascending else DESCENDING
        order = [("created_at", direction), ("_id", direction)]

        async def read_page(turn: Turn) -> ConnectionPage:
            found = turn.connections.find(wanted).sort(order)
            page = found.skip(query.skip).limit(query.limit)
            items = [readable(document, read_connection) async for document in page]
            total = await turn.connections.count_documents(wanted)
            return ConnectionPage(items=tuple(filter(None, items)), total=total)

        return await self._server.run(read_page)

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        own = {**id_filter(connection.id), **LIVE}
        changed = changed_fields(connection)

        async def update(turn: Turn) -> UpdateAnswer | None:
            try:
                written = await turn.connections.update_one(
                    {**own, **as_read(before)}, {"$set": changed}
                )
            except DuplicateKeyError:
                return None
            if written.matched_count == 1:
                return UpdateAnswer.WRITTEN
            is_there = await turn.connections.find_one(own, projection=["_id"]) is not None
            return UpdateAnswer.CHANGED if is_there else UpdateAnswer.GONE

        async def settle(turn: Turn) -> UpdateAnswer | None:
            document = await turn.majority_connections.find_one(own)
            ours = document is not None and changed.items() <= document.items()
            return UpdateAnswer.WRITTEN if ours else None

        answer = await self._server.run(update, settle=settle)
        if answer is None:
            raise DuplicateConfigName(_NAME_TAKEN)
        return answer

    async def assign(
        self, connection_id: ConnectionId, *, product_name: str, at: datetime
    ) -> Connection | None:
        own = {**id_filter(connection_id), **LIVE}
        assigned = {"product_name": product_name, "updated_at": at}

        async def assign(turn: Turn) -> Connection | None:
            document = await turn.connections.find_one_and_update(
                {**own, **_UNASSIGNED},
                {"$set": assigned},
                return_document=ReturnDocument.AFTER,
            )
            return None if document is None else read_connection(document)

        async def settle(turn: Turn) -> Connection | None:
            document = await turn.majority_connections.find_one({**own, **assigned})
            return None if document is None else read_connection(document)

        return await self._server.run(assign, settle=settle)

    async def delete(self, connection_id: ConnectionId, *, at: datetime) -> bool:
        own = id_filter(connection_id)
        deleted = {"deleted_at": at, "updated_at": at}

        async def delete(turn: Turn) -> bool:
            written = await turn.connections.update_one({**own, **LIVE}, {"$set": deleted})
            return written.matched_count == 1

        async def settle(turn: Turn) -> bool | None:
            return await turn.majority_connections.find_one({**own, **deleted}) is not None or None

        return await self._server.run(delete, settle=settle)


def _filter_of(query: ConnectionQuery) -> Document:
    wanted: Document = {**LIVE}
    exact = {
        "type": query.type,
        "host": query.host,
        "database_name": query.database_name,
    }
    wanted |= {name: value for name, value in exact.items() if value is not None}
    if query.product_name is not None:
        wanted["product_name"] = product_filter(query.product_name)
    if query.unassigned:
        wanted["$and"] = [_UNASSIGNED]
    wanted |= {f"metadata.{path}": text for path, text in query.metadata.items()}
    created = {"$gte": query.created_from, "$lt": query.created_until}
    bounds = {operator: bound for operator, bound in created.items() if bound is not None}
    if bounds:
        wanted["created_at"] = bounds
    return wanted
