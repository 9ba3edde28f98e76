"""The record store in MongoDB: opened, and closed again."""

import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from typing import Final

import structlog
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from fetcher.adapters.mongo.connection_breakers import MongoConnectionBreakers
from fetcher.adapters.mongo.connection_records import MongoConnectionRecords
from fetcher.adapters.mongo.dispatch_outbox import MongoDispatchOutbox
from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.event_outbox import MongoEventOutbox
from fetcher.adapters.mongo.indexes import prepare_indexes
from fetcher.adapters.mongo.job_leases import MongoExpiredLeases, MongoJobLeases
from fetcher.adapters.mongo.job_records import MongoJobRecords
from fetcher.adapters.mongo.object_cleanup import MongoObjectCleanup
from fetcher.adapters.mongo.probe import mongodb_probe
from fetcher.adapters.mongo.reference_outbox import MongoReferenceOutbox
from fetcher.adapters.mongo.server import Database, MongoServer
from fetcher.bridge import asyncio_context, run_asyncio
from fetcher.domain.errors import StartRefused
from fetcher.ports import Probe, RecordStore
from fetcher.settings.mongo_address import AddressInvalid, uses_tls

log = structlog.get_logger(__name__)

SELECTION_MS: Final = 5_000
CONNECT_MS: Final = 5_000
HEARTBEAT_MS: Final = 10_000
MAX_POOL_SIZE: Final = 100

TLS_REQUIRED: Final = "mongo connect: TLS required (set ALLOW_INSECURE_TLS=true to bypass)"
BAD_ADDRESS: Final = "MONGO_URI: the driver does not accept the address or its parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoRecords(RecordStore):
    """The ports of the record store, and its entry in readiness."""

    probe: Probe


@asynccontextmanager
async def open_mongo_records(
    uri: str,
    database_name: str,
    *,
    allow_plaintext: bool = False,
    max_pool_size: int = MAX_POOL_SIZE,
    prepare: Callable[[Database], Awaitable[None]] = prepare_indexes,
) -> AsyncGenerator[MongoRecords, None]:
    """Open the record store inside the asyncio room; ``database_name`` is used as it is.

    Connecting is lazy, so a MongoDB that is away ends nothing: operations raise PortUnavailable
    until it is there, and the first one that reaches it makes the indexes by ``prepare``. Raise
    StartRefused for an address that cannot work, or without TLS unless ``allow_plaintext``.
    """
    tls = _checked_tls(uri, allow_plaintext=allow_plaintext)
    client = await _new_client(uri, max_pool_size=max_pool_size)
    async with asyncio_context(lambda: client):
        server = MongoServer(client, _database(client, database_name), prepare=prepare)
        yield MongoRecords(
            connections=MongoConnectionRecords(server),
            breakers=MongoConnectionBreakers(server),
            jobs=MongoJobRecords(server),
            dispatch=MongoDispatchOutbox(server),
            leases=MongoJobLeases(server),
            expired=MongoExpiredLeases(server),
            events=MongoEventOutbox(server),
            cleanup=MongoObjectCleanup(server),
            reference_events=MongoReferenceOutbox(server),
            probe=mongodb_probe(server, tls=tls),
        )


def _checked_tls(uri: str, *, allow_plaintext: bool) -> bool:
    try:
        tls = uses_tls(uri)
    except AddressInvalid:
        tls = None
    if tls is None:
        raise StartRefused([BAD_ADDRESS])
    if not tls and not allow_plaintext:
        raise StartRefused([TLS_REQUIRED])
    if not tls:
        log.warning("plaintext_connection", feature="mongo_tls", env_var="ALLOW_INSECURE_TLS")
    return tls


async def _new_client(uri: str, *, max_pool_size: int) -> AsyncMongoClient[Document]:
    async def make() -> AsyncMongoClient[Document]:
        with warnings.catch_warnings():
            # The driver warns of a parameter that it will ignore, such as tls=perhaps.
            warnings.simplefilter("error", UserWarning)
            return AsyncMongoClient(
                uri,
                appname="fetcher",
                serverSelectionTimeoutMS=SELECTION_MS,
                connectTimeoutMS=CONNECT_MS,
                heartbeatFrequencyMS=HEARTBEAT_MS,
                maxPoolSize=max_pool_size,
            )

    try:
        return await run_asyncio(make)
    except (PyMongoError, ValueError, TypeError, UserWarning):
        # The driver's text may hold the address with its password; raised below, without it.
        pass
    raise StartRefused([BAD_ADDRESS])


def _database(client: AsyncMongoClient[Document], name: str) -> Database:
    """What the records need, whatever the address says: our writes survive a lost primary."""
    return client.get_database(
        name,
        codec_options=CodecOptions(
            tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO
        ),
        read_preference=ReadPreference.PRIMARY,
        write_concern=WriteConcern("majority"),
        read_concern=ReadConcern("local"),
    )
