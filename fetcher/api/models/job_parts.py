"""Parts of what is told of a job."""

from datetime import datetime
from typing import Self

from fetcher.api.models.connections import Answer, Timestamp
from fetcher.domain.jobs import AttemptRecord, FailureFacts, TableProgress
from fetcher.domain.timestamps import rfc3339
from fetcher_engine import SourceNotes


class FailureAnswer(Answer):
    """Why a job failed, in safe words."""

    message: str
    code: str
    source: str | None = None
    stage: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, failure: FailureFacts) -> Self:
        return cls(
            message=failure.message,
            code=failure.code,
            source=failure.source,
            stage=failure.stage,
            reason=failure.reason,
        )


class SourceNotesAnswer(Answer):
    """How a source was read, as far as that does not go without saying."""

    snapshot: bool | None = None
    """False where its tables were not read as of one moment."""

    replaced_characters: int | None = None
    """How many characters stand in the place of bytes that were no text."""

    @classmethod
    def of(cls, notes: SourceNotes) -> Self:
        return cls(
            snapshot=None if notes.has_snapshot else False,
            replaced_characters=notes.replaced_characters or None,
        )


class AttemptAnswer(Answer):
    """One try of a worker; without an end it runs."""

    attempt: int
    started_at: Timestamp
    ended_at: Timestamp | None = None
    worker: str
    error_code: str | None = None

    @classmethod
    def of(cls, attempt: AttemptRecord) -> Self:
        return cls(
            attempt=attempt.attempt,
            started_at=rfc3339(attempt.started_at),
            ended_at=shown_time(attempt.ended_at),
            worker=attempt.owner,
            error_code=attempt.code,
        )


class TableProgressAnswer(Answer):
    """What has been read of a table so far."""

    rows: int
    bytes: int

    @classmethod
    def of(cls, read: TableProgress) -> Self:
        return cls(rows=read.rows, bytes=read.bytes)


def shown_time(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
