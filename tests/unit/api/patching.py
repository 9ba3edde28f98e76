"""One connection that is changed."""

from typing import Any

from fetcher.domain.connections import Connection
from fetcher.domain.ids import new_connection_id
from tests.unit.api.harness import CONNECTIONS, Answered, Api, a_connection, an_api

PEM = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n"
ID = new_connection_id()


async def an_api_with_one(connection: Connection | None = None, **options: Any) -> Api:
    api = an_api(**options)
    await api.records.connections.insert(connection or a_connection(id=ID))
    return api


async def patch(api: Api, body: object) -> Answered:
    return await api.call("PATCH", f"{CONNECTIONS}/{ID}", body)


async def kept(api: Api) -> Connection:
    connection = await api.records.connections.get(ID)
    assert connection is not None
    return connection
