"""The tables of the record store, as steps from one version to the next.

Times are whole milliseconds since 1970 in UTC; JSON stands as text, because SQLite's own numbers
would round. Whether a job is active is told by its status alone, so ``dedup_active`` (spec rest-api
12.3) is no column here: the unique index looks at the status.
"""

import contextlib
import sqlite3
from typing import Final

from fetcher.adapters.sqlite import json_columns
from fetcher.domain.errors import RecordCorrupt

_FIRST: Final = (
    """
    CREATE TABLE connection (
        id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
        config_name TEXT NOT NULL,
        type TEXT NOT NULL,
        host TEXT NOT NULL,
        port INTEGER NOT NULL,
        database_name TEXT NOT NULL,
        schema TEXT,
        username TEXT NOT NULL,
        password_encrypted TEXT NOT NULL,
        encryption_key_version TEXT NOT NULL,
        product_name TEXT NOT NULL,
        product TEXT NOT NULL,
        tls TEXT,
        metadata TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER
    ) STRICT
    """,
    """
    CREATE UNIQUE INDEX connection_live_config_name ON connection (config_name)
    WHERE deleted_at IS NULL
    """,
    """
    CREATE INDEX connection_live_created ON connection (created_at, id)
    WHERE deleted_at IS NULL
    """,
    """
    CREATE TABLE job (
        id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
        status TEXT NOT NULL
            CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled')),
        created_at INTEGER NOT NULL,
        request_hash TEXT NOT NULL,
        request_id TEXT NOT NULL,
        idempotency_key TEXT,
        product TEXT NOT NULL,
        mapped_fields TEXT NOT NULL,
        filters TEXT NOT NULL,
        metadata TEXT NOT NULL,
        options TEXT NOT NULL,
        completed_at INTEGER,
        result_path TEXT,
        result_hmac TEXT,
        result_bytes INTEGER,
        result_rows INTEGER,
        result_key_version TEXT,
        failure TEXT,
        attempt INTEGER NOT NULL,
        takeovers INTEGER NOT NULL,
        lease_token BLOB,
        lease_until INTEGER,
        lease_owner TEXT,
        started_at INTEGER,
        due_at INTEGER,
        waiting_reason TEXT,
        dispatched_at INTEGER,
        dispatch_seq INTEGER NOT NULL,
        dispatch_lease_until INTEGER,
        cancel_requested INTEGER,
        attempts TEXT NOT NULL,
        event_pending INTEGER NOT NULL DEFAULT 0,
        event_status TEXT,
        event_payload TEXT,
        event_time INTEGER,
        event_due_at INTEGER,
        event_attempts INTEGER NOT NULL DEFAULT 0,
        event_lease_until INTEGER,
        event_last_error TEXT,
        cleanup_keys TEXT,
        cleanup_due INTEGER
    ) STRICT
    """,
    """
    CREATE UNIQUE INDEX job_active_hash ON job (request_hash)
    WHERE status IN ('pending', 'processing')
    """,
    "CREATE INDEX job_hash_created ON job (request_hash, created_at, id)",
    """
    CREATE INDEX job_undispatched ON job (created_at, id)
    WHERE status = 'pending' AND dispatched_at IS NULL
    """,
    """
    CREATE INDEX job_dispatched ON job (dispatched_at, id)
    WHERE status = 'pending' AND dispatched_at IS NOT NULL
    """,
    "CREATE INDEX job_leased ON job (lease_until, id) WHERE status = 'processing'",
    "CREATE INDEX job_ended ON job (completed_at, id) WHERE completed_at IS NOT NULL",
    """
    CREATE INDEX job_ended_of_product ON job (product, completed_at, id)
    WHERE completed_at IS NOT NULL
    """,
    "CREATE INDEX job_event_due ON job (event_due_at, id) WHERE event_pending = 1",
    "CREATE INDEX job_cleanup_due ON job (cleanup_due, id) WHERE cleanup_due IS NOT NULL",
)

_SECOND: Final = (
    "ALTER TABLE job ADD COLUMN progress TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE job ADD COLUMN result_deleted_at INTEGER",
    """
    CREATE UNIQUE INDEX job_idempotency_key ON job (idempotency_key)
    WHERE idempotency_key IS NOT NULL
    """,
    # Which job reads from which connection, in the order of lists.
    """
    CREATE TABLE job_source (
        config_name TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        job_id BLOB NOT NULL,
        PRIMARY KEY (config_name, created_at, job_id)
    ) STRICT, WITHOUT ROWID
    """,
    # The status stands behind, so that jobs of other states are passed by without being read. An
    # index that begins with it would be taken by the sweeps in place of their own.
    "CREATE INDEX job_created ON job (created_at, id, status)",
    "CREATE INDEX job_created_of_product ON job (product, created_at, id, status)",
    "CREATE INDEX job_pending_of_product ON job (product) WHERE status = 'pending'",
)

