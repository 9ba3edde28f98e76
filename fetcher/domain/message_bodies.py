"""The bodies of messages as types (spec worker-and-events 2.2, 8.3, 8.4).

What is written is checked against them, and ``docs/schemas`` follows them, their docstrings too. A
receiver must ignore members that it does not know.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from fetcher.domain.jobs import Filters


class WorkBody(TypedDict):
    """From Manager to Worker: a job waits. Its record decides; the rest is for other readers."""

    createdAt: str
    jobId: str
    mappedFields: Mapping[str, Mapping[str, Sequence[str]]]
    metadata: Mapping[str, object]
    filters: NotRequired[Filters]


class Integrity(TypedDict):
    """The same value as ``hmac``, with its algorithm."""

    algorithm: Literal["HMAC-SHA256"]
    signature: str


class Protection(TypedDict):
    """How the stored object is sealed."""

    encrypted: Literal[True]
    mode: Literal["adapter-managed"]
    appliedBy: Literal["adapter"]
    keyVersion: NotRequired[str]


class ResultBody(TypedDict):
    """Where the result lies, and what it must be once it was opened."""

    path: str
    sizeBytes: int
    rowCount: NotRequired[int]
    format: Literal["json"]
    hmac: NotRequired[str]
    integrity: NotRequired[Integrity]
    protection: Protection


class CompletedBody(TypedDict):
    """A job has completed; its result lies in the bucket."""

    jobId: str
    metadata: Mapping[str, object]
    status: Literal["completed"]
    result: ResultBody
    executionTimeMs: NotRequired[int]
    completedAt: str


class ErrorBody(TypedDict):
    """``metadata.error`` of a failed job: safe words, never a driver's."""

    message: str
    code: NotRequired[str]
    source: NotRequired[str]
    stage: NotRequired[str]
    reason: NotRequired[str]


class FailedBody(TypedDict):
    """A job has failed; a cancelled one is told like this too."""

    jobId: str
    metadata: Mapping[str, object]
    status: Literal["failed"]
