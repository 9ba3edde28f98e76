"""What a host gives the Engine (spec 5).

Methods are coroutines unless written as plain functions; those do no I/O. A port is called by
several operations at once, honours cancellation, and keeps tenants apart by ``tenant.tenant_id``.
What a port raises never leaves the Engine as it is: a connector's :class:`SourceFailure` becomes an
:class:`EngineError` with its safe words, an ``EngineError`` of a store passes, and ``validation``
and ``not_found`` of a factory; anything else is replaced by a fixed text.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from fetcher_engine.batches import Batch, SourceNotes, StreamRequest
from fetcher_engine.connection import (
    ConnectionDescriptor,
    ConnectionListParams,
    ConnectionPage,
    ProtectedCredential,
)
from fetcher_engine.context import TenantContext
from fetcher_engine.results import ExecutionState, ResultReference
from fetcher_engine.schema import SchemaSnapshot


class BatchStream(Protocol):
    """Rows of the asked tables: tables in the byte order of their names, each contiguous.

    A table without rows yields nothing. Failures are raised as :class:`SourceFailure`.
    """

    async def next_batch(self) -> Batch | None:
        """The next batch, None at the end."""
        ...

    async def aclose(self) -> None:
        """Stop reading and free what the stream holds. Idempotent; called on every path."""


class NotedStream(BatchStream, Protocol):
    """A stream that also tells how it read. Offering this is up to the connector."""

    def notes(self) -> SourceNotes:
        """Asked once, after the last batch."""
        ...


class Connector(Protocol):
    """One source for one operation, owned by one task. Failures are :class:`SourceFailure`."""

    async def test_connection(self) -> None:
        """Connect, if not connected, and prove that the source answers."""

    async def discover_schema(self) -> SchemaSnapshot:
        """The source's tables without system tables. Connects lazily: nobody tested before.

        It must not ask the same Engine for a schema: two that wait for each other wait for ever.
        """
        ...

    async def open_stream(self, request: StreamRequest) -> BatchStream:
        """Start to read; called at most once, after ``test_connection``."""
        ...

    async def close(self) -> None:
        """Free everything. Idempotent, and safe before and after a failed connect."""


class ConnectorFactory(Protocol):
    """Builds the connectors of one datasource type."""

    @property
    def requires_fields(self) -> bool:
        """Whether a table asked for with an empty list of fields is an error (True for SQL)."""
        ...

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        """A connector that has not connected: no I/O here.

        May raise :class:`EngineError` of category ``validation`` or ``not_found``, which pass.
        """
        ...


class ConnectorRegistry(Protocol):
    """Knows which datasource types the host can read."""

    def connector(self, datasource_type: str) -> ConnectorFactory | None:
        """The factory for a type, None where there is none. The same type, the same factory."""
        ...


class ConnectionStore(Protocol):
    """Connections by tenant and config name. Operations on sources need only this."""

    async def find_connection(
        self, tenant: TenantContext, config_name: str
    ) -> ConnectionDescriptor | None:
        """The tenant's connection of this name, None where it has none or another tenant has it."""
        ...


