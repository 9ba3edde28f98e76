"""Connections in MongoDB."""

from collections.abc import Sequence

from bson import Binary
from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError

from fetcher.adapters.mongo.connection_documents import connection_document, read_connection
from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.product_filter import product_filter
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.connections import Connection, ConnectionPage, ConnectionQuery
from fetcher.domain.errors import DuplicateConfigName
from fetcher.domain.ids import ConnectionId

_LIVE: Document = {"deleted_at": None}


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
            raise DuplicateConfigName("a live connection has this config name")

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        async def get(turn: Turn) -> Connection | None:
            document = await turn.connections.find_one({**id_filter(connection_id), **_LIVE})
            return None if document is None else read_connection(document)

        return await self._server.run(get)

    async def find_by_config_names(self, names: Sequence[str]) -> list[Connection]:
        async def find(turn: Turn) -> list[Connection]:
            found = turn.connections.find({"config_name": {"$in": list(names)}, **_LIVE})
            return [read_connection(document) async for document in found.sort("config_name")]

        return await self._server.run(find)

    async def list_page(self, query: ConnectionQuery) -> ConnectionPage:
        wanted = _filter_of(query)
        direction = ASCENDING if query.ascending else DESCENDING
        order = [("created_at", direction), ("_id", direction)]

        async def read_page(turn: Turn) -> ConnectionPage:
            found = turn.connections.find(wanted).sort(order)
            page = found.skip((query.page - 1) * query.limit).limit(query.limit)
            items = tuple([read_connection(document) async for document in page])
            total = await turn.connections.count_documents(wanted)
            return ConnectionPage(items=items, total=total)

        return await self._server.run(read_page)


def _filter_of(query: ConnectionQuery) -> Document:
    wanted: Document = {**_LIVE}
    exact = {
        "type": query.type,
        "host": query.host,
        "database_name": query.database_name,
    }
    wanted |= {name: value for name, value in exact.items() if value is not None}
    if query.product_name is not None:
        wanted["product_name"] = product_filter(query.product_name)
    wanted |= {f"metadata.{path}": text for path, text in query.metadata.items()}
    created = {"$gte": query.created_from, "$lt": query.created_until}
    bounds = {operator: bound for operator, bound in created.items() if bound is not None}
    if bounds:
        wanted["created_at"] = bounds
    return wanted
