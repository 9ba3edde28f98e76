"""What comes of an execution (spec 4.11, 4.12)."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from fetcher_engine.timestamps import rfc3339


class ExecutionStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        return self in (self.COMPLETED, self.FAILED, self.CANCELED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionState:
    """Where an execution stands; ``job_id`` is the plan's request id."""

    job_id: str = ""
    status: ExecutionStatus | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    failure_message: str = ""

    def to_public_dict(self) -> dict[str, str]:
        members = {
            "jobId": self.job_id,
            "status": self.status or "",
            "startedAt": rfc3339(self.started_at) if self.started_at else "",
            "completedAt": rfc3339(self.completed_at) if self.completed_at else "",
            "failureMessage": self.failure_message,
        }
        return {name: str(value) for name, value in members.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultIntegrity:
    """Either an unkeyed ``digest`` or a keyed ``signature``, in lower-case hex."""

    algorithm: str = ""
    digest: str = ""
    signature: str = ""

    @property
    def is_present(self) -> bool:
        return bool(self.digest or self.signature)

    def to_public_dict(self) -> dict[str, str]:
        members = {"algorithm": self.algorithm, "digest": self.digest, "signature": self.signature}
        return {name: value for name, value in members.items() if value}


class ProtectionOwner(StrEnum):
    ENGINE = "engine"
    ADAPTER = "adapter"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultProtection:
    """How a result is encrypted, and by whom."""

    encrypted: bool = False
    applied_by: ProtectionOwner = ProtectionOwner.ENGINE
    key_version: str = ""
    mode: str = ""

    def to_public_dict(self) -> dict[str, object]:
        optional = {"keyVersion": self.key_version, "mode": self.mode}
        return {
            "encrypted": self.encrypted,
            **{name: value for name, value in optional.items() if value},
            "appliedBy": str(self.applied_by),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectResult:
    """The document itself, with what it takes to trust it."""

    data: bytes = field(repr=False)
    row_count: int
    integrity: ResultIntegrity
    completed_at: datetime
    protection: ResultProtection = field(default_factory=ResultProtection)
    format: str = "json"

    @property
    def plaintext_size(self) -> int:
        return len(self.data)

    def iter_chunks(self, max_bytes: int) -> Iterator[memoryview]:
        """The document in pieces, without a copy."""
        view = memoryview(self.data)
        for start in range(0, len(view), max_bytes):
            yield view[start : start + max_bytes]

    def to_public_dict(self) -> dict[str, object]:
        return {
            "data": base64.b64encode(self.data).decode("ascii"),
            "format": self.format,
            "rowCount": self.row_count,
            "plaintextSize": self.plaintext_size,
            "integrity": self.integrity.to_public_dict(),
            "protection": self.protection.to_public_dict(),
            "completedAt": rfc3339(self.completed_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """A finished execution in direct mode; ``row_counts`` per config name."""

    state: ExecutionState
    direct: DirectResult
    row_counts: Mapping[str, int]

    def to_public_dict(self) -> dict[str, object]:
        return {
            "state": self.state.to_public_dict(),
            "direct": self.direct.to_public_dict(),
            "rowCounts": dict(self.row_counts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSummary:
    """A finished execution whose bytes went to the host: their count and SHA-256 in hex.

    ``row_counts`` holds every config name of the plan, 0 for a source without rows.
    """

    row_count: int
    row_counts: Mapping[str, int]
    size_bytes: int
    sha256: str
    completed_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_counts", MappingProxyType(dict(self.row_counts)))
