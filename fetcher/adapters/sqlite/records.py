"""The record store in one SQLite file: the embedded default (design section 8)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fetcher.adapters.sqlite.audit import SqliteAudit
from fetcher.adapters.sqlite.breakers import SqliteBreakers
from fetcher.adapters.sqlite.cleanup import SqliteCleanup
from fetcher.adapters.sqlite.connections import SqliteConnections
from fetcher.adapters.sqlite.credentials import SqliteCredentials
from fetcher.adapters.sqlite.database import BUSY_SECONDS, Database
from fetcher.adapters.sqlite.dispatch import SqliteDispatch
from fetcher.adapters.sqlite.events import SqliteEvents
from fetcher.adapters.sqlite.expired import SqliteExpiredLeases
from fetcher.adapters.sqlite.jobs import SqliteJobs
from fetcher.adapters.sqlite.leases import SqliteLeases
from fetcher.adapters.sqlite.probe import record_store_probe
from fetcher.adapters.sqlite.recovery import RestartRecovery
from fetcher.adapters.sqlite.retention import SqliteRetention
from fetcher.adapters.sqlite.statistics import SqliteStatistics
from fetcher.ports import Probe, RecordStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteRecordStore(RecordStore):
    """The ports, and what only a store has that one process owns."""

    recovery: RestartRecovery
    probe: Probe


@asynccontextmanager
async def open_sqlite_records(
    path: Path, *, busy_seconds: float = BUSY_SECONDS
) -> AsyncIterator[SqliteRecordStore]:
    """Open the file, or make it with its tables, mode 0600; its folder must exist.

    Raise StartRefused for a file of a newer version, of something else, or that cannot be opened.
    A call that was begun when the context ends is waited for: leave it after the last user.
    ``busy_seconds`` is the wait for a lock that another process holds on the file.
    """
    database = await Database.open(path, busy_seconds=busy_seconds)
    try:
        yield SqliteRecordStore(
            connections=SqliteConnections(database),
            credentials=SqliteCredentials(database),
            breakers=SqliteBreakers(database),
            jobs=SqliteJobs(database),
            dispatch=SqliteDispatch(database),
            leases=SqliteLeases(database),
            expired=SqliteExpiredLeases(database),
            events=SqliteEvents(database),
            cleanup=SqliteCleanup(database),
            retention=SqliteRetention(database),
            audit=SqliteAudit(database),
            statistics=SqliteStatistics(database),
            recovery=RestartRecovery(database),
            probe=record_store_probe(database),
        )
    finally:
        await database.aclose()