_THIRD: Final = ("ALTER TABLE job ADD COLUMN source_notes TEXT NOT NULL DEFAULT '{}'",)

_FOURTH: Final = (
    """
    CREATE TABLE connection_breaker (
        id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
        config_name TEXT NOT NULL,
        version INTEGER NOT NULL,
        stage TEXT NOT NULL,
        reason TEXT NOT NULL,
        failures INTEGER NOT NULL,
        openings INTEGER NOT NULL,
        retry_at INTEGER,
        probe_token BLOB,
        probe_until INTEGER,
        changed_at INTEGER NOT NULL
    ) STRICT
    """,
)

_FIFTH: Final = (
    """
    CREATE INDEX job_kept_result ON job (completed_at, id)
    WHERE status = 'completed' AND result_path IS NOT NULL AND result_deleted_at IS NULL
    """,
)

_SIXTH: Final = ("ALTER TABLE job ADD COLUMN cleanup_until INTEGER",)

_SEVENTH: Final = (
    """
    CREATE TABLE audit (
        id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
        time INTEGER NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        target TEXT NOT NULL,
        product TEXT NOT NULL,
        request_id TEXT NOT NULL,
        outcome TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX audit_time ON audit (time, id)",
    "CREATE INDEX audit_target ON audit (target, time, id)",
)


_EIGHTH: Final = (
    "ALTER TABLE job ADD COLUMN traceparent TEXT",
    "ALTER TABLE job ADD COLUMN tracestate TEXT",
)


_NINTH: Final = (
    """
    CREATE INDEX job_failed ON job (completed_at, id)
    WHERE status = 'failed' AND completed_at IS NOT NULL
    """,
    # Beside the one in the job's own row: whoever repeats a request may bring a key of its own.
    """
    CREATE TABLE job_key (
        key TEXT NOT NULL PRIMARY KEY,
        job_id BLOB NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX job_key_of_job ON job_key (job_id)",
    "CREATE INDEX audit_actor ON audit (actor, time, id)",
    "CREATE INDEX audit_action ON audit (action, time, id)",
)


def _to_version_1(connection: sqlite3.Connection) -> None:
    for statement in _FIRST:
        connection.execute(statement)


def _to_version_2(connection: sqlite3.Connection) -> None:
    for statement in _SECOND:
        connection.execute(statement)
    for row in connection.execute("SELECT id, created_at, mapped_fields FROM job"):
        # What cannot be read is reported by whoever reads that job.
        with contextlib.suppress(RecordCorrupt):
            sources = json_columns.load(
                "mapped_fields", row["mapped_fields"], json_columns.plain_object
            )
            connection.executemany(
                "INSERT INTO job_source VALUES (?, ?, ?)",
                [(name, row["created_at"], row["id"]) for name in sources],
            )


def _to_version_3(connection: sqlite3.Connection) -> None:
    for statement in _THIRD:
        connection.execute(statement)


def _to_version_4(connection: sqlite3.Connection) -> None:
    for statement in _FOURTH:
        connection.execute(statement)


def _to_version_5(connection: sqlite3.Connection) -> None:
    for statement in _FIFTH:
        connection.execute(statement)


def _to_version_6(connection: sqlite3.Connection) -> None:
    for statement in _SIXTH:
        connection.execute(statement)


def _to_version_7(connection: sqlite3.Connection) -> None:
    for statement in _SEVENTH:
        connection.execute(statement)


def _to_version_8(connection: sqlite3.Connection) -> None:
    for statement in _EIGHTH:
        connection.execute(statement)


def _to_version_9(connection: sqlite3.Connection) -> None:
    for statement in _NINTH:
        connection.execute(statement)


STEPS: Final = (
    *(_to_version_1, _to_version_2, _to_version_3),
    *(_to_version_4, _to_version_5, _to_version_6),
    *(_to_version_7, _to_version_8, _to_version_9),
)
"""What makes version 1 of an empty file, version 2 of version 1, and so on."""

VERSION: Final = len(STEPS)
