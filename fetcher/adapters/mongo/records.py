"""The record store in MongoDB: opened, and closed again."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Final

import structlog
from bson.codec_options import CodecOptions, DatetimeConversion
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from fetcher.adapters.mongo.audit import MongoAudit
from fetcher.adapters.mongo.client import AddressRefused, OpenClient, open_client
from fetcher.adapters.mongo.clock import ServerClock
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
from fetcher.adapters.mongo.retention import MongoRetention
from fetcher.adapters.mongo.sealed_credentials import MongoSealedCredentials
from fetcher.adapters.mongo.server import Database, MongoServer
from fetcher.adapters.mongo.server_version import server_version
from fetcher.adapters.mongo.statistics import MongoStatistics
from fetcher.adapters.mongo.trust_roots import trust_roots
from fetcher.domain.errors import StartRefused
from fetcher.fair_places import Places
from fetcher.ports import Probe, RecordStore
from fetcher.settings.mongo_address import AddressInvalid, uses_tls

log = structlog.get_logger(__name__)

MAX_POOL_SIZE: Final = 100

TLS_REQUIRED: Final = "mongo connect: TLS required (set ALLOW_INSECURE_TLS=true to bypass)"
BAD_ADDRESS: Final = "MONGO_URI: the driver does not accept the address or its parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoRecords(RecordStore):
    """The ports of the record store, and its entry in readiness."""

    probe: Probe
    connection_use: Callable[[], tuple[int, int]]
    """Connections to the servers: open, and in use."""
    server_version: Callable[[], Awaitable[str]]
    """What the server says of itself. Raises PortUnavailable."""


@asynccontextmanager
async def open_mongo_records(
    uri: str,
    database_name: str,
    *,
    allow_plaintext: bool = False,
    max_pool_size: int = MAX_POOL_SIZE,
    ca_pem: str = "",
    prepare: Callable[[Database], Awaitable[None]] = prepare_indexes,
) -> AsyncGenerator[MongoRecords, None]:
    """Open the record store inside the asyncio room; ``database_name`` is used as it is.

    Connecting is lazy, so a MongoDB that is away ends nothing: operations raise PortUnavailable
    until it is there, and the first one that reaches it makes the indexes by ``prepare``. Raise
    StartRefused for an address that cannot work, or without TLS unless ``allow_plaintext``.
    ``ca_pem`` turns TLS on, with these as the only trust roots.
    """
    tls = bool(ca_pem) or _checked_tls(uri, allow_plaintext=allow_plaintext)
    async with AsyncExitStack() as stack:
        # The driver reads the file again when it resolves an address of mongodb+srv.
        roots = stack.enter_context(trust_roots(ca_pem))
        try:
            client = await stack.enter_async_context(
                open_client(uri, roots, tls=tls, max_pool_size=max_pool_size)
            )
        except AddressRefused:
            client = None
        if client is None:
            raise StartRefused([BAD_ADDRESS])
        yield records_on(client, database_name, prepare=prepare)


def records_on(
    client: OpenClient,
    database_name: str,
    *,
    prepare: Callable[[Database], Awaitable[None]] = prepare_indexes,
    clock: ServerClock | None = None,
    places: Places | None = None,
) -> MongoRecords:
    """The record store in one database of a client, which others may use too; good for as long as
    the client is open, and nothing to close by itself. ``clock`` is the server's, where others have
    asked it already; ``places`` are its share of the client's connections."""
    database = _database(client.driver, database_name)
    server = MongoServer(client.driver, database, prepare=prepare, clock=clock, places=places)
    return MongoRecords(
        connections=MongoConnectionRecords(server),
        credentials=MongoSealedCredentials(server),
        breakers=MongoConnectionBreakers(server),
        jobs=MongoJobRecords(server),
        dispatch=MongoDispatchOutbox(server),
        leases=MongoJobLeases(server),
        expired=MongoExpiredLeases(server),
        events=MongoEventOutbox(server),
        cleanup=MongoObjectCleanup(server),
        retention=MongoRetention(server),
        audit=MongoAudit(server),
        statistics=MongoStatistics(server),
        reference_events=MongoReferenceOutbox(server),
        probe=mongodb_probe(server, tls=client.tls),
        connection_use=client.connection_use,
        server_version=partial(server_version, client.driver),
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
