"""A result sink that keeps what it is given."""

import hashlib
from collections.abc import Awaitable, Callable

from fetcher_engine.context import TenantContext
from fetcher_engine.results import ResultIntegrity, ResultProtection, ResultReference


async def _at_once() -> None:
    """The gate of a sink that never makes anybody wait."""


class MemoryResultSink:
    """Results by path: ``memory://<tenant>/<sha256>-<sequence number>``.

    ``write_gate`` runs before the first write of each result; one that never returns makes a sink
    that hangs. The counters and ``write_sizes`` tell what was asked of it, failures included.
    """

    def __init__(self) -> None:
        self.open_error: Exception | None = None
        self.write_error: Exception | None = None
        self.close_error: Exception | None = None
        self.abort_error: Exception | None = None
        self.takes_at_most: int | None = None
        """How many bytes a write takes; less than all of them is a short write."""
        self.write_gate: Callable[[], Awaitable[None]] = _at_once
        self.protection: ResultProtection | None = None
        self.digest: str | None = None
        """Reported in the place of the right one."""
        self.omits_integrity = False
        self.omits_size = False
        self.open_count = self.close_count = self.abort_count = 0
        self.write_sizes: list[int] = []
        self._stored: dict[str, bytes] = {}
        self._sequence = 0

    async def open_result_stream(self, tenant: TenantContext) -> "MemoryResultStream":
        self.open_count += 1
        if self.open_error is not None:
            raise self.open_error
        return MemoryResultStream(self, tenant)

    @property
    def stored_count(self) -> int:
        """How many results were closed and not discarded afterwards."""
        return len(self._stored)

    def get(self, path: str) -> bytes | None:
        """The stored result, None where there is none of this path."""
        return self._stored.get(path)

    def store(self, tenant: TenantContext, data: bytes) -> ResultReference:
        """What a stream does when it is closed."""
        digest = hashlib.sha256(data).hexdigest()
        self._sequence += 1
        path = f"memory://{tenant.tenant_id}/{digest}-{self._sequence}"
        self._stored[path] = data
        integrity = ResultIntegrity(algorithm="SHA-256", digest=self.digest or digest)
        return ResultReference(
            path=path,
            size_bytes=0 if self.omits_size else len(data),
            integrity=ResultIntegrity() if self.omits_integrity else integrity,
            protection=self.protection,
        )

    def discard(self, path: str) -> None:
        """What a stream does when it is aborted."""
        self._stored.pop(path, None)


class MemoryResultStream:
    """One result of a sink, visible once it is closed."""

    def __init__(self, sink: MemoryResultSink, tenant: TenantContext) -> None:
        self._sink = sink
        self._tenant = tenant
        self._parts: list[bytes] = []
        self._path = ""

    async def write(self, data: bytes) -> int:
        if not self._parts:
            await self._sink.write_gate()
        self._sink.write_sizes.append(len(data))
        if self._sink.write_error is not None:
            raise self._sink.write_error
        self._parts.append(data[: self._sink.takes_at_most])
        return len(self._parts[-1])

    async def close(self) -> ResultReference:
        self._sink.close_count += 1
        if self._sink.close_error is not None:
            raise self._sink.close_error
        reference = self._sink.store(self._tenant, b"".join(self._parts))
        self._path = reference.path
        return reference

    async def abort(self) -> None:
        self._sink.abort_count += 1
        self._parts.clear()
        self._sink.discard(self._path)
        if self._sink.abort_error is not None:
            raise self._sink.abort_error
