"""What comes of an execution (spec 4.11, 4.12)."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from fetcher_engine.batches import SourceNotes
from fetcher_engine.timestamps import rfc3339


class ExecutionStatus(StrEnum):
    """How an execution stands. The Engine itself never writes ``pending``."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended: completed, failed or canceled."""
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
        """The JSON projection, without what is empty."""
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
        """Whether anything can be checked against it."""
        return bool(self.digest or self.signature)

    def to_public_dict(self) -> dict[str, str]:
        """The JSON projection, without what is empty."""
        members = {"algorithm": self.algorithm, "digest": self.digest, "signature": self.signature}
        return {name: value for name, value in members.items() if value}


class ProtectionOwner(StrEnum):
    """Who encrypted a result: the Engine (which never does), the sink's adapter, the host."""

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
        """The JSON projection, without what is empty."""
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
        """The count of the document's bytes."""
        return len(self.data)

    def iter_chunks(self, max_bytes: int) -> Iterator[memoryview]:
        """The document in pieces, without a copy."""
        view = memoryview(self.data)
        for start in range(0, len(view), max_bytes):
            yield view[start : start + max_bytes]

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection, with the document in base64: for small ones."""
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
class ResultReference:
    """A result in a sink: where it lies, in the sink's own logical words, and what it is.

    A sink fills in what it knows: ``path`` always; ``size_bytes`` 0 and no ``integrity`` mean that
    the Engine's own count and SHA-256 stand there. Format, rows and time are the Engine's.
    ``size_bytes`` counts the stored bytes, which protection may have made more than were written.
    """

    path: str
    format: str = "ndjson"
    row_count: int = 0
    size_bytes: int = 0
    integrity: ResultIntegrity = field(default_factory=ResultIntegrity)
    protection: ResultProtection | None = None
    completed_at: datetime | None = None

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection: where the result lies and how to check it."""
        public: dict[str, object] = {
            "path": self.path,
            "format": self.format,
            "rowCount": self.row_count,
            "sizeBytes": self.size_bytes,
            "integrity": self.integrity.to_public_dict(),
        }
        if self.protection is not None:
            public["protection"] = self.protection.to_public_dict()
        if self.completed_at is not None:
            public["completedAt"] = rfc3339(self.completed_at)
        return public


class OrphanedResult(Exception):
    """Behind ``unwrap()`` of an error: the sink has stored a result that must not be used.

    The Engine has asked the sink to discard it; ``path`` is for a host that wants to make sure.
    """

    def __init__(self, path: str) -> None:
        super().__init__("the sink stored a result that was refused")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionResult:
    """A finished execution: either the document itself or where the sink has put the rows.

    ``row_counts`` holds every config name of the plan, 0 for a source without rows;
    ``source_notes`` only those of which there is something to tell.
    """

    state: ExecutionState
    row_counts: Mapping[str, int]
    direct: DirectResult | None = None
    reference: ResultReference | None = None
    source_notes: Mapping[str, SourceNotes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.direct is None) == (self.reference is None):
            raise ValueError("a result is either direct or a reference")
        object.__setattr__(self, "row_counts", MappingProxyType(dict(self.row_counts)))
        object.__setattr__(self, "source_notes", MappingProxyType(dict(self.source_notes)))

    @property
    def document(self) -> bytes:
        """The document itself; raise ValueError where the result lies in a sink."""
        if self.direct is None:
            raise ValueError("the result lies in a sink")
        return self.direct.data

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection; either ``direct`` or ``reference`` stands in it."""
        public: dict[str, object] = {"state": self.state.to_public_dict()}
        if self.direct is not None:
            public["direct"] = self.direct.to_public_dict()
        if self.reference is not None:
            public["reference"] = self.reference.to_public_dict()
        public["rowCounts"] = dict(self.row_counts)
        if self.source_notes:
            public["sources"] = {
                name: notes.to_public_dict() for name, notes in self.source_notes.items()
            }
        return public


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSummary:
    """A finished execution whose bytes went to the host: their count and SHA-256 in hex.

    ``row_counts`` holds every config name of the plan, 0 for a source without rows;
    ``source_notes`` only those of which there is something to tell.
    """

    row_count: int
    row_counts: Mapping[str, int]
    size_bytes: int
    sha256: str
    completed_at: datetime
    source_notes: Mapping[str, SourceNotes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_counts", MappingProxyType(dict(self.row_counts)))
        object.__setattr__(self, "source_notes", MappingProxyType(dict(self.source_notes)))
