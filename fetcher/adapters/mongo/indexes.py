"""The indexes of the record store (spec rest-api 12.2 and 12.3), and our own for the sweeps."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymongo
import structlog
from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError, OperationFailure

from fetcher.adapters.mongo.document_fields import Document
from fetcher.adapters.mongo.failures import IndexRefused
from fetcher.adapters.mongo.server import Collection, Database
from fetcher.domain.breakers import REMEMBERED_SECONDS
from fetcher.domain.jobs import JobStatus

log = structlog.get_logger(__name__)

CREATION_SECONDS: Final = 60.0
DROP_SECONDS: Final = 30.0
"""Of looks too."""

_NOT_FOUND: Final = (26, 27)
"""NamespaceNotFound, IndexNotFound."""
_ALREADY_THERE: Final = (85, 86)
"""IndexOptionsConflict, IndexKeySpecsConflict: same name or keys, other options."""

ACTIVE_STATUSES: Final = [status.value for status in JobStatus if status.is_active]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    name: str
    keys: Sequence[tuple[str, int]]
    partial: Mapping[str, Any] | None = None
    unique: bool = False
    expires_after_seconds: int | None = None

    async def create(self, collection: Collection) -> None:
        options: Document = {"unique": True} if self.unique else {}
        if self.expires_after_seconds is not None:
            options["expireAfterSeconds"] = self.expires_after_seconds
        if self.partial is not None:
            options["partialFilterExpression"] = dict(self.partial)
        with pymongo.timeout(CREATION_SECONDS):
            await collection.create_index(list(self.keys), name=self.name, **options)

    def is_exactly(self, stored: Mapping[str, Any]) -> bool:
        return (
            list(stored["key"].items()) == list(self.keys)
            and bool(stored.get("unique")) is self.unique
            and stored.get("partialFilterExpression") == self.partial
        )


_LIVE: Final = {"deleted_at": None}
_PENDING: Final = {"status": JobStatus.PENDING.value}
_PROCESSING: Final = {"status": JobStatus.PROCESSING.value}
_FAILED: Final = {"status": JobStatus.FAILED.value}
_COMPLETED: Final = {"status": JobStatus.COMPLETED.value}
_ACTIVE: Final = {"dedup_active": True}
_EVENT: Final = "metadata.terminalEventPending"

CONNECTION_INDEXES: Final = (
    Index(
        name="idx_connection_config_name",
        keys=[("config_name", ASCENDING)],
        partial=_LIVE,
        unique=True,
    ),
    Index(name="idx_connection_created", keys=[("created_at", DESCENDING)], partial=_LIVE),
    Index(name="idx_connection_database_name", keys=[("database_name", ASCENDING)], partial=_LIVE),
)

OUTDATED_CONNECTION_INDEXES: Final = (
    "idx_connection_product_config",
    "idx_connection_product_created",
    "idx_connection_unassigned",
)

JOB_INDEXES: Final = (
    Index(name="idx_job_status", keys=[("status", ASCENDING)]),
    Index(
        name="idx_job_status_created",
        keys=[("status", ASCENDING), ("created_at", DESCENDING)],
        partial=_PROCESSING,
    ),
    Index(name="idx_job_created", keys=[("created_at", DESCENDING)]),
    Index(name="idx_job_completed", keys=[("completed_at", DESCENDING)]),
    Index(
        name="idx_job_status_completed",
        keys=[("status", ASCENDING), ("completed_at", DESCENDING)],
        partial=_COMPLETED,
    ),
    Index(
        name="idx_job_hash_created",
        keys=[("request_hash", ASCENDING), ("created_at", DESCENDING)],
    ),
    Index(
        name="idx_job_terminal_event_repair",
        keys=[
            (_EVENT, ASCENDING),
            ("status", ASCENDING),
            ("completed_at", ASCENDING),
            ("created_at", ASCENDING),
        ],
        partial={_EVENT: True},
    ),
)

LIST_INDEXES: Final = (
    Index(name="idx_job_list", keys=[("created_at", DESCENDING), ("_id", DESCENDING)]),
    Index(
        name="idx_job_list_status",
        keys=[("status", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)],
    ),
    # With the id behind: an index of the time alone would have all jobs sorted by both.
    Index(name="idx_job_ended", keys=[("completed_at", DESCENDING), ("_id", DESCENDING)]),
    Index(
        name="idx_job_failed",
        keys=[("completed_at", DESCENDING), ("_id", DESCENDING)],
        partial=_FAILED,
    ),
    Index(
        name="idx_job_list_datasources",
        keys=[("datasources", ASCENDING), ("created_at", DESCENDING), ("_id", DESCENDING)],
    ),
)

BREAKER_INDEXES: Final = (
    Index(
        name="idx_connection_breaker_forgotten",
        keys=[("changed_at", ASCENDING)],
        expires_after_seconds=int(REMEMBERED_SECONDS),
    ),
)

AUDIT_INDEXES: Final = (
    Index(name="idx_audit_time", keys=[("time", DESCENDING), ("_id", DESCENDING)]),
    *(
        Index(
            name=f"idx_audit_{filtered}",
            keys=[(filtered, ASCENDING), ("time", DESCENDING), ("_id", DESCENDING)],
        )
        for filtered in ("target", "actor", "action")
    ),
)

PENDING_INDEX: Final = Index(
    # Both counts of waiting jobs are answered by its keys, and no record is read.
    name="idx_job_pending_source",
    keys=[("status", ASCENDING), ("metadata.source", ASCENDING)],
    partial=_PENDING,
)

IDEMPOTENCY_INDEX: Final = Index(
    name="uniq_job_idempotency_key",
    keys=[("idempotency_key", ASCENDING)],
    partial={"idempotency_key": {"$exists": True}},
    unique=True,
)

SWEEP_INDEXES: Final = (
    # Jobs to dispatch have a null here, so they come first, the oldest at the head.
    Index(
        name="idx_job_dispatch",
        keys=[("dispatched_at", ASCENDING), ("created_at", ASCENDING)],
        partial=_PENDING,
    ),
    Index(name="idx_job_lease", keys=[("lease_until", ASCENDING)], partial=_PROCESSING),
    Index(
        name="idx_job_event_due",
        keys=[("event_due_at", ASCENDING), ("completed_at", ASCENDING)],
        partial={_EVENT: True},
    ),
    Index(
        name="idx_job_cleanup",
        keys=[("cleanup_due", ASCENDING)],
        partial={"cleanup_due": {"$exists": True}},
    ),
    Index(
        name="idx_job_kept_result",
        keys=[("completed_at", ASCENDING), ("_id", ASCENDING)],
        partial={**_COMPLETED, "result_deleted_at": None},
    ),
    Index(name="idx_job_datasources", keys=[("datasources", ASCENDING)], partial=_ACTIVE),
)

ACTIVE_HASH_INDEX: Final = Index(
    name="uniq_job_hash_active",
    keys=[("request_hash", ASCENDING)],
    partial=_ACTIVE,
    unique=True,
)


async def leave_indexes(_: Database) -> None:
    """For who only looks: nothing is made, and what lacks an index is slow."""


async def prepare_indexes(database: Database) -> None:
    """Make what is missing, one index at a time. Runs on the asyncio side.

    Raise IndexRefused where several active jobs share a request hash.
    """
    connections, jobs = database["connection"], database["job"]
    for name in OUTDATED_CONNECTION_INDEXES:
        if name in await _existing(connections):
            await _drop(connections, name)
    await _make_missing(connections, CONNECTION_INDEXES)
    await _make_missing(database["connection_breaker"], BREAKER_INDEXES)
    await _make_missing(database["audit"], AUDIT_INDEXES)
    await _make_missing(
        jobs, (*JOB_INDEXES, *SWEEP_INDEXES, *LIST_INDEXES, PENDING_INDEX, IDEMPOTENCY_INDEX)
    )
    await _make_active_hash_unique(jobs)


class IndexedDatabases:
    """Makes the indexes of each database once in a process's life, however often it is opened.

    For a process that opens and closes the databases of its tenants (spec rest-api 4): looking at
    the indexes costs several commands, one where they were made. A failure is not remembered. One
    that was dropped and made anew, as a tenant's that was purged and is back, is another database:
    its collections are others.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[frozenset[tuple[str, int | None]], str], Hashable] = {}

    async def prepare(self, database: Database) -> None:
        """As :func:`prepare_indexes`. The same name on other servers is another database."""
        place = (database.client.nodes, database.name)
        made = self._made.get(place)
        if made is None or made != await _collections(database):
            await prepare_indexes(database)
            self._made[place] = await _collections(database)


