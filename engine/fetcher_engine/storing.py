"""A result on its way into the host's sink (spec 10.5)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import Checkpoint, from_host, not_persisted
from fetcher_engine.port_check import check_port
from fetcher_engine.ports import ResultSink, ResultStreamWriter
from fetcher_engine.results import (
    OrphanedResult,
    ProtectionOwner,
    ResultIntegrity,
    ResultProtection,
    ResultReference,
)

T = TypeVar("T")

SHA256 = "SHA-256"


class NotAResultStream(Exception):
    """A sink opened nothing that could be written to."""


class SinkUpload:
    """One result stream of a sink, whose failures become ``unavailable`` with a cause to unwrap."""

    def __init__(self, writer: ResultStreamWriter, checkpoint: Checkpoint) -> None:
        self._writer = writer
        self._checkpoint = checkpoint

    @classmethod
    async def open(
        cls, sink: ResultSink, tenant: TenantContext, checkpoint: Checkpoint
    ) -> "SinkUpload":
        async def open_stream() -> ResultStreamWriter:
            opened = await sink.open_result_stream(tenant)
            writer = check_port(opened, ResultStreamWriter, "result stream")
            if writer is None:
                raise NotAResultStream
            return writer

        return cls(await from_host(open_stream, not_persisted, checkpoint=checkpoint), checkpoint)

    async def write(self, data: bytes) -> None:
        taken: object = await self._ask(lambda: self._writer.write(data))
        if type(taken) is not int or taken != len(data):
            raise not_persisted()

    async def close(self, *, row_count: int, size_bytes: int, sha256: str) -> ResultReference:
        """What the sink says of the stored result, completed by what the Engine knows.

        Raise ``validation`` for an unknown owner of its protection, and ``internal`` for a digest
        that is not the written bytes'; the path of the result, which is stored, is in the cause.
        """
        reference: object = await self._ask(self._writer.close)
        if not isinstance(reference, ResultReference):
            raise not_persisted()
        _require_sound(reference, sha256)
        return replace(
            reference,
            format="ndjson",
            row_count=row_count,
            size_bytes=reference.size_bytes or size_bytes,
            integrity=_present(reference.integrity, sha256),
        )

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        return await from_host(call, not_persisted, checkpoint=self._checkpoint)

    async def abort(self) -> None:
        """Discard the result; may raise whatever the sink raises."""
        await self._writer.abort()


def _present(integrity: ResultIntegrity, sha256: str) -> ResultIntegrity:
    if integrity.is_present:
        return integrity
    return ResultIntegrity(algorithm=SHA256, digest=sha256)


def _require_sound(reference: ResultReference, sha256: str) -> None:
    protection = reference.protection
    if protection is not None and protection.applied_by not in frozenset(ProtectionOwner):
        raise EngineError(
            ErrorCategory.VALIDATION,
            "result protection appliedBy is invalid",
            OrphanedResult(reference.path),
        )
    if _is_plain(protection) and _contradicts(reference.integrity, sha256):
        raise EngineError(
            ErrorCategory.INTERNAL,
            "extraction result integrity mismatch",
            OrphanedResult(reference.path),
        )


def _is_plain(protection: ResultProtection | None) -> bool:
    return protection is None or not protection.encrypted


def _contradicts(integrity: ResultIntegrity, sha256: str) -> bool:
    digest = integrity.digest.lower()
    return integrity.algorithm == SHA256 and bool(digest) and digest != sha256