class ConnectionDirectoryStore(ConnectionStore, Protocol):
    """A store that also keeps connections for the Engine (spec 5.6)."""

    async def create(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        """Raise ``conflict`` with ``connection already exists``; uniqueness is the store's duty."""

    async def update(
        self,
        tenant: TenantContext,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        """Raise ``not_found`` where it is missing. No credential: the stored one stays."""

    async def delete(self, tenant: TenantContext, config_name: str) -> None:
        """Raise ``not_found`` where it is missing; afterwards it is invisible."""

    async def list(self, tenant: TenantContext) -> tuple[ConnectionDescriptor, ...]:
        """All that are not deleted, in a deterministic order."""
        ...


class ConnectionIdStore(ConnectionStore, Protocol):
    """A store whose records have ids of the host's own."""

    async def find_by_id(
        self, tenant: TenantContext, connection_id: str
    ) -> ConnectionDescriptor | None:
        """The tenant's connection, None for a malformed, unknown or deleted id, or another's."""
        ...

    async def update_by_id(
        self,
        tenant: TenantContext,
        connection_id: str,
        descriptor: ConnectionDescriptor,
        credential: ProtectedCredential | None,
    ) -> None:
        """Raise ``not_found`` where it is missing."""

    async def delete_by_id(self, tenant: TenantContext, connection_id: str) -> None:
        """Raise ``not_found`` where it is missing."""

    async def list_paged(
        self, tenant: TenantContext, params: ConnectionListParams
    ) -> ConnectionPage:
        """One page of the tenant's connections, as the host's own params ask."""
        ...


class CredentialProtector(Protocol):
    """Seals passwords before they are stored. The Engine never unseals one."""

    async def protect(self, tenant: TenantContext, plaintext: bytes) -> ProtectedCredential:
        """Seal a password; neither side of it stands in an error."""
        ...


class ActiveExecutionChecker(Protocol):
    """Tells what is in use: such a connection is neither changed nor deleted."""

    async def has_active_executions(self, tenant: TenantContext, config_name: str) -> bool:
        """Whether work of this tenant, not yet ended, reads from the connection."""
        ...


class SchemaCache(Protocol):
    """Schemas by tenant, config name and fingerprint. Errors count as misses.

    ``fingerprint`` is a hex digest of everything that decides what discovery sees: an entry under
    another one must not be returned.
    """

    async def get_schema(
        self, tenant: TenantContext, config_name: str, fingerprint: str
    ) -> SchemaSnapshot | None:
        """What was put under exactly this key, None where there is nothing or it is too old."""
        ...

    async def put_schema(
        self, tenant: TenantContext, snapshot: SchemaSnapshot, fingerprint: str
    ) -> None:
        """Keep a schema for as long as the host likes; its config name is part of the key."""
        ...

    async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
        """Forget every fingerprint of this connection."""


class ExecutionStore(Protocol):
    """Keeps how each execution stands, for hosts that want to show it."""

    async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
        """Upsert by tenant and job id. Best effort: errors are ignored."""


class ResultStreamWriter(Protocol):
    """One result on its way into a sink. The Engine ends it by ``close`` or by ``abort``.

    One call at a time. Bytes that were written become visible by ``close`` alone.
    """

    async def write(self, data: bytes) -> int:
        """Append; the number of bytes taken, which must be all of them."""
        ...

    async def close(self) -> ResultReference:
        """Make the result visible. Called once, after the last ``write``; never after a failure.

        Where the sink knows no size or digest it leaves them empty, and the Engine fills them in.
        """
        ...

    async def abort(self) -> None:
        """Discard the result: nothing of it stays, not even an unfinished upload.

        Called once and shielded from cancellation: instead of ``close``; after a ``close`` that
        raised or was cancelled; and after one whose answer contradicts what was written, when the
        result is visible already and must go.
        """


class ResultSink(Protocol):
    """Stores results for the Engine, for hosts that do not take the bytes themselves."""

    async def open_result_stream(self, tenant: TenantContext) -> ResultStreamWriter:
        """A writer for one new result. Nothing is visible yet."""
        ...


class SpoolFile(Protocol):
    """A queue of bytes on some larger and slower store than memory, for one step of one run.

    One task appends while another reads, at the same time.
    """

    async def append(self, data: bytes) -> None:
        """Add at the end. A call that raises has added nothing that is ever read."""

    async def read(self, max_bytes: int) -> bytes:
        """Take the oldest ``max_bytes``, or fewer, at least one: that many were appended."""
        ...

    async def aclose(self) -> None:
        """Discard everything. Idempotent; called shielded, on every path."""


class Spool(Protocol):
    """Where the bytes of a step wait that is ahead of its turn, beyond 4 MiB (design section 5).

    A result may hold what its readers alone should see: keep it unreadable for others.
    """

    async def open(self, tenant: TenantContext, max_bytes: int) -> SpoolFile:
        """A new, empty file. ``max_bytes`` is the limit of the whole result, over all its steps."""
        ...


class RowEncoding(Protocol):
    """A faster way than the Engine's own to write rows, where the host has one."""

    def encode(self, rows: Sequence[Mapping[str, object]]) -> bytes | None:
        """Compact JSON objects joined by commas, in UTF-8, columns in byte order; no I/O.

        Every value must be written exactly as :func:`encode_value` does, numbers too: else the
        document's bytes would depend on where a source cuts its rows. None, or any exception, for
        rows that it cannot write in this way: the Engine then writes them, or says why they cannot
        be written.
        """
        ...


class Observability(Protocol):
    """The host's tracing."""

    def start_span(self, operation: str) -> AbstractContextManager[object]:
        """A span, entered around the operation.

        It leaves with an :class:`EngineError` (whose category may be recorded) or the loop's
        cancellation, never with a foreign exception.
        """
        ...


class CancelSignal(Protocol):
    """Cooperative cancellation for hosts that cannot cancel a task."""

    def is_cancelled(self) -> bool:
        """Whether the host has withdrawn the request. Asked between batches; no I/O."""
        ...