async def _collections(database: Database) -> Hashable:
    """Which ones there are of those that have indexes."""
    wanted = {"name": {"$in": ["connection", "connection_breaker", "audit", "job"]}}
    with pymongo.timeout(DROP_SECONDS):
        told = [each async for each in await database.list_collections(filter=wanted)]
    return frozenset((each["name"], each.get("info", {}).get("uuid")) for each in told)


async def _existing(collection: Collection) -> dict[str, Mapping[str, Any]]:
    with pymongo.timeout(DROP_SECONDS):
        return {index["name"]: index async for index in await collection.list_indexes()}


async def _drop(collection: Collection, name: str) -> None:
    try:
        with pymongo.timeout(DROP_SECONDS):
            await collection.drop_index(name)
    except OperationFailure as failure:
        if failure.code not in _NOT_FOUND:
            raise
    log.info("index_dropped", collection=collection.name, index=name)


async def _make_missing(collection: Collection, indexes: Sequence[Index]) -> None:
    existing = await _existing(collection)
    for index in indexes:
        if index.name in existing:
            continue
        try:
            await index.create(collection)
        except OperationFailure as failure:
            if failure.code not in _ALREADY_THERE:
                raise
        else:
            log.info("index_made", collection=collection.name, index=index.name)


async def _make_active_hash_unique(jobs: Collection) -> None:
    stored = (await _existing(jobs)).get(ACTIVE_HASH_INDEX.name)
    if stored is not None and ACTIVE_HASH_INDEX.is_exactly(stored):
        return
    if stored is not None:
        await _drop(jobs, ACTIVE_HASH_INDEX.name)
    with pymongo.timeout(CREATION_SECONDS):
        await jobs.update_many(
            {"status": {"$in": ACTIVE_STATUSES}, "dedup_active": {"$ne": True}},
            {"$set": {"dedup_active": True}},
        )
        await jobs.update_many(
            {"status": {"$nin": ACTIVE_STATUSES}, "dedup_active": {"$ne": False}},
            {"$set": {"dedup_active": False}},
        )
    refused = False
    try:
        await ACTIVE_HASH_INDEX.create(jobs)
    except DuplicateKeyError:
        refused = True
    except OperationFailure as failure:
        if failure.code not in _ALREADY_THERE:
            raise
    if refused:
        log.error("active_jobs_share_a_hash", index=ACTIVE_HASH_INDEX.name)
        raise IndexRefused(
            "several active jobs share a request hash: end all but one by hand, then"
            f" {ACTIVE_HASH_INDEX.name} can be made"
        )
