"""A result on its way into the host's sink (spec 10.5)."""

from dataclasses import replace

from fetcher_engine.concurrency import DeadlineExceeded
from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import not_persisted
from fetcher_engine.port_check import check_port
from fetcher_engine.ports import ResultSink, ResultStreamWriter
from fetcher_engine.results import (
    OrphanedResult,
    ProtectionOwner,
    ResultIntegrity,
    ResultProtection,
    ResultReference,
)

SHA256 = "SHA-256"


class SinkUpload:
    """One result stream of a sink, whose failures become ``unavailable`` with a cause to unwrap."""

    def __init__(self, writer: ResultStreamWriter) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, sink: ResultSink, tenant: TenantContext) -> "SinkUpload":
        try:
            writer = check_port(
                await sink.open_result_stream(tenant), ResultStreamWriter, "result stream"
            )
        except DeadlineExceeded:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to a host's sink
            failure = not_persisted(error)
        else:
            if writer is not None:
                return cls(writer)
            failure = not_persisted()
        raise failure

    async def write(self, data: bytes | memoryview) -> None:
        piece = bytes(data)
        try:
            taken = await self._writer.write(piece)
        except DeadlineExceeded:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to a host's sink
            failure = not_persisted(error)
        else:
            if type(taken) is int and taken == len(piece):
                return
            failure = not_persisted()
        raise failure

    async def close(self, *, row_count: int, size_bytes: int, sha256: str) -> ResultReference:
        """What the sink says of the stored result, completed by what the Engine knows.

        Raise ``validation`` for an unknown owner of its protection, and ``internal`` for a digest
        that is not the written bytes'; the path of the result, which is stored, is in the cause.
        """
        try:
            reference: object = await self._writer.close()
        except DeadlineExceeded:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to a host's sink
            failure = not_persisted(error)
        else:
            if isinstance(reference, ResultReference):
                _require_sound(reference, sha256)
                return replace(
                    reference,
                    format="ndjson",
                    row_count=row_count,
                    size_bytes=reference.size_bytes or size_bytes,
                    integrity=_present(reference.integrity, sha256),
                )
            failure = not_persisted()
        raise failure

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
