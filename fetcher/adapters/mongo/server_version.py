"""What a MongoDB says of itself."""

from typing import Final

import pymongo
from pymongo import AsyncMongoClient

from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.failures import call_mongo

ASK_SECONDS: Final = 5.0
CROSSING_SLACK_SECONDS: Final = 0.5
"""How much later than the driver's own deadline the bridge cuts the call off."""


async def server_version(client: AsyncMongoClient[Document]) -> str:
    """As the server words it; needs neither the indexes nor the clock. Raise PortUnavailable."""

    async def ask() -> str:
        with pymongo.timeout(ASK_SECONDS):
            return str((await client.admin.command("buildInfo")).get("version", ""))

    return await call_mongo(ASK_SECONDS + CROSSING_SLACK_SECONDS, ask)
